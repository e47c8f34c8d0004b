#include "small_parts.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Pointwise;

std::vector<double> run(const FlowBuilder& flow, const at::Tensor& input) {
  return numbers(flow.build()->forward(input));
}

TEST(FlowVerbs, ThroughGoesOnePartAfterTheOther) {
  EXPECT_THAT(run(FlowBuilder::from(times(2)).through(plus(1)), row({1, 5})), ElementsAre(3, 11));
}

TEST(FlowVerbs, ResidualAddsToTheStream) {
  EXPECT_THAT(run(FlowBuilder().residual(times(3)), row({1, 2})), ElementsAre(4, 8));
}

TEST(FlowVerbs, UsingAfterAlsoReachesThePartWithin) {
  const auto flow = FlowBuilder::from(times(10))
                        .tag("tens")
                        .through(times(0))
                        .residual(plus_reference())
                        .using_({"tens"});

  EXPECT_THAT(run(flow, row({1})), ElementsAre(10));
}

TEST(FlowVerbs, SplitGivesEveryBranchTheStreamAndMergeTakesThemInOrder) {
  const auto flow =
      FlowBuilder::from(plus(1)).split({times(1), times(10), times(100)}).merge(cat(1));

  EXPECT_THAT(run(flow, row({1})), ElementsAre(2, 20, 200));
}

TEST(FlowVerbs, MergesOfAllKinds) {
  const auto merged = [](const Part& part) {
    return run(FlowBuilder().split({times(1), times(2), times(6)}).merge(part), row({1, 2}));
  };
  EXPECT_THAT(merged(add()), ElementsAre(9, 18));
  EXPECT_THAT(merged(mean()), ElementsAre(3, 6));
  EXPECT_THAT(merged(multiply()), ElementsAre(12, 96));
}

TEST(FlowVerbs, UsingAfterSplitReachesEveryBranch) {
  const auto flow = FlowBuilder::from(times(1))
                        .tag("x")
                        .through(times(0))
                        .split({plus_reference(1), plus_reference(2)})
                        .using_({"x"})
                        .merge(cat(1));

  EXPECT_THAT(run(flow, row({5})), ElementsAre(5, 10));
}

TEST(FlowVerbs, TagGroupNamesEveryStream) {
  const auto graph =
      FlowBuilder().split({times(2), times(3)}).tag_group("heads").merge(add()).build();
  GraphState state(*graph);
  graph->run(std::vector<at::Tensor>{row({1})}, state);

  EXPECT_THAT(graph->tag_group("heads"), ElementsAre("heads_0", "heads_1"));
  EXPECT_THAT(numbers(state.tagged("heads_1")), ElementsAre(3));
  EXPECT_TRUE(graph->tag_group("tails").empty());
}

TEST(FlowVerbs, FurtherInputsAreTagsInTheirOrder) {
  const auto graph = FlowBuilder::from(times(1))
                         .input({"a", "b"})
                         .through(plus_reference(10))
                         .using_({"b"})
                         .build();
  GraphState state(*graph);

  EXPECT_THAT(graph->input_names(), ElementsAre("a", "b"));
  EXPECT_THAT(
      numbers(graph->run(std::vector<at::Tensor>{row({1}), row({2}), row({3})}, state).front()),
      ElementsAre(31));
}

TEST(FlowVerbs, AtGoesOnFromTags) {
  const auto flow = FlowBuilder::from(times(2))
                        .tag("a")
                        .through(times(2))
                        .tag("b")
                        .through(times(100))
                        .at({"a", "b"})
                        .merge(cat(1));

  EXPECT_THAT(run(flow, row({1})), ElementsAre(2, 4));
}

// Cells by row, column, layer, whatever the order of the branches.
TEST(FlowVerbs, GridCatGoesByPosition) {
  const auto flow = FlowBuilder()
                        .split({times(1), times(10), times(100), times(1000)})
                        .merge(grid_cat({2, 2, 2}, {{1, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, 0, 0}}));

  EXPECT_THAT(run(flow, row({3})), ElementsAre(3000, 30, 300, 3));
}

TEST(FlowVerbs, MixtureWeighsEveryExpert) {
  const Part weights = [](const at::Tensor& x) {
    return at::tensor({0.25, 2.0}, at::kDouble).expand({x.size(0), 2});
  };
  const auto flow = FlowBuilder().mixture_of_experts(weights, {times(4), times(10)});

  EXPECT_THAT(run(flow, row({1, 2})), ElementsAre(21, 42));
}

