// Execution::kAuto: what is compiled, what stays dynamic, and why.
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include <treadle/core/model/layer.h>
#include <treadle/graph/graph.h>

#include "planned_parts.h"
#include "small_parts.h"

namespace treadle::graph::testing {
namespace {

std::string choice(const FlowBuilder& flow, std::vector<std::int64_t> row = {4}) {
  std::vector<std::int64_t> sizes{TensorSpec::kVaries};
  sizes.insert(sizes.end(), row.begin(), row.end());
  LayerSpec spec;
  spec.inputs = {TensorSpec(std::move(sizes), at::kDouble)};
  spec.dtype = at::kDouble;
  const auto graph = flow.build(spec);
  graph->set_execution(Execution::kAuto);
  EXPECT_EQ(graph->execution() == Execution::kCompiled, graph->execution_choice() == "compiled");
  return graph->execution_choice();
}

TEST(AutomaticExecution, CompilesWhatIsKnownToBeNoSlower) {
  EXPECT_EQ(choice(FlowBuilder::from(sigmoid_router(4, 2))), "compiled");
  EXPECT_EQ(choice(FlowBuilder::from(times(2)).through(sigmoid_router(4, 2))), "compiled")
      << "a layer that is called does not keep the others from it";
  EXPECT_EQ(choice(FlowBuilder().loop(sigmoid_router(4, 4)).times(3)), "compiled");
  EXPECT_EQ(choice(FlowBuilder().split({sigmoid_router(4, 2), sigmoid_router(4, 2)}).merge(mean())),
            "compiled");
}

TEST(AutomaticExecution, LeavesDynamicWhatDecidesByNumbers) {
  const FlowBuilder switching =
      FlowBuilder().switch_(fixed_selector(0), {sigmoid_router(4, 4), sigmoid_router(4, 4)});
  EXPECT_EQ(choice(switching), "dynamic, because \"switch_0\" decides by values");
  EXPECT_EQ(choice(FlowBuilder().loop(sigmoid_router(4, 4)).until(threshold_halt(1), 3)),
            "dynamic, because \"loop_0\" decides by values");
  EXPECT_EQ(choice(FlowBuilder::from(sigmoid_router(4, 4)).loop(switching).times(2)),
            "dynamic, because \"loop_0.switch_0\" decides by values")
      << "wherever it stands";
}

TEST(AutomaticExecution, LeavesDynamicWhatVariesByMoreThanRows) {
  EXPECT_EQ(choice(FlowBuilder::from(add()), {TensorSpec::kVaries, 4}),
            "dynamic, because the sizes of \"input\" vary from batch to batch");
  EXPECT_EQ(choice(FlowBuilder::from(sigmoid_router(4, 2)), {3, 4}), "compiled");
}

TEST(AutomaticExecution, LeavesDynamicWhatCarriesAState) {
  const FlowBuilder recurrent =
      FlowBuilder::from(sigmoid_router(4, 4)).through(state_add()).using_({"sum"}).tag("sum");
  EXPECT_EQ(choice(recurrent), "dynamic, because it carries a state from batch to batch");
}

TEST(AutomaticExecution, LeavesDynamicWhatCannotBeLowered) {
  const std::string expected = "dynamic, because none of its layers can be compiled";
  EXPECT_EQ(choice(FlowBuilder::from(times(2)).through(plus(1))), expected);
  class Logging final : public Layer, public LogsValues, public Lowerable {
   public:
    at::Tensor forward(const Inputs& inputs, LayerContext&) override { return inputs[0]; }
    std::optional<PlanValue> lower(PlanBuilder&, std::span<const PlanValue> inputs) const override {
      return inputs[0];
    }
    std::vector<std::string> logged_names() const override { return {"mean"}; }
  };
  EXPECT_EQ(choice(FlowBuilder::from(std::make_shared<Logging>())), expected)
      << "a plan calls a layer that logs";
}

TEST(AutomaticExecution, LeavesDynamicWhereCalledLayersDoNearlyAllOfTheWork) {
  // A module that no plan knows: products of 16 numbers in, 16 out.
  const auto called = [] {
    torch::nn::Linear linear(16, 16);
    linear->to(at::kDouble);
    return linear;
  };
  const std::string expected =
      "dynamic, because layers that cannot be compiled do nearly all of its work";
  EXPECT_EQ(choice(FlowBuilder::from(called()).through(rows(16, 1)), {16}), expected);
  EXPECT_EQ(choice(FlowBuilder::from(called()).through(called()).through(rows(16, 3)), {16}),
            expected)
      << "all of them together";
  EXPECT_EQ(choice(FlowBuilder().loop(called()).times(20).through(rows(16, 16)), {16}), expected)
      << "in each round";
  EXPECT_EQ(choice(FlowBuilder::from(recompute(rows(16, 16))).through(rows(16, 1)), {16}), expected)
      << "a plan calls what is recomputed";

  EXPECT_EQ(choice(FlowBuilder::from(called()).through(rows(16, 2)), {16}), "compiled")
      << "eight ninths";
  EXPECT_EQ(choice(FlowBuilder::from(called()).loop(rows(16, 16)).times(2), {16}), "compiled")
      << "a third, as the attention of a transformer";
  EXPECT_EQ(choice(FlowBuilder::from(times(2)).through(sigmoid_router(4, 2))), "compiled")
      << "a layer without weights has no work";
}

TEST(AutomaticExecution, LeavesBranchesAloneThatRunInParallel) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 4}, at::kDouble)};
  spec.dtype = at::kDouble;
  const auto graph =
      FlowBuilder().split({sigmoid_router(4, 2), sigmoid_router(4, 2)}).merge(mean()).build(spec);
  graph->set_branches(Branches::kParallel);
  graph->set_execution(Execution::kAuto);
  EXPECT_EQ(graph->execution_choice(), "dynamic, because its branches run in parallel");
}

TEST(AutomaticExecution, IsForgottenWhereSomebodyDecides) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 4}, at::kDouble)};
  spec.dtype = at::kDouble;
  const auto graph = FlowBuilder::from(sigmoid_router(4, 2)).build(spec);
  EXPECT_EQ(graph->execution_choice(), "") << "nobody asked";
  graph->set_execution(Execution::kAuto);
  graph->set_execution(Execution::kDynamic);
  EXPECT_EQ(graph->execution_choice(), "");
  EXPECT_EQ(graph->execution(), Execution::kDynamic);
}

TEST(AutomaticExecution, HasTheNamesThatDocumentsHave) {
  EXPECT_EQ(execution_named("auto"), Execution::kAuto);
  EXPECT_EQ(execution_named("compiled"), Execution::kCompiled);
  EXPECT_EQ(execution_named("dynamic"), Execution::kDynamic);
  EXPECT_THROW(execution_named("fast"), ContractViolation);
}

}  // namespace
}  // namespace treadle::graph::testing
