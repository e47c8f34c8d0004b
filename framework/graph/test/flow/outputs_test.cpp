// Layers with several outputs, and flows with several within a flow.
#include "pass.h"
#include "small_parts.h"

#include <algorithm>

#include <ATen/ops/randn.h>

#include <treadle/base/error.h>
#include <treadle/plan/plan.h>

#include "compile/planned_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<Twins> twins() {
  return std::make_shared<Twins>(2, 10);
}

std::vector<double> numbers_of(Graph& graph, const at::Tensor& input) {
  return numbers(graph.forward(input));
}

TEST(Outputs, AFurtherOutputIsAValueLikeAnother) {
  const auto layer = twins();
  const auto graph = FlowBuilder::from(layer)
                         .tag_output("twin", "twin")
                         .through(plus_reference())
                         .using_({"twin"})
                         .build(spec_of({{2}}));

  EXPECT_THAT(numbers_of(*graph, row({1, 2})), ElementsAre(12, 24));
  EXPECT_EQ(layer->signs, 0) << "nobody uses it";
}

TEST(Outputs, ASizeIsKnownBeforeAForward) {
  const auto graph = FlowBuilder::from(twins()).tag_output("sign", "sign").build(spec_of({{2}}));

  const NodeInfo& output = graph->nodes()[*graph->find_tag("sign")];

  EXPECT_EQ(output.kind, NodeKind::kOutput);
  EXPECT_EQ(output.id, "Twins_0.sign");
  ASSERT_TRUE(output.result.has_value());
  EXPECT_EQ(output.result->text(), "[B, 2] bool");
}

TEST(Outputs, TheStreamGoesOnFromOne) {
  const auto graph = FlowBuilder::from(twins())
                         .tag_output("twin", "twin")
                         .tag("first")
                         .at({"first", "twin"})
                         .merge(cat(1))
                         .build(spec_of({{1}}));

  EXPECT_THAT(numbers_of(*graph, row({1})), ElementsAre(2, 10));
}

TEST(Outputs, OneCanBeAnOutputOfTheGraph) {
  const auto graph = FlowBuilder::from(twins())
                         .tag("first")
                         .tag_output("sign", "sign")
                         .outputs({"sign", "first"})
                         .build(spec_of({{2}}));
  GraphState state(*graph);

  const std::vector<at::Tensor> outputs = graph->run(std::vector{row({-1, 3})}, state);

  EXPECT_THAT(numbers(outputs[0]), ElementsAre(0, 1));
  EXPECT_THAT(numbers(outputs[1]), ElementsAre(-2, 6));
}

TEST(Outputs, OneCanBeAState) {
  const auto graph = FlowBuilder::from(state_add())
                         .using_({"memory"})
                         .through(twins())
                         .tag_output("twin", "memory")
                         .build(spec_of({{1}}));
  GraphState state(*graph);
  const auto step = [&](double x) {
    return numbers(graph->run(std::vector{row({x})}, state).front());
  };

  EXPECT_THAT(step(1), ElementsAre(2));
  EXPECT_THAT(step(1), ElementsAre(22)) << "1 + 10 · 1, times 2";
}

TEST(Outputs, AFlowWithinGivesAllOfItsOutputs) {
  const FlowBuilder within =
      FlowBuilder::from(times(2)).tag("half").through(times(3)).tag("whole").outputs(
          {"whole", "half"});
  const auto graph = FlowBuilder::from(within)
                         .tag_output("half", "taken")
                         .through(plus_reference(100))
                         .using_({"taken"})
                         .build(spec_of({{1}}));

  EXPECT_THAT(numbers_of(*graph, row({1})), ElementsAre(206));
}

/// Both outputs used twice, one of them through a branch, and a state.
FlowBuilder tangled(const std::shared_ptr<Twins>& layer) {
  const FlowBuilder within = FlowBuilder::from(layer)
                                 .tag("first")
                                 .tag_output("twin", "twin")
                                 .through(plus_reference(0.5))
                                 .using_({"twin"})
                                 .tag("sum")
                                 .outputs({"sum", "first", "twin"});
  return FlowBuilder::from(rows(6, 6))
      .through(within)
      .tag_output("first", "a")
      .tag_output("twin", "b")
      .split({rows(6, 6), rows(6, 6)})
      .merge(add())
      .through(layer)
      .tag_output("twin", "c")
      .through(plus_reference(-1))
      .using_({"a"})
      .through(plus_reference(0.25))
      .using_({"b"})
      .through(plus_reference(3))
      .using_({"c"})
      .through(plus_reference(0.125))
      .using_({"a"});
}

TEST(Outputs, HaveTheSameBitsHoweverTheGraphRuns) {
  const TaskRandom weights(3);
  const auto graph = tangled(std::make_shared<Twins>(0.7, -1.3)).build(spec_of({{6}}));
  const Pass expected = pass_through(*graph, Branches::kSequential);
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    graph->set_execution(execution);
    for (const Branches branches : {Branches::kSequential, Branches::kParallel})
      with_threads(3, [&] { expect_same(pass_through(*graph, branches), expected); });
  }
}

TEST(Outputs, APlanCallsTheLayerAndSaysWhy) {
  const TaskRandom weights(3);
  const auto graph = tangled(twins()).build(spec_of({{6}}));
  graph->set_execution(Execution::kCompiled);

  const plan::Plan plan = graph->compile(std::vector{at::randn({5, 6}, at::kDouble)});

  const std::vector<plan::CallInfo> calls = plan.calls();
  const auto said = std::count_if(calls.begin(), calls.end(), [](const plan::CallInfo& call) {
    return call.why == "it has several outputs";
  });
  EXPECT_EQ(said, 2) << "once in the flow within";
}

TEST(Outputs, GradientsOfOneOutputAloneReachItsWeights) {
  const auto layer = twins();
  const auto graph =
      FlowBuilder::from(layer).tag_output("twin", "twin").outputs({"twin"}).build(spec_of({{2}}));
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    graph->set_execution(execution);
    forget_gradients(*graph);
    graph->forward(row({1, 2})).sum().backward();

    EXPECT_THAT(numbers(layer->other.grad()), ElementsAre(3));
    EXPECT_FALSE(layer->weight.grad().defined());
  }
}

TEST(Outputs, AnUnknownOneIsAMistakeThatNamesThem) {
  EXPECT_THAT(mistakes(FlowBuilder::from(twins()).tag_output("twins", "t")),
              AllOf(HasSubstr("has no output \"twins\""), HasSubstr("output, twin, sign"),
                    HasSubstr("\"twin\"?")));
  EXPECT_THAT(mistakes(FlowBuilder::from(times(2)).tag_output("twin", "t")),
              HasSubstr("its one output is \"output\""));
  EXPECT_THAT(mistakes(FlowBuilder().loop(times(2)).times(2).tag_output("twin", "t")),
              HasSubstr("has one output"));
  EXPECT_THAT(
      mistakes(FlowBuilder().split({times(1), times(2)}).tag_output("twin", "t").merge(add())),
      HasSubstr("has one output"));
}

/// Names an output that it does not set.
class Forgetful : public Layer, public NamesOutputs {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return inputs[0]; }
  std::vector<std::string> output_names() const override { return {"promised"}; }
};

TEST(Outputs, OneThatIsNotSetIsAnErrorOfTheLayer) {
  const auto graph =
      FlowBuilder::from(std::make_shared<Forgetful>()).tag_output("promised", "p").build();
  try {
    graph->forward(row({1}));
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("promised"), HasSubstr("set_output")));
  }
}

}  // namespace
}  // namespace treadle::graph