TEST(FlowVerbs, MixturePadsNarrowerExperts) {
  const Part weights = [](const at::Tensor& x) {
    return at::tensor({0.5, 2.0}, at::kDouble).expand({x.size(0), 2});
  };
  const Part first = [](const at::Tensor& x) { return x.narrow(1, 0, 1); };
  const auto flow = FlowBuilder().mixture_of_experts(weights, {first, times(10)}, {.pad = true});

  EXPECT_THAT(run(flow, row({1, 2, 4})), ElementsAre(20.5, 40, 80));
}

TEST(FlowVerbs, StreamPassesDisabledStepsBy) {
  const Part halves = [](const at::Tensor& x) { return x.mul(0.5); };
  const auto flow = FlowBuilder()
                        .through(times(3))
                        .through(times(10))
                        .disabled()
                        .tag("x")
                        .residual(times(10))
                        .disabled()
                        .mixture_of_experts(halves, {times(1), times(2)})
                        .disabled()
                        .loop(times(2))
                        .times(4)
                        .disabled()
                        .at({"x"})
                        .through(times(2));

  EXPECT_THAT(run(flow, row({1, 2})), ElementsAre(6, 12));
}

TEST(FlowVerbs, DisabledStepKeepsItsPlaceAmongIds) {
  const auto ids = [](bool enabled) {
    FlowBuilder flow;
    flow.through(softmax_router(2, 2));
    if (!enabled)
      flow.disabled();
    const auto graph = flow.through(softmax_router(2, 2)).build();
    std::vector<std::string> names;
    for (const auto& parameter : graph->named_parameters())
      names.push_back(parameter.key());
    return names;
  };

  EXPECT_THAT(ids(true), ::testing::SizeIs(4));
  EXPECT_THAT(ids(false), ElementsAre("softmax_router_1.weight", "softmax_router_1.bias"));
}

TEST(FlowVerbs, MixtureWeighsEachRowByItself) {
  // Row r has the weights (r, 1).
  const Part weights = [](const at::Tensor& x) {
    return at::cat({x.narrow(1, 0, 1), at::ones({x.size(0), 1}, at::kDouble)}, 1);
  };
  const auto flow = FlowBuilder().mixture_of_experts(weights, {times(10), times(1)});

  EXPECT_THAT(run(flow, column({1, 2, 3})), ElementsAre(11, 42, 93));
}

