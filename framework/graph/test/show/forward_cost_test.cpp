// What a forward pass costs, by count.
#include <gtest/gtest.h>

#include <torch/nn/modules/linear.h>

#include <treadle/graph/graph.h>

#include "small_parts.h"

namespace treadle::graph::testing {
namespace {

ForwardCost cost_of(const FlowBuilder& flow) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 4}, at::kFloat)};
  return flow.build(spec)->forward_cost().value();
}

// By hand: a product of 4 by 3 and 3 by 2 elements, two operations each; parameters with biases,
// and the row of the input and of both outputs, in float32.
TEST(ForwardCost, CountsOperationsBytesAndCalls) {
  const ForwardCost cost =
      cost_of(FlowBuilder::from(torch::nn::Linear(4, 3)).through(torch::nn::Linear(3, 2)));

  EXPECT_EQ(cost.operations, 2 * (4 * 3 + 3 * 2));
  EXPECT_EQ(cost.bytes, 4.0 * ((4 * 3 + 3) + (3 * 2 + 2) + 4 + 3 + 2));
  EXPECT_EQ(cost.calls, 2);
}

TEST(ForwardCost, CountsALoopInEachRoundAndTheShareOfABranch) {
  const FlowBuilder body = FlowBuilder::from(torch::nn::Linear(4, 4)).through(times(2));

  const ForwardCost looped = cost_of(FlowBuilder().loop(body).times(3));
  EXPECT_EQ(looped.calls, 3 * 2);
  EXPECT_EQ(looped.operations, 3 * (2 * 4 * 4 + 4));
  EXPECT_EQ(cost_of(FlowBuilder().through(body)).calls, 2) << "a graph within";
  EXPECT_EQ(
      cost_of(FlowBuilder().switch_(fixed_selector(0), {torch::nn::Linear(4, 4), body})).calls,
      1 + 0.5 * 1 + 0.5 * 2);
}

TEST(ForwardCost, DoesNotCountWhatIsLeftOut) {
  const FlowBuilder flow = FlowBuilder::from(torch::nn::Linear(4, 4)).through(identity());

  EXPECT_EQ(cost_of(flow).calls, 1);
  EXPECT_EQ(cost_of(FlowBuilder(flow).through(torch::nn::Linear(4, 4)).disabled()).calls, 1);
}

TEST(ForwardCost, IsUnknownWithoutSizes) {
  EXPECT_EQ(FlowBuilder::from(torch::nn::Linear(4, 4)).build()->forward_cost(), std::nullopt);
}

}  // namespace
}  // namespace treadle::graph::testing
