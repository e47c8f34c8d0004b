// Parameters with an optimizer of their own.
#include <treadle/engine/training_step.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>

#include "test/squared_error.h"

namespace treadle::engine {
namespace {

/// SGD with momentum and decay, and a scalar that counts its updates.
class CountingMomentum : public Optimizer {
 public:
  CountingMomentum(double rate, double decay) : rate_(rate), decay_(decay) {}

 private:
  double do_learning_rate() const override { return rate_; }
  std::vector<SlotSpec> do_slots() const override {
    return {{"momentum", SlotSpec::Kind::kPerElement, 0}, {"updates", SlotSpec::Kind::kScalar, 0}};
  }
  void do_update(ParameterView& view) const override {
    view.set_scalar(1, view.scalar(1) + 1);
    for (const ParameterPiece& run : view.runs()) {
      const at::Tensor momentum = 0.9 * run.slot(0) + run.gradients() + decay_ * run.parameters();
      run.set_slot(0, momentum);
      run.set_parameters(run.parameters() - view.learning_rate() * momentum);
    }
  }

  double rate_;
  double decay_;
};

/// Its slot would be saved under the name of the framework's own.
class TakesAName : public Optimizer {
  double do_learning_rate() const override { return 0.1; }
  std::vector<SlotSpec> do_slots() const override { return {{"steps"}}; }
  void do_update(ParameterView&) const override {}
};

std::shared_ptr<Model> make_model() {
  const TaskRandom random(1);
  auto linear = std::make_shared<torch::nn::LinearImpl>(3, 2);
  linear->to(at::kDouble);
  return adapt(linear);
}

Batch batch_of(std::uint64_t seed) {
  const at::Generator generator = make_generator(seed);
  Batch batch;
  batch.inputs = {at::randn({8, 3}, generator, at::kDouble)};
  batch.targets = batch.original_targets = {at::randn({8, 2}, generator, at::kDouble)};
  batch.rows = at::zeros({8}, at::kLong);
  return batch;
}

const ObjectiveOf<SquaredError> kSquares;
const CountingMomentum kRest(0.1, 0.01);
const CountingMomentum kForBias(0.02, 0);

StepOptions with_bias_apart() {
  StepOptions options;
  options.groups = {{&kForBias, {"net.bias"}}};
  return options;
}

TEST(ParameterGroups, EqualLibtorchsWhileTheScheduleMovesBothRates) {
  const auto model = make_model();
  const auto other = make_model();
  TrainingStep step(*model, kSquares, kRest, with_bias_apart());
  auto named = other->named_parameters();
  const auto group = [](at::Tensor parameter, double rate, double decay) {
    return torch::optim::OptimizerParamGroup(
        {std::move(parameter)},
        std::make_unique<torch::optim::SGDOptions>(
            torch::optim::SGDOptions(rate).momentum(0.9).weight_decay(decay)));
  };
  torch::optim::SGD by_libtorch(
      {group(named["net.weight"], 0.1, 0.01), group(named["net.bias"], 0.02, 0)},
      torch::optim::SGDOptions(0.1));

  for (int i = 0; i < 30; ++i) {
    const double share = i < 15 ? 1 : 0.5;
    ASSERT_TRUE(step.run(batch_of(static_cast<std::uint64_t>(i)), i + 1, 0.1 * share, 0));

    if (i == 15) {
      for (auto& one : by_libtorch.param_groups()) {
        auto& options = static_cast<torch::optim::SGDOptions&>(one.options());
        options.lr(options.lr() * 0.5);
      }
    }
    by_libtorch.zero_grad();
    const Batch batch = batch_of(static_cast<std::uint64_t>(i));
    Outputs outputs(1);
    ForwardContext context;
    other->forward(batch.inputs, outputs, context);
    ((outputs[0] - batch.targets[0]).pow(2).sum() / 2 / 8).backward();
    by_libtorch.step();
  }

  for (const auto& item : other->named_parameters()) {
    EXPECT_LT((model->named_parameters()[item.key()] - item.value()).abs().max().item<double>(),
              1e-12)
        << item.key();
  }
}

TEST(ParameterGroups, HaveTheRatesThatAStepGivesThem) {
  for (const auto path : {ParameterView::Path::kFastest, ParameterView::Path::kTensors}) {
    const auto model = make_model();
    const auto in_proportion = make_model();
    StepOptions options = with_bias_apart();
    options.path = path;
    TrainingStep step(*model, kSquares, kRest, options);
    TrainingStep other(*in_proportion, kSquares, kRest, options);

    for (int i = 0; i < 5; ++i) {
      const Batch batch = batch_of(static_cast<std::uint64_t>(i));
      const std::vector<double> rates{0.04};
      ASSERT_TRUE(step.run(batch, i + 1, 0.2, 0, rates));
      ASSERT_TRUE(other.run(batch, i + 1, 0.2, 0));
    }
    EXPECT_TRUE(at::allclose(step.arena().parameters(), other.arena().parameters(), 1e-14, 1e-14))
        << "0.02 is a fifth of 0.1";

    const at::Tensor bias = model->named_parameters()["net.bias"].clone();
    const at::Tensor weight = model->named_parameters()["net.weight"].clone();
    const std::vector<double> none{0};
    ASSERT_TRUE(step.run(batch_of(9), 6, 0.2, 0, none));
    EXPECT_TRUE(at::equal(model->named_parameters()["net.bias"], bias));
    EXPECT_FALSE(at::equal(model->named_parameters()["net.weight"], weight));
  }
}

TEST(ParameterGroups, ShareVectorsAndKeepNumbersApart) {
  const auto model = make_model();
  TrainingStep step(*model, kSquares, kRest, with_bias_apart());
  step.run(batch_of(1), 1, 0.1, 0);

  const StateDict state = step.slots().state();

  EXPECT_FALSE(state.part("group-1").has_tensor("momentum")) << "it is the rest's";
  EXPECT_EQ(state.tensor("updates").item<double>(), 1);
  EXPECT_EQ(state.part("group-1").tensor("updates").item<double>(), 1);
}

TEST(ParameterGroups, GoOnFromWhatWasSavedAsIfTheyHadNeverStopped) {
  const auto straight = make_model();
  const auto stopped = make_model();
  TrainingStep step(*straight, kSquares, kRest, with_bias_apart());
  StateDict saved;
  {
    TrainingStep before(*stopped, kSquares, kRest, with_bias_apart());
    for (int i = 0; i < 10; ++i) {
      step.run(batch_of(static_cast<std::uint64_t>(i)), i + 1, 0.1, 0);
      before.run(batch_of(static_cast<std::uint64_t>(i)), i + 1, 0.1, 0);
    }
    saved = before.slots().state().snapshot();
  }
  TrainingStep after(*stopped, kSquares, kRest, with_bias_apart());
  after.slots().load_state(saved);
  for (int i = 10; i < 20; ++i) {
    step.run(batch_of(static_cast<std::uint64_t>(i)), i + 1, 0.1, 0);
    after.run(batch_of(static_cast<std::uint64_t>(i)), i + 1, 0.1, 0);
  }

  EXPECT_TRUE(at::equal(step.arena().parameters(), after.arena().parameters()));
  EXPECT_EQ(after.slots().state().part("group-1").tensor("updates").item<double>(), 20);
}

TEST(ParameterGroups, ASlotUnderTheFrameworksNameIsRefused) {
  const auto model = make_model();
  const TakesAName optimizer;

  try {
    TrainingStep(*model, kSquares, optimizer);
    ADD_FAILURE() << "expected a PluginError";
  } catch (const PluginError& error) {
    EXPECT_NE(std::string(error.what()).find("slot \"steps\""), std::string::npos) << error.what();
  }
}

TEST(ParameterGroups, NameParametersThatThereAreAndOnce) {
  const auto model = make_model();
  StepOptions unknown;
  unknown.groups = {{&kForBias, {"net.biass"}}};
  StepOptions twice;
  twice.groups = {{&kForBias, {"net.bias"}}, {&kForBias, {"net.bias"}}};
  EXPECT_THROW(TrainingStep(*model, kSquares, kRest, unknown), ContractViolation);
  EXPECT_THROW(TrainingStep(*make_model(), kSquares, kRest, twice), ContractViolation);
}

}  // namespace
}  // namespace treadle::engine
