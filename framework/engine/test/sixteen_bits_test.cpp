// Models whose parameters have 16 bits train by float32 masters of them.
#include <treadle/engine/training_step.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <treadle/core/components/module_state.h>
#include <treadle/core/model/weights.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/engine/weight_average.h>
#include <treadle/tensor/task_random.h>

#include "test/squared_error.h"

namespace treadle::engine {
namespace {

constexpr std::int64_t kWidth = 5;
constexpr double kRate = 0.05;

/// x * weight + bias in 16 bits, between inputs and outputs in float32.
class Narrow : public Model {
 public:
  explicit Narrow(at::ScalarType dtype) : dtype_(dtype) {
    const TaskRandom random(1);
    weight = register_parameter("weight", at::randn({kWidth}).to(dtype));
    bias = register_parameter("bias", at::randn({kWidth}).to(dtype));
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = inputs[0].to(dtype_).mul(weight).add(bias).to(at::kFloat);
  }

  at::Tensor weight;
  at::Tensor bias;

 private:
  at::ScalarType dtype_;
};

/// With momentum, so that there is something to remember beside the masters.
class Descent : public Optimizer {
  double do_learning_rate() const override { return kRate; }
  std::vector<SlotSpec> do_slots() const override { return {{"momentum"}}; }
  void do_update(ParameterView& view) const override {
    for (const ParameterPiece& run : view.runs()) {
      const at::Tensor momentum = 0.5 * run.slot(0) + run.gradients();
      run.set_slot(0, momentum);
      run.set_parameters(run.parameters() - view.learning_rate() * momentum);
    }
  }
};

Batch batch_of(std::int64_t step) {
  const at::Generator generator = make_generator(static_cast<std::uint64_t>(step));
  Batch batch;
  batch.inputs = {at::randn({8, kWidth}, generator)};
  batch.targets = batch.original_targets = {batch.inputs[0].mul(2).sub(1)};
  batch.rows = at::zeros({8}, at::kLong);
  return batch;
}

void train(TrainingStep& step, std::int64_t from, std::int64_t to, double rate = kRate) {
  for (std::int64_t i = from + 1; i <= to; ++i)
    ASSERT_TRUE(step.run(batch_of(i), i, rate, 0));
}

at::Tensor master_of(TrainingStep& step, std::size_t segment) {
  return step.arena().parameter(step.arena().segments()[segment]);
}

class SixteenBits : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  std::shared_ptr<Narrow> model() const { return std::make_shared<Narrow>(GetParam()); }

  const ObjectiveOf<SquaredError> loss_{number_target("y", 1)};
  const Descent optimizer_;
};

TEST_P(SixteenBits, TrainLikeTheLoopByHandThatKeepsMasters) {
  const auto ours = model();
  const auto by_hand = model();
  TrainingStep step(*ours, loss_, optimizer_);
  std::vector<at::Tensor> masters;
  std::vector<at::Tensor> momenta;
  for (const at::Tensor& parameter : by_hand->parameters()) {
    masters.push_back(parameter.detach().to(at::kFloat));
    momenta.push_back(at::zeros({kWidth}));
  }

  train(step, 0, 50);
  for (std::int64_t i = 1; i <= 50; ++i) {
    by_hand->zero_grad();
    Outputs outputs(1);
    ForwardContext context;
    const Batch batch = batch_of(i);
    by_hand->forward(batch.inputs, outputs, context);
    static_cast<const Objective&>(loss_).forward(outputs, batch).front().sum.backward();
    const at::NoGradGuard no_gradients;
    const auto parameters = by_hand->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      momenta[p] = momenta[p] * 0.5 + parameters[p].grad().to(at::kFloat) / 8;
      masters[p] -= momenta[p] * kRate;
      parameters[p].copy_(masters[p]);
    }
  }

  EXPECT_LT((master_of(step, 0) - masters[0]).abs().max().item<double>(), 1e-5);
  EXPECT_LT((master_of(step, 1) - masters[1]).abs().max().item<double>(), 1e-5);
  EXPECT_EQ(ours->weight.scalar_type(), GetParam());
  // It has learned to double and to subtract one, as well as such numbers can.
  EXPECT_LT((ours->weight - 2).abs().max().item<double>(), 0.02);
  EXPECT_LT((ours->bias + 1).abs().max().item<double>(), 0.02);
}

