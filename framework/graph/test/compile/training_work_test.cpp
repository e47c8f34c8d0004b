// What a training step costs for a row, by sizes alone.
#include <gtest/gtest.h>

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <treadle/core/model/abilities/works_step_by_step.h>
#include <treadle/graph/graph.h>

#include "small_parts.h"

namespace treadle::graph::testing {
namespace {

StepWork work(const FlowBuilder& flow, std::vector<std::int64_t> row) {
  row.insert(row.begin(), TensorSpec::kVaries);
  LayerSpec spec;
  spec.inputs = {TensorSpec(std::move(row), at::kFloat)};
  return flow.build(spec)->training_work().value();
}

StepWork work(const Part& part, std::vector<std::int64_t> row) {
  return work(FlowBuilder::from(part), std::move(row));
}

// Three passes of a product, two operations for each weight.
constexpr double kAWeight = 6;

TEST(TrainingWork, OfRowsIsThatOfTheWeights) {
  const StepWork work_of_both =
      work(FlowBuilder::from(torch::nn::Linear(3, 4)).through(torch::nn::Linear(4, 2)), {3});

  EXPECT_EQ(work_of_both.operations, kAWeight * (3 * 4 + 4 * 2));
  EXPECT_EQ(work_of_both.bytes, 4.0 * sizeof(float) * (4 + 2)) << "values and gradients";
}

TEST(TrainingWork, UsesAWeightAtEachPosition) {
  EXPECT_EQ(work(torch::nn::Linear(3, 4), {10, 3}).operations, kAWeight * 12 * 10);
  EXPECT_EQ(work(torch::nn::Linear(3, 4), {TensorSpec::kVaries, 3}).operations, kAWeight * 12 * 64)
      << "of a size that is not known";
  EXPECT_EQ(work(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 5, 3)), {2, 8, 9}).operations,
            kAWeight * (2 * 5 * 3 * 3) * (6 * 7));
}

TEST(TrainingWork, CountsRoundsAndTheShareOfABranch) {
  const double once = work(torch::nn::Linear(4, 4), {4}).operations;
  EXPECT_EQ(work(FlowBuilder().loop(torch::nn::Linear(4, 4)).times(3), {4}).operations, 3 * once);
  EXPECT_EQ(
      work(
          FlowBuilder().loop(FlowBuilder::from(torch::nn::Linear(4, 4)).through(times(2))).times(3),
          {4})
          .operations,
      3 * once)
      << "in a graph within";
  EXPECT_EQ(work(FlowBuilder().switch_(fixed_selector(0),
                                       {torch::nn::Linear(4, 4), torch::nn::Linear(4, 4)}),
                 {4})
                .operations,
            once);
  EXPECT_EQ(work(recompute(torch::nn::Linear(4, 4)), {4}).operations, once);
}

/// A recurrent layer, as a cost knows it.
class StepByStep final : public Layer, public WorksStepByStep {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return inputs[0]; }
  double calls_per_time_step() const override { return 100; }
};

TEST(TrainingWork, CountsCallsOfEachTimeStepAndRound) {
  const auto calls = [](const FlowBuilder& flow, std::vector<std::int64_t> row) {
    return work(flow, std::move(row)).calls;
  };
  const double of_one = calls(FlowBuilder::from(torch::nn::Linear(4, 4)), {4});
  const Part steps(std::make_shared<StepByStep>());

  EXPECT_GT(of_one, 0);
  EXPECT_EQ(calls(FlowBuilder::from(torch::nn::Linear(4, 4)), {10, 4}), of_one)
      << "whatever its rows";
  EXPECT_EQ(calls(FlowBuilder().loop(torch::nn::Linear(4, 4)).times(3), {4}), 3 * of_one);
  EXPECT_NEAR(calls(FlowBuilder::from(steps), {10, 4}), 10 * 100, 20);
  EXPECT_NEAR(calls(FlowBuilder::from(steps), {96, 4}), 96 * 100, 20);
}

TEST(TrainingWork, IsNotKnownWithoutSizes) {
  EXPECT_EQ(FlowBuilder::from(torch::nn::Linear(4, 4)).build()->training_work(), std::nullopt);
}

}  // namespace
}  // namespace treadle::graph::testing
