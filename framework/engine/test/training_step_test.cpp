#include <treadle/engine/training_step.h>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include <treadle/tensor/task_random.h>

#include "test/squared_error.h"

namespace treadle::engine {
namespace {

/// p -= rate * scale * g, on every active segment.
class PlainDescent : public Optimizer {
  double do_learning_rate() const override { return 0.1; }
  std::vector<SlotSpec> do_slots() const override { return {}; }
  void do_update(ParameterView& view) const override {
    for (const ParameterPiece& run : view.runs())
      run.set_parameters(run.parameters() - view.learning_rate() * run.gradients());
  }
};

std::shared_ptr<Model> linear_model(std::uint64_t seed) {
  const TaskRandom random(seed);
  auto linear = std::make_shared<torch::nn::LinearImpl>(3, 2);
  linear->to(at::kDouble);
  return adapt(linear);
}

Batch random_batch(std::int64_t rows, std::uint64_t seed) {
  const at::Generator generator = make_generator(seed);
  Batch batch;
  batch.inputs = {at::randn({rows, 3}, generator, at::kDouble)};
  batch.targets = batch.original_targets = {at::randn({rows, 2}, generator, at::kDouble)};
  batch.rows = at::zeros({rows}, at::kLong);
  return batch;
}

TEST(TrainingStep, EqualsTheLoopByHand) {
  const ObjectiveOf<SquaredError> loss;
  const PlainDescent optimizer;
  const auto model = linear_model(1);
  const auto by_hand = linear_model(1);
  TrainingStep step(*model, loss, optimizer);

  for (int i = 0; i < 50; ++i) {
    const Batch batch = random_batch(i % 2 == 0 ? 8 : 5, static_cast<std::uint64_t>(i));
    ASSERT_TRUE(step.run(batch, i + 1, 0.1, 0));

    by_hand->zero_grad();
    Outputs outputs(1);
    ForwardContext context;
    by_hand->forward(batch.inputs, outputs, context);
    const at::Tensor mean = (outputs[0] - batch.targets[0]).pow(2).sum(1).mean() / 2;
    mean.backward();
    at::NoGradGuard no_gradients;
    for (at::Tensor& parameter : by_hand->parameters())
      parameter.sub_(parameter.grad() * 0.1);
  }

  for (const auto& item : by_hand->named_parameters()) {
    const at::Tensor difference =
        (model->named_parameters()[item.key()] - item.value()).abs().max();
    EXPECT_LT(difference.item<double>(), 1e-12) << item.key();
  }
}

TEST(TrainingStep, WeightsCountLikeRepeatedRows) {
  const ObjectiveOf<SquaredError> loss;
  const PlainDescent optimizer;
  const auto weighted = linear_model(1);
  const auto repeated = linear_model(1);
  Batch once = random_batch(2, 4);
  once.weights = at::ones({2}, at::kDouble);
  once.weights[0] = 3;
  Batch thrice = once;
  const at::Tensor rows = at::tensor({0, 0, 0, 1}, at::kLong);
  thrice.inputs = {once.inputs[0].index_select(0, rows)};
  thrice.targets = {once.targets[0].index_select(0, rows)};
  thrice.weights = at::Tensor();
  thrice.rows = rows;

  TrainingStep(*weighted, loss, optimizer).run(once, 1, 0.1, 0);
  TrainingStep(*repeated, loss, optimizer).run(thrice, 1, 0.1, 0);

  for (const auto& item : repeated->named_parameters()) {
    EXPECT_LT((weighted->named_parameters()[item.key()] - item.value()).abs().max().item<double>(),
              1e-14);
  }
}

TEST(TrainingStep, AddsUpLossAndWeightForTheEpoch) {
  const ObjectiveOf<SquaredError> loss;
  const PlainDescent optimizer;
  const auto model = linear_model(1);
  TrainingStep step(*model, loss, optimizer);

  step.run(random_batch(8, 1), 1, 0.0, 0);
  step.run(random_batch(5, 2), 2, 0.0, 0);

  EXPECT_EQ(step.totals().weight(), 13);
  EXPECT_GT(step.totals().value(), 0);
  step.clear_totals();
  EXPECT_EQ(step.totals().weight(), 0);
}

TEST(TrainingStep, ClipsTheJointNorm) {
  const ObjectiveOf<SquaredError> loss;
  const PlainDescent optimizer;
  const auto model = linear_model(1);
  const auto before = linear_model(1);
  TrainingStep step(*model, loss, optimizer, {.clipping = {0.01, 0}});

  step.run(random_batch(8, 1), 1, 1.0, 0);

  double squares = 0;
  for (const auto& item : before->named_parameters()) {
    squares += (model->named_parameters()[item.key()] - item.value()).pow(2).sum().item<double>();
  }
  EXPECT_NEAR(std::sqrt(squares), 0.01, 1e-12);
}

TEST(TrainingStep, ClampsEachElement) {
  const ObjectiveOf<SquaredError> loss;
  const PlainDescent optimizer;
  const auto model = linear_model(1);
  const auto before = linear_model(1);
  TrainingStep step(*model, loss, optimizer, {.clipping = {0, 0.001}});

  step.run(random_batch(8, 1), 1, 1.0, 0);

  for (const auto& item : before->named_parameters()) {
    EXPECT_LE((model->named_parameters()[item.key()] - item.value()).abs().max().item<double>(),
              0.001 + 1e-12);
  }
}

TEST(TrainingStep, LeavesTheModelAloneWhenTheLossIsNotANumber) {
  const ObjectiveOf<SquaredError> loss;
  const PlainDescent optimizer;
  const auto model = linear_model(1);
  const auto before = linear_model(1);
  Batch batch = random_batch(4, 1);
  batch.targets[0][2][0] = NAN;

  EXPECT_FALSE(TrainingStep(*model, loss, optimizer).run(batch, 1, 0.1, 0));

  for (const auto& item : before->named_parameters()) {
    EXPECT_TRUE(at::equal(model->named_parameters()[item.key()], item.value()));
  }
}

/// A loss that is 0 whatever the model says, with a slope of 0 / 0.
class SteepLoss : public Loss {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"value", {target.width()}}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const TargetBatch&) const override {
    return {outputs[0].mul(0).square().sqrt().sum(), {}};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }
};

TEST(TrainingStep, LeavesTheModelAloneWhenAGradientIsNotANumber) {
  const ObjectiveOf<SteepLoss> loss;
  const PlainDescent optimizer;
  for (const Clipping& clipping : {Clipping{}, Clipping{1, 0}, Clipping{0, 1}, Clipping{1, 1}}) {
    const auto model = linear_model(1);
    const auto before = linear_model(1);

    EXPECT_FALSE(TrainingStep(*model, loss, optimizer, {.clipping = clipping})
                     .run(random_batch(4, 1), 1, 0.1, 0));

    for (const auto& item : before->named_parameters()) {
      EXPECT_TRUE(at::equal(model->named_parameters()[item.key()], item.value()));
    }
  }
}

}  // namespace
}  // namespace treadle::engine