TEST_P(SixteenBits, AddUpUpdatesThatAreTooSmallForThem) {
  const auto ours = model();
  TrainingStep step(*ours, loss_, optimizer_);
  const at::Tensor first = ours->weight.detach().clone();
  const at::Tensor first_master = master_of(step, 0).clone();

  train(step, 0, 1, 1e-6);
  EXPECT_TRUE(at::equal(ours->weight.detach(), first));
  EXPECT_FALSE(at::equal(master_of(step, 0), first_master));

  train(step, 1, 4000, 1e-6);
  EXPECT_FALSE(at::equal(ours->weight.detach(), first));
}

TEST_P(SixteenBits, AreWhatTheMastersRoundTo) {
  const auto ours = model();
  TrainingStep step(*ours, loss_, optimizer_);

  train(step, 0, 7);

  EXPECT_TRUE(at::equal(ours->weight.detach(), master_of(step, 0).to(GetParam())));
  EXPECT_TRUE(at::equal(ours->bias.detach(), master_of(step, 1).to(GetParam())));
}

TEST_P(SixteenBits, GoOnFromSavedMastersToTheLastBit) {
  const auto whole = model();
  TrainingStep whole_step(*whole, loss_, optimizer_);
  train(whole_step, 0, 10);
  const StateDict weights = module_state(*whole).snapshot();
  const StateDict memory = whole_step.slots().state().snapshot();
  train(whole_step, 10, 20);

  const auto resumed = model();
  TrainingStep resumed_step(*resumed, loss_, optimizer_);
  load_module_state(*resumed, weights);
  resumed_step.slots().load_state(memory);
  train(resumed_step, 10, 20);

  EXPECT_TRUE(at::equal(resumed_step.arena().parameters(), whole_step.arena().parameters()));
  EXPECT_TRUE(at::equal(resumed->weight.detach(), whole->weight.detach()));
}

TEST_P(SixteenBits, InShardsDoNotDependOnTheNumberOfWorkers) {
  const auto trained = [&](int workers) {
    const auto ours = model();
    const auto replica = model();
    StepOptions options;
    options.replicas = {replica.get()};
    TrainingStep step(*ours, loss_, optimizer_, options);
    ThreadBudget budget(workers);
    budget.run([&] { train(step, 0, 30); });
    return step.arena().parameters().clone();
  };
  const at::Tensor by_one = trained(1);

  EXPECT_TRUE(at::equal(trained(3), by_one));

  // Gradients are added in float32: all that differs is where the rows' own sums were rounded.
  const auto ours = model();
  TrainingStep in_one_piece(*ours, loss_, optimizer_);
  train(in_one_piece, 0, 30);
  EXPECT_LT((in_one_piece.arena().parameters() - by_one).abs().max().item<double>(), 0.02);
}

TEST_P(SixteenBits, AreAveragedByTheirMasters) {
  const auto ours = model();
  TrainingStep step(*ours, loss_, optimizer_);
  WeightAverage average(step.arena(), *ours, {.decay = 0.75});
  at::Tensor expected = step.arena().parameters().clone();
  average.add_after(0);
  for (std::int64_t i = 1; i <= 5; ++i) {
    train(step, i - 1, i);
    average.add_after(i);
    expected = expected.lerp(step.arena().parameters(), 0.25);
  }
  const at::Tensor own = step.arena().parameters().clone();

  average.put_in();

  EXPECT_LT((step.arena().parameters() - expected).abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(at::equal(ours->weight.detach(), master_of(step, 0).to(GetParam())));
  average.take_out();
  EXPECT_TRUE(at::equal(step.arena().parameters(), own));
  EXPECT_TRUE(at::equal(ours->weight.detach(), master_of(step, 0).to(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Of, SixteenBits, ::testing::Values(at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

}  // namespace
}  // namespace treadle::engine
