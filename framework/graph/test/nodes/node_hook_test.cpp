// Every node of a forward, seen from outside.
#include <map>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::ElementsAre;

using Told = std::vector<std::pair<std::string, std::vector<double>>>;

Told told_by(const Graph& graph, const at::Tensor& input) {
  Told told;
  GraphState state(graph);
  state.on_each_node([&](const std::string& node, const at::Tensor& value) {
    told.emplace_back(node, numbers(value));
  });
  graph.run({&input, 1}, state);
  return told;
}

using Values = std::vector<double>;

TEST(NodeHook, IsToldTheValueOfEachNodeInTheOrderOfTheFlow) {
  const auto graph =
      FlowBuilder::from(times(2)).named("doubled").split({plus(1), plus(2)}).merge(add()).build();

  EXPECT_EQ(told_by(*graph, row({3})), (Told{{"doubled", Values{6}},
                                             {"Function_0", Values{7}},
                                             {"Function_1", Values{8}},
                                             {"add_0", Values{15}}}));
}

TEST(NodeHook, IsToldOfGraphsWithinAndOfEachRound) {
  const auto graph = FlowBuilder::from(FlowBuilder::from(times(2)).through(plus(1)))
                         .named("inner")
                         .loop(FlowBuilder::from(plus(1)).through(times(10)))
                         .times(2)
                         .named("rounds")
                         .build();

  EXPECT_EQ(told_by(*graph, row({1})), (Told{{"inner.Function_0", Values{2}},
                                             {"inner.Function_1", Values{3}},
                                             {"inner", Values{3}},
                                             {"rounds.body.Function_0", Values{4}},
                                             {"rounds.body.Function_1", Values{40}},
                                             {"rounds.body.Function_0", Values{41}},
                                             {"rounds.body.Function_1", Values{410}},
                                             {"rounds", Values{410}}}));
}

// f = 10 · (2x)², x = 3: df/d(2x) = 20 · 6, df/d(10 (2x)²) = 1.
TEST(NodeHook, GetsGradientsFromTheValuesItIsTold) {
  const auto graph = FlowBuilder::from(times(2))
                         .named("doubled")
                         .through([](const at::Tensor& x) { return x.square(); })
                         .named("squared")
                         .through(times(10))
                         .build();
  std::map<std::string, double> gradients;
  GraphState state(*graph);
  state.on_each_node([&](const std::string& node, const at::Tensor& value) {
    value.register_hook([&gradients, node](const at::Tensor& gradient) {
      gradients[node] = gradient.item<double>();
    });
  });
  const at::Tensor input = row({3}).requires_grad_();

  graph->run({&input, 1}, state).front().sum().backward();

  EXPECT_EQ(gradients,
            (std::map<std::string, double>{{"doubled", 120}, {"squared", 10}, {"Function_0", 1}}));
}

TEST(NodeHook, ChangesNoBitAndEnds) {
  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    const auto graph = FlowBuilder::from(std::make_shared<Scale>(0.3))
                           .split({times(0.7), times(0.9)})
                           .merge(mean())
                           .build(spec_of({{2}}));
    graph->set_execution(execution);
    graph->set_branches(Branches::kParallel);
    const at::Tensor input = row({0.1, 0.2});
    GraphState state(*graph);
    const at::Tensor wanted = graph->run({&input, 1}, state).front();
    int nodes = 0;
    state.on_each_node([&](const std::string&, const at::Tensor&) { ++nodes; });
    EXPECT_TRUE(at::equal(graph->run({&input, 1}, state).front(), wanted));
    EXPECT_EQ(nodes, 4);
    state.on_each_node({});
    EXPECT_TRUE(at::equal(graph->run({&input, 1}, state).front(), wanted));
    EXPECT_EQ(nodes, 4);
  }
}

TEST(NodeHook, FailsTheForwardByWhatItThrows) {
  const auto graph = FlowBuilder::from(times(2)).named("doubled").build();
  GraphState state(*graph);
  state.on_each_node([](const std::string&, const at::Tensor& value) {
    if (!value.isfinite().all().item<bool>())
      throw TrainingError("has a value that is not finite");
  });
  const at::Tensor input = row({1 / 0.0});
  try {
    graph->run({&input, 1}, state);
    FAIL() << "nothing was thrown";
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("doubled"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("not finite"));
  }
}

}  // namespace
}  // namespace treadle::graph
