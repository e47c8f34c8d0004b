// Nodes in any order.
#include <treadle/graph/graph_wiring.h>

#include "small_parts.h"

#include <torch/nn/modules/linear.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::ElementsAre;

std::string mistakes_of(const GraphWiring& wiring, const std::vector<std::string>& outputs) {
  try {
    wiring.build(outputs);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> ids_of(const Graph& graph) {
  std::vector<std::string> ids;
  for (const NodeInfo& node : graph.nodes())
    ids.push_back(node.id);
  return ids;
}

TEST(GraphWiring, TakesNodesInAnyOrder) {
  GraphWiring wiring({"x"});
  wiring.node("sum", add(), {"tens", "hundreds", "x"});
  wiring.node("hundreds", times(10), {"tens"});
  wiring.node("tens", times(10), {"x"});

  const auto graph = wiring.build({"sum"});

  EXPECT_THAT(numbers(graph->forward(row({1, 2}))), ElementsAre(111, 222));
}

TEST(GraphWiring, NodesRunAsTheyWereNamedWhereNothingElseIsNeeded) {
  GraphWiring wiring({"x"});
  wiring.node("b", times(2), {"x"}).node("a", times(3), {"x"}).node("c", add(), {"a", "b"});

  EXPECT_THAT(ids_of(*wiring.build({"c"})), ElementsAre("input", "b", "a", "c"));
}

TEST(GraphWiring, LeavesOutWhatNoOutputNeeds) {
  int calls = 0;
  const Part counting = [&calls](const at::Tensor& x) {
    ++calls;
    return x;
  };
  GraphWiring wiring({"x"});
  wiring.node("needed", times(2), {"x"});
  wiring.node("aside", counting, {"needed"});
  wiring.node("beyond", torch::nn::Linear(3, 3), {"aside"});

  const auto graph = wiring.build({"needed"});
  graph->forward(row({1}));

  EXPECT_THAT(ids_of(*graph), ElementsAre("input", "needed"));
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(graph->parameters().empty());
}

TEST(GraphWiring, HasSeveralInputsAndOutputs) {
  GraphWiring wiring({"x", "y"});
  wiring.node("difference", plus_reference(-1), {"x", "y"});
  const auto graph = wiring.build({"difference", "y"}, spec_of({{1}, {1}}));
  GraphState state(*graph);
  const std::vector<at::Tensor> inputs{row({5}), row({3})};

  const std::vector<at::Tensor> outputs = graph->run(inputs, state);

  ASSERT_EQ(outputs.size(), 2);
  EXPECT_THAT(numbers(outputs[0]), ElementsAre(2));
  EXPECT_THAT(numbers(outputs[1]), ElementsAre(3));
}

TEST(GraphWiring, IsAFlowThatCanBeGoneOn) {
  GraphWiring wiring({"x"});
  wiring.node("doubled", times(2), {"x"});
  FlowBuilder flow = wiring.flow({"doubled"});
  flow.outputs({}).through(plus(1));

  EXPECT_THAT(numbers(flow.build()->forward(row({4}))), ElementsAre(9));
}

TEST(GraphWiring, HasConstantsAndParametersThatNeedNoOtherNode) {
  GraphWiring wiring({"x"});
  wiring.node("scaled", multiply(), {"x", "scale"});
  wiring.node("y", add(), {"scaled", "offset"});
  wiring.parameter("scale", {2}, /*mean=*/3, /*std=*/0);
  wiring.constant("offset", at::tensor({10.0, 20.0}));
  const auto graph = wiring.build({"y"}, spec_of({{2}}));
  const at::Tensor rows = at::tensor({1.0, 2.0, -1.0, 0.5}, at::kFloat).view({2, 2});

  const at::Tensor y = graph->forward(rows);
  y.sum().backward();

  EXPECT_THAT(numbers(y.view({1, 4})), ElementsAre(13, 26, 7, 21.5));
  ASSERT_EQ(graph->parameters().size(), 1);
  EXPECT_EQ(graph->named_parameters().front().key(), "scale.weight");
  EXPECT_THAT(numbers(graph->parameters().front().grad().view({1, 2})), ElementsAre(0, 2.5));
}

TEST(GraphWiring, GivesAConstantAsAnOutputOfItsOwn) {
  GraphWiring wiring({"x"});
  wiring.constant("one", at::tensor({1.0}));

  EXPECT_EQ(wiring.build({"one"})->forward(at::zeros({3, 2})).sizes(), (at::IntArrayRef{3, 1}));
}

TEST(GraphWiring, ReportsACycleAsAPathOfNames) {
  GraphWiring wiring({"x"});
  wiring.node("a", add(), {"x", "c"});
  wiring.node("b", times(2), {"a"});
  wiring.node("c", times(2), {"b"});
  wiring.node("end", times(2), {"x"});

  EXPECT_EQ(mistakes_of(wiring, {"end"}), "the graph has a cycle: a -> b -> c -> a");
  GraphWiring itself({"x"});
  itself.node("a", add(), {"x", "a"});
  EXPECT_EQ(mistakes_of(itself, {"a"}), "the graph has a cycle: a -> a");
}

TEST(GraphWiring, ReportsEveryMistakeAtOnce) {
  GraphWiring wiring({"x"});
  wiring.node("encoder", times(2), {"x"});
  wiring.node("encoder", times(3), {"x"});
  wiring.node("source", times(1), {});
  wiring.node("sum", add(), {"encodr", "x"});

  EXPECT_EQ(mistakes_of(wiring, {"summ"}),
            "two nodes or inputs are named \"encoder\"\n"
            "\"source\" is given nothing; of all nodes only a constant() or a parameter() needs no "
            "input\n"
            "\"sum\" needs \"encodr\", which is no node or input; did you mean \"encoder\"?\n"
            "the output needs \"summ\", which is no node or input; did you mean \"sum\"?");
  EXPECT_EQ(mistakes_of(GraphWiring({"x"}), {}),
            "no output is named; a graph gives the value of one node at least");
}

}  // namespace
}  // namespace treadle::graph
