// Backward beside finite differences, for every kind of node and what it is
// made of.
#include "small_parts.h"

#include <functional>

#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/gradient_check.h>

namespace treadle::graph {
namespace {

using namespace testing;
using treadle::testing::Differentiated;
using treadle::testing::gradients_match;
using treadle::testing::parameters_of;
using treadle::testing::PrintTo;
using treadle::testing::weighted_sum;

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kWidth = 3;

/// tanh(x Wᵀ + b) in float64: a net whose slopes are different everywhere.
Part dense(std::int64_t in = kWidth, std::int64_t out = kWidth) {
  torch::nn::Linear linear(in, out);
  linear->to(at::kDouble);
  return FlowBuilder::from(linear).through([](const at::Tensor& x) { return x.tanh(); });
}

/// tanh(x Wᵀ + reference Vᵀ)
class Joined : public torch::nn::Module {
 public:
  Joined()
      : of_stream(register_module("of_stream", torch::nn::Linear(kWidth, kWidth))),
        of_reference(register_module("of_reference", torch::nn::Linear(kWidth, kWidth))) {
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& reference) {
    return of_stream->forward(x).add(of_reference->forward(reference)).tanh();
  }
  torch::nn::Linear of_stream;
  torch::nn::Linear of_reference;
};

Part joined() {
  return std::make_shared<Joined>();
}

/// One number for each row, of the first column's sign: 0 or 1.
Part sign_of_first() {
  return [](const at::Tensor& x) { return x.narrow(-1, 0, 1).gt(0).to(at::kLong); };
}

struct GradientCase {
  std::string name;
  std::function<FlowBuilder()> make;
  std::int64_t width = kWidth;
};

class NodeGradients : public ::testing::TestWithParam<GradientCase> {};

const GradientCase kCases[] = {
    {"Call", [] { return FlowBuilder::from(dense()); }},
    {"CallWithReference",
     [] {
       return FlowBuilder::from(dense()).tag("a").through(dense()).through(joined()).using_({"a"});
     }},
    {"Residual", [] { return FlowBuilder().residual(dense()); }},
    {"ResidualWithReference",
     [] { return FlowBuilder::from(dense()).tag("a").residual(joined()).using_({"a"}); }},
    {"MergedByAdd",
     [] {
       return FlowBuilder().split({dense(), dense()}).merge(add());
     }},
    {"MergedByMean",
     [] {
       return FlowBuilder().split({dense(), dense(), dense()}).merge(mean());
     }},
    {"MergedByMultiply",
     [] {
       return FlowBuilder().split({dense(), dense()}).merge(multiply());
     }},
    {"MergedByCat",
     [] {
       return FlowBuilder().split({dense(), dense(kWidth, 2)}).merge(cat(1));
     }},
    {"MergedByStateAdd",
     [] {
       return FlowBuilder().split({dense(), dense()}).merge(state_add());
     }},
    {"SplitWithReference",
     [] {
       return FlowBuilder::from(dense())
           .tag("a")
           .split({joined(), joined()})
           .using_({"a"})
           .merge(add());
     }},
    {"MixtureBySoftmax",
     [] {
       return FlowBuilder().mixture_of_experts(softmax_router(kWidth, 3),
                                               {dense(), dense(), dense()});
     }},
    {"MixtureBySigmoid",
     [] {
       return FlowBuilder().mixture_of_experts(sigmoid_router(kWidth, 2), {dense(), dense()});
     }},
    {"MixtureWithReference",
     [] {
       return FlowBuilder::from(dense())
           .tag("a")
           .through(dense())
           .mixture_of_experts(softmax_router(kWidth, 2), {dense(), dense()})
           .using_({"a"});
     }},
    {"SwitchByRow",
     [] {
       return FlowBuilder().switch_(sign_of_first(), {dense(), dense()}, SwitchBy::kRow);
     }},
    {"SwitchByBatch",
     [] {
       return FlowBuilder().switch_(fixed_selector(1), {dense(), dense()});
     }},
    {"LoopTimes", [] { return FlowBuilder().loop(dense()).times(3); }},
    {"LoopTimesWithReference",
     [] {
       return FlowBuilder::from(dense()).tag("a").through(dense()).loop(joined()).times(3).using_(
           {"a"});
     }},
    {"LoopWhile", [] { return FlowBuilder().loop(dense()).while_(threshold_halt(50), 3); }},
    {"LoopUntil", [] { return FlowBuilder().loop(dense()).until(threshold_halt(-50), 3); }},
    {"LoopAdaptive",  // at no cost: that is not a part of what the forward gives
     [] { return FlowBuilder().loop(dense()).adaptively(learned_halt(kWidth), 4, {.cost = 0}); }},
    {"MapOfRows", [] { return FlowBuilder().map(dense()).each(); }},
    {"MapOfRowsBatched", [] { return FlowBuilder().map(dense()).batched().each(); }},
    {"MapOverATag",
     [] { return FlowBuilder::from(dense()).tag("a").through(identity()).map(dense()).over("a"); }},
    {"MapOfSlices", [] { return FlowBuilder().map(dense(2, 2)).slices(3); }, 6},
    {"MapOfSlicesBatched", [] { return FlowBuilder().map(dense(2, 2)).batched().slices(3); }, 6},
    {"MapWithReference",
     [] {
       const Part of_one = [](const at::Tensor& x) { return x.mean(0, /*keepdim=*/true); };
       return FlowBuilder::from(of_one)
           .tag("a")
           .at({"a"})
           .through(dense())
           .map(joined())
           .each()
           .using_({"a"});
     }},
    {"GraphWithin",
     [] {
       return FlowBuilder::from(dense()).through(
           FlowBuilder::from(dense()).residual(dense()).build(spec_of({{kWidth}})));
     }},
    {"FlowWithinLoopWithinMap",
     [] {
       const FlowBuilder round = FlowBuilder::from(dense())
                                     .tag("b")
                                     .residual(dense())
                                     .split({dense(), dense()})
                                     .merge(mean());
       return FlowBuilder().map(FlowBuilder().loop(round).times(2)).batched().each();
     }},
    {"SharedWeights",
     [] {
       torch::nn::Linear shared(kWidth, kWidth);
       shared->to(at::kDouble);
       return FlowBuilder::from(shared).through(shared).residual(shared);
     }},
    {"AtTwoTags",
     [] {
       return FlowBuilder::from(dense())
           .tag("a")
           .through(dense())
           .tag("b")
           .at({"a", "b"})
           .merge(multiply());
     }},
};

/// In float64: parts by name, such as routers, are made so.
std::shared_ptr<Graph> build(const GradientCase& tested) {
  const TaskRandom random(17);
  return tested.make().build(spec_of({{tested.width}}));
}

/// Rows of either sign, for what chooses by it.
at::Tensor batch_of_rows(std::int64_t width) {
  const TaskRandom random(18);
  at::Tensor rows = at::randn({kRows, width}, at::kDouble);
  rows.select(1, 0).abs_().mul_(at::tensor({1.0, -1.0, -1.0, 1.0}, at::kDouble));
  return rows;
}

TEST_P(NodeGradients, AreTheSlopes) {
  const auto graph = build(GetParam());
  const at::Tensor input = batch_of_rows(GetParam().width);
  std::vector<Differentiated> by = parameters_of(*graph);
  by.push_back({"input", input});

  const auto match = [&] {
    return gradients_match([&] { return weighted_sum({graph->forward(input)}); }, by);
  };
  graph->set_branches(Branches::kSequential);
  EXPECT_TRUE(match()) << "branches one by one";
  graph->set_branches(Branches::kParallel);
  EXPECT_TRUE(match()) << "branches at once";
  graph->set_execution(Execution::kCompiled);
  EXPECT_TRUE(match()) << "compiled, branches called at once";
  graph->set_branches(Branches::kSequential);
  EXPECT_TRUE(match()) << "compiled, branches as operations";
}

// A parameter that backward forgets would have slopes of zero in a check of what is there.
TEST_P(NodeGradients, ReachEveryParameterThatWasUsed) {
  const auto graph = build(GetParam());

  graph->forward(batch_of_rows(GetParam().width)).square().sum().backward();

  for (const auto& parameter : graph->named_parameters()) {
    const bool is_chosen =
        parameter.key().find("branch_0") == std::string::npos || GetParam().name != "SwitchByBatch";
    EXPECT_EQ(parameter.value().grad().defined(), is_chosen) << parameter.key();
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, NodeGradients, ::testing::ValuesIn(kCases),
                         treadle::testing::CaseName());

// --- Over two forwards.

/// A cell: tanh(x Wᵀ + state Vᵀ), whose output is the state of the next forward.
std::shared_ptr<Graph> cell() {
  const TaskRandom random(19);
  return FlowBuilder::from(joined())
      .using_({"memory"})
      .tag("memory")
      .initial("memory", {kWidth}, 0.3)
      .build(spec_of({{kWidth}}));
}

struct TwoInputs {
  TwoInputs() {
    const TaskRandom random(20);
    first = at::randn({kRows, kWidth}, at::kDouble);
    second = at::randn({kRows, kWidth}, at::kDouble);
  }
  at::Tensor first;
  at::Tensor second;
};

TEST(StateGradients, GoBackThroughTheForwardBefore) {
  const auto graph = cell();
  const TwoInputs inputs;
  std::vector<Differentiated> by = parameters_of(*graph);
  by.push_back({"first", inputs.first});
  by.push_back({"second", inputs.second});

  EXPECT_TRUE(gradients_match(
      [&] {
        GraphState state(*graph);
        const at::Tensor first = graph->run({&inputs.first, 1}, state).front();
        return weighted_sum({first, graph->run({&inputs.second, 1}, state).front()});
      },
      by));
}

// What came before is a number then: differences must not move it, so it is computed once.
TEST(StateGradients, EndWhereTheyAreCut) {
  const auto graph = cell();
  const TwoInputs inputs;
  GraphState before(*graph);
  graph->run({&inputs.first, 1}, before);
  before.detach();
  const StateDict saved = before.state().snapshot();
  std::vector<Differentiated> by = parameters_of(*graph);
  by.push_back({"second", inputs.second});

  EXPECT_TRUE(gradients_match(
      [&] {
        GraphState state(*graph);
        state.load_state(saved);
        return weighted_sum({graph->run({&inputs.second, 1}, state).front()});
      },
      by));

  // And the cut forward has the same gradients.
  graph->zero_grad();
  GraphState state(*graph);
  graph->run({&inputs.first, 1}, state);
  state.detach();
  weighted_sum({graph->run({&inputs.second, 1}, state).front()}).backward();
  const std::vector<at::Tensor> cut = [&] {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : graph->parameters())
      gradients.push_back(parameter.grad().clone());
    return gradients;
  }();
  graph->zero_grad();
  GraphState loaded(*graph);
  loaded.load_state(saved);
  weighted_sum({graph->run({&inputs.second, 1}, loaded).front()}).backward();
  for (std::size_t i = 0; i < cut.size(); ++i)
    EXPECT_TRUE(cut[i].equal(graph->parameters()[i].grad())) << i;
}

}  // namespace
}  // namespace treadle::graph
