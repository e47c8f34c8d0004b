// Parameters with an optimizer of their own.
#include <treadle/engine/training_step.h>

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
  void do_update(Block& block, const StepInfo& info) const override {
    double* p = block.parameters<double>();
    double* m = block.elements<double>(0);
    const double* g = block.gradients<double>();
    block.numbers(1)[0] += 1;
    for (const Segment& segment : block.segments()) {
      if (!segment.active())
        continue;
      for (std::int64_t i = segment.offset; i < segment.offset + segment.size; ++i) {
        m[i] = 0.9 * m[i] + info.gradient_scale * g[i] + decay_ * p[i];
        p[i] -= info.learning_rate * m[i];
      }
    }
  }

  double rate_;
  double decay_;
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