TEST(FlowVerbs, MixtureWeighsWholeImagesOfARow) {
  const Part weights = [](const at::Tensor& x) {
    return at::tensor({1.0, 2.0}, at::kDouble).expand({x.size(0), 2});
  };
  const auto graph = FlowBuilder().mixture_of_experts(weights, {times(1), times(1)}).build();

  const at::Tensor given = graph->forward(at::ones({2, 3, 4, 5}, at::kDouble));

  EXPECT_EQ(given.sizes(), (std::vector<std::int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(given.min().item<double>(), 3);
  EXPECT_EQ(given.max().item<double>(), 3);
}

TEST(FlowVerbs, UsingAfterMixtureReachesTheRouter) {
  const auto flow = FlowBuilder::from(times(1))
                        .tag("x")
                        .mixture_of_experts(softmax_router(1, 2), {times(1), times(1)})
                        .using_({"x"});
  // Whatever the router's weights are: softmax sums to one.
  const auto graph = flow.build();
  graph->to(at::kDouble);

  EXPECT_NEAR(numbers(graph->forward(row({7}))).front(), 7, 1e-12);
}

TEST(FlowVerbs, SwitchRunsOnlyWhatIsChosen) {
  int ran = 0;
  const Part counted = [&ran](const at::Tensor& x) {
    ++ran;
    return x;
  };
  const auto flow = FlowBuilder().switch_(fixed_selector(1), {counted, times(5)});

  EXPECT_THAT(run(flow, row({2})), ElementsAre(10));
  EXPECT_EQ(ran, 0);
}

TEST(FlowVerbs, SwitchByRowSendsEachRowItsWay) {
  const Part router = [](const at::Tensor& x) { return x.select(1, 0).remainder(3); };
  const auto flow =
      FlowBuilder().switch_(router, {times(1), times(10), times(100)}, SwitchBy::kRow);

  EXPECT_THAT(run(flow, column({3, 4, 5, 6, 7})), ElementsAre(3, 40, 500, 6, 70));
}

TEST(FlowVerbs, ArgmaxSelectorChoosesForTheBatchByTheMean) {
  // Two units, the second one larger for the mean of the rows though not for the first row.
  const auto graph = FlowBuilder().switch_(argmax_selector(1, 2), {times(1), times(-1)}).build();
  graph->to(at::kDouble);
  const at::NoGradGuard no_gradients;
  graph->named_parameters()["switch_0.router.weight"].copy_(
      at::tensor({0.0, 1.0}, at::kDouble).view({2, 1}));
  graph->named_parameters()["switch_0.router.bias"].zero_();

  EXPECT_THAT(numbers(graph->forward(column({-1, 4}))), ElementsAre(1, -4));
  EXPECT_THAT(numbers(graph->forward(column({-4, 1}))), ElementsAre(-4, 1));
}

TEST(FlowVerbs, LoopRepeatsItsBody) {
  EXPECT_THAT(run(FlowBuilder().loop(times(2)).times(5), row({1})), ElementsAre(32));
}

TEST(FlowVerbs, LoopGivesItsBodyTheReferencesInEveryRound) {
  const auto flow =
      FlowBuilder::from(times(1)).tag("x").loop(plus_reference()).times(3).using_({"x"});

  EXPECT_THAT(run(flow, row({2})), ElementsAre(8));
}

TEST(FlowVerbs, WhileAsksBeforeEachRound) {
  const auto flow = FlowBuilder().loop(times(2)).while_(threshold_halt(10), 100);

  EXPECT_THAT(run(flow, row({3})), ElementsAre(12));
  EXPECT_THAT(run(flow, row({11})), ElementsAre(11)) << "no round at all";
  EXPECT_THAT(run(FlowBuilder().loop(times(2)).while_(threshold_halt(1e9), 3), row({1})),
              ElementsAre(8));
}

TEST(FlowVerbs, UntilAsksAfterEachRoundButNotAfterTheLast) {
  int asked = 0;
  const Part condition = [&asked](const at::Tensor& x) {
    ++asked;
    return x.max().sub(10);
  };
  const auto flow = FlowBuilder().loop(times(2)).until(condition, 3);

  EXPECT_THAT(run(flow, row({11})), ElementsAre(22)) << "one round at least";
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(run(flow, row({1})), ElementsAre(8));
  EXPECT_EQ(asked, 3) << "twice for three rounds";
}

TEST(FlowVerbs, RowsOfAConditionDecideAsSaid) {
  const Part over_ten = [](const at::Tensor& x) { return x.sub(10); };
  const auto halted_by = [&](HaltBy by) {
    return run(FlowBuilder().loop(times(2)).while_(over_ten, 100, by), column({3, 8}));
  };
  EXPECT_THAT(halted_by(HaltBy::kFirst), ElementsAre(12, 32));
  EXPECT_THAT(halted_by(HaltBy::kAny), ElementsAre(6, 16));
  EXPECT_THAT(halted_by(HaltBy::kAll), ElementsAre(12, 32));
  EXPECT_THROW(halted_by(HaltBy::kOneElement), TrainingError);
}

TEST(FlowVerbs, MapWorksOnEachRow) {
  std::vector<std::int64_t> rows;
  const Part body = [&rows](const at::Tensor& x) {
    rows.push_back(x.size(0));
    return x.mul(2);
  };
  EXPECT_THAT(run(FlowBuilder().map(body).each(), column({1, 2, 3})), ElementsAre(2, 4, 6));
  EXPECT_THAT(rows, ElementsAre(1, 1, 1));
}

TEST(FlowVerbs, BatchedMapCallsItsBodyOnce) {
  std::vector<std::int64_t> rows;
  const Part body = [&rows](const at::Tensor& x) {
    rows.push_back(x.size(0));
    return x.mul(2);
  };
  EXPECT_THAT(run(FlowBuilder().map(body).batched().each(), column({1, 2, 3})),
              ElementsAre(2, 4, 6));
  EXPECT_THAT(rows, ElementsAre(3));
}

TEST(FlowVerbs, MapOverATagTakesItsRows) {
  const auto flow =
      FlowBuilder::from(times(3)).tag("tripled").through(times(0)).map(plus(1)).over("tripled");

  EXPECT_THAT(run(flow, column({1, 2})), ElementsAre(4, 7));
}

TEST(FlowVerbs, SlicesOfTheLastDimensionAreMapped) {
  const Part sum = [](const at::Tensor& x) { return x.sum(-1, /*keepdim=*/true); };
  const at::Tensor input = at::arange(12, at::kDouble).reshape({2, 6});

  EXPECT_THAT(run(FlowBuilder().map(sum).slices(3), input), ElementsAre(1, 5, 9, 13, 17, 21));
  EXPECT_THAT(run(FlowBuilder().map(sum).batched().slices(3), input),
              ElementsAre(1, 5, 9, 13, 17, 21));
}

TEST(FlowVerbs, SlicesWorkForAnyRank) {
  const Part sum = [](const at::Tensor& x) { return x.sum(-1, /*keepdim=*/true); };
  const auto graph = FlowBuilder().map(sum).batched().slices(2).build();

  const at::Tensor given = graph->forward(at::ones({2, 3, 4, 6}, at::kDouble));

  EXPECT_EQ(given.sizes(), (std::vector<std::int64_t>{2, 3, 4, 2}));
  EXPECT_EQ(given.max().item<double>(), 3);
}

// A graph that is built for any number of rows is given one here.
TEST(FlowVerbs, MapTakesAGraphThatIsBuiltAlready) {
  const auto within = FlowBuilder()
                          .through(state_add())
                          .using_({"sum"})
                          .through(times(2))
                          .tag("sum")
                          .build(spec_of({{2}}));
  const auto graph =
      FlowBuilder().map(within).each().map(recompute(plus(1))).each().build(spec_of({{2}}));

  EXPECT_EQ(graph->results()[0]->text(), "[B, 2]");
  EXPECT_THAT(numbers(graph->forward(at::ones({3, 2}, at::kDouble))),
              ElementsAre(3, 3, 7, 7, 15, 15));
  EXPECT_EQ(
      mistakes(FlowBuilder().map(within).each(), spec_of({{3}})),
      "map() in step 1: \"map_0\" (map) cannot take [B, 3] from \"input\": the graph was built "
      "for [B, 2], but is given [1, 3]");
}

TEST(FlowVerbs, WhatAGraphWithinCannotTakeNamesItsNode) {
  struct SeveralRows : Layer {
    at::Tensor forward(const Inputs& inputs, LayerContext&) override { return inputs[0]; }
    TensorSpec do_result(std::span<const TensorSpec> inputs) override {
      if (inputs[0].sizes[0] == 1)
        throw DataError("one row is not enough");
      return inputs[0];
    }
  };
  const auto within =
      FlowBuilder().through(std::make_shared<SeveralRows>()).named("several").build(spec_of({{2}}));

  EXPECT_EQ(
      mistakes(FlowBuilder().map(within).each(), spec_of({{2}})),
      "map() in step 1: \"map_0\" (map) cannot take [B, 2] from \"input\": in \"several\": one "
      "row is not enough");
}

TEST(FlowVerbs, LoopsWithinAMapMayMap) {
  const auto inner = FlowBuilder().map(times(2)).each();
  const auto graph =
      FlowBuilder().map(FlowBuilder().loop(inner).times(3)).each().build(spec_of({{2}}));

  EXPECT_THAT(numbers(graph->forward(at::ones({2, 2}, at::kDouble))), ElementsAre(8, 8, 8, 8));
}

TEST(FlowVerbs, MapGivesEveryPieceTheReferences) {
  const Part scalar = [](const at::Tensor& x) { return x.sum(); };
  for (const bool batched : {false, true}) {
    FlowBuilder whole = FlowBuilder().split({scalar, times(1)}).tag_group("parts").at({"parts_1"});
    auto map = whole.map(plus_reference());
    if (batched)
      map.batched();
    map.slices(2).using_({"parts_0"});
    EXPECT_THAT(run(whole, row({1, 2})), ElementsAre(4, 5)) << batched;
  }
}

TEST(FlowVerbs, AGraphIsAPartOfAnother) {
  const auto inner = FlowBuilder::from(times(2)).tag("doubled").through(plus(1)).build();
  const auto outer =
      FlowBuilder::from(plus(1)).through(inner).tag("inner").through(times(10)).build();
  GraphState state(*outer);

  EXPECT_THAT(numbers(outer->run(std::vector<at::Tensor>{row({1})}, state).front()),
              ElementsAre(50));
  EXPECT_EQ(outer->sub("inner"), inner);
  EXPECT_EQ(outer->sub("nothing"), nullptr);
  EXPECT_THAT(numbers(state.sub("inner")->tagged("doubled")), ElementsAre(4));
}

TEST(FlowVerbs, AFlowIsAPartOfAnother) {
  const auto flow =
      FlowBuilder().split({FlowBuilder::from(times(2)).through(plus(1)), times(5)}).merge(cat(1));

  EXPECT_THAT(run(flow, row({1})), ElementsAre(3, 5));
}

TEST(FlowVerbs, OutputsAreTags) {
  const auto graph =
      FlowBuilder::from(times(2)).tag("a").through(times(2)).tag("b").outputs({"b", "a"}).build();
  GraphState state(*graph);

  const auto outputs = graph->run(std::vector<at::Tensor>{row({1})}, state);

  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_THAT(numbers(outputs[0]), ElementsAre(4));
  EXPECT_THAT(numbers(outputs[1]), ElementsAre(2));
}

TEST(FlowVerbs, AValueHasAsManyTagsAsOneLikes) {
  const auto graph = FlowBuilder::from(times(2)).tag("a").tag("b").build();
  GraphState state(*graph);
  graph->run(std::vector<at::Tensor>{row({1})}, state);

  EXPECT_THAT(numbers(state.tagged("a")), ElementsAre(2));
  EXPECT_THAT(numbers(state.tagged("b")), ElementsAre(2));
}

}  // namespace
}  // namespace treadle::graph
