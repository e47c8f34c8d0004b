// What build() says of flows that cannot be.
#include "small_parts.h"

#include <chrono>

#include <ATen/ops/relu.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/expect_problem.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::HasSubstr;

TEST(FlowMistakes, ThroughNeedsOneStream) {
  EXPECT_TRUE(
      treadle::testing::tells(mistakes(FlowBuilder().split({times(1), times(2)}).through(times(3))),
                              "through() in step 2", {"2", "stream"}));
}

TEST(FlowMistakes, OpenBranchesAtTheEnd) {
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder().split({times(1), times(2)})), "",
                                      {"2", "streams"}));
}

TEST(FlowMistakes, MergeNeedsOpenStreams) {
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).merge(add())),
                                      "merge() in step 2", {"streams", "needs", "least"}));
}

TEST(FlowMistakes, FewerThanTwoBranches) {
  EXPECT_THAT(mistakes(FlowBuilder().split({times(1)})),
              HasSubstr("split() in step 1: needs at least two branches, got 1"));
  EXPECT_THAT(mistakes(FlowBuilder().split({})), HasSubstr("needs at least two branches, got 0"));
  EXPECT_TRUE(
      treadle::testing::tells(mistakes(FlowBuilder().mixture_of_experts(times(1), {times(1)})),
                              "mixture_of_experts() in step 1", {"1", "experts"}));
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder().switch_(times(1), {times(1)})),
                                      "switch_() in step 1", {"1", "branches"}));
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder().switch_(times(1), {})),
                                      "switch_() in step 1", {"0", "branches"}));
}

TEST(FlowMistakes, FrozenWithoutParameters) {
  EXPECT_TRUE(
      treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).through(plus(1)).frozen()),
                              "through() in step 2", {"\"frozen\"", "no effect", "parameters"}));
}

TEST(FlowMistakes, DisabledWhereStreamsDivideOrHaveOtherOutputs) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder().split({times(1), times(2)}).disabled().merge(add())),
      "split() in step 1", {"cannot be disabled", "one stream"}));
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(times(1)).through(times(2)).using_({"nothing"}).disabled()),
      "through() in step 2", {"\"nothing\""}));
}

TEST(FlowMistakes, DuplicateTags) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(times(1)).tag("a").through(times(2)).tag("a")),
      "through() in step 2", {"\"a\"", "twice"}));
}

TEST(FlowMistakes, UnknownTags) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(
          FlowBuilder::from(times(1)).tag("encoded").through(plus_reference()).using_({"encodet"})),
      "through() in step 2", {"\"encodet\"", "\"encoded\""}));
  EXPECT_TRUE(
      treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).tag("encoded").at({"encodet"})),
                              "at() in step 2", {"\"encodet\"", "\"encoded\""}));
  EXPECT_TRUE(
      treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).map(times(1)).over("nothing")),
                              "map() in step 2", {"\"nothing\""}));
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).outputs({"nothing"})),
                                      "", {"\"nothing\"", "outputs"}));
}

TEST(FlowMistakes, MapGoesOnlyOverWhatIsThere) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(
          FlowBuilder::from(times(1)).map(times(1)).over("later").through(times(1)).tag("later")),
      "map() in step 2", {"\"later\"", "\"using\""}));
}

TEST(FlowMistakes, TagsNeedOneStreamAndGroupsSeveral) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder().split({times(1), times(2)}).tag("a").merge(add())),
      "split() in step 1", {"\"a\"", "2"}));
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).tag_group("g")),
                                      "tag_group() in step 2", {"\"g\"", "streams"}));
}

TEST(FlowMistakes, TagGroupsAreToldFromTags) {
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder::from(times(1))
                                                   .tag("g")
                                                   .split({times(1), times(2)})
                                                   .tag_group("g")
                                                   .merge(add())),
                                      "tag_group() in step 3", {"\"g\"", "called"}));
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder::from(times(1))
                                                   .tag("g_1")
                                                   .split({times(1), times(2)})
                                                   .tag_group("g")
                                                   .merge(add())),
                                      "tag_group() in step 3", {"\"g_1\"", "twice"}));
}

TEST(FlowMistakes, TagGroupsAreToldFromInputsAndFromMembersOfOthers) {
  const auto group_of_two = [](FlowBuilder& flow, const std::string& name) {
    flow.split({times(1), times(2)}).tag_group(name).merge(add());
  };
  const std::string refused = "tag group \"g_1\" is called as a tag is";
  FlowBuilder input_before;
  input_before.input({"g_1"});
  group_of_two(input_before, "g_1");
  EXPECT_EQ(mistakes(input_before), "tag_group() in step 3: " + refused);
  FlowBuilder input_after;
  group_of_two(input_after, "g_1");
  input_after.input({"g_1"});
  EXPECT_EQ(mistakes(input_after), "tag_group() in step 2: " + refused);
  FlowBuilder member_before;
  group_of_two(member_before, "g");
  group_of_two(member_before, "g_1");
  EXPECT_EQ(mistakes(member_before), "tag_group() in step 5: " + refused);
  FlowBuilder member_after;
  group_of_two(member_after, "g_1");
  group_of_two(member_after, "g");
  EXPECT_EQ(mistakes(member_after), "tag_group() in step 2: " + refused);

  FlowBuilder apart;
  group_of_two(apart, "g_2");  // "g" has two members: g_0 and g_1
  group_of_two(apart, "g");
  EXPECT_EQ(mistakes(apart), "");
}

TEST(FlowMistakes, SizesOfOtherInputsThanTheFlowTakes) {
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)), spec_of({{3}, {3}})),
            "the flow takes 1 input, but is given 2");
  EXPECT_EQ(mistakes(FlowBuilder().input({"more"}).through(times(1)), spec_of({{3}})),
            "the flow takes 2 inputs (the stream, more), but is given 1");
}

TEST(FlowMistakes, AtGoesOnlyToWhatIsThere) {
  const std::string later = " comes only later; \"using\" can reach it, as a state";
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).at({"more"}).input({"more"})),
            "at() in step 2: the tag \"more\"" + later);
  const auto at = [](const std::string& tag) {
    return FlowBuilder::from(times(1))
        .tag("first")
        .at({tag})
        .split({times(1), times(2)})
        .tag_group("parts")
        .merge(add());
  };
  EXPECT_EQ(mistakes(at("parts_1")), "at() in step 2: the tag \"parts_1\"" + later);
  EXPECT_EQ(mistakes(at("parts_2")), "at() in step 2: nothing is tagged \"parts_2\"");
}

TEST(FlowMistakes, LoopsAndMapsThatDoNotSayHowLong) {
  FlowBuilder looping;
  looping.loop(times(2));
  EXPECT_TRUE(treadle::testing::tells(mistakes(looping), "loop() in step 1",
                                      {"adaptively", "times", "until"}));
  FlowBuilder mapping;
  mapping.map(times(2));
  EXPECT_TRUE(treadle::testing::tells(mistakes(mapping), "map() in step 1", {"slices"}));
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder().loop(times(2)).times(0)),
                                      "loop() in step 1", {"0", "needs"}));
  EXPECT_TRUE(
      treadle::testing::tells(mistakes(FlowBuilder().loop(times(2)).until(threshold_halt(1), 0)),
                              "loop() in step 1", {"0", "needs"}));
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder().map(times(2)).slices(0)),
                                      "map() in step 1", {"0", "needs"}));
}

TEST(FlowMistakes, NamesThatClash) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(times(1)).named("a").through(times(1)).named("a")),
      "through() in step 2", {"\"a\"", "nodes"}));
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).named("a..b")),
                                      "through() in step 1", {"\"a..b\"", "letters"}));
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(times(1)).named("a").through(times(1)).named("a.b.c")),
      "through() in step 2", {"\"a.b.c\"", "\"a\""}));
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(times(1)).named("a.b.c").through(times(1)).named("a.b")),
      "through() in step 2", {"\"a.b\"", "\"a.b.c\""}));
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).tag("x").input({"x"})),
                                      "input() in step 2", {"\"x\"", "something"}));
}

TEST(FlowMistakes, InitialValuesOfWhatIsNoState) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(times(1)).tag("a").initial("a", {1})), "", {"\"a\"", "initial"}));
}

TEST(FlowMistakes, AllOfThemAtOnce) {
  const std::string all = mistakes(FlowBuilder::from(times(1))
                                       .tag("a")
                                       .tag("a")
                                       .merge(add())
                                       .loop(times(1))
                                       .times(0)
                                       .through(plus_reference())
                                       .using_({"b"}));

  EXPECT_EQ(all,
            "through() in step 1: the tag \"a\" is used twice\n"
            "merge() in step 2: needs at least two open streams; a split opens them\n"
            "loop() in step 3: needs at least one round, got 0\n"
            "through() in step 4: uses \"b\", but nothing is tagged so");
}

TEST(FlowMistakes, ShapesNameBothNodes) {
  const std::string said = mistakes(
      FlowBuilder()
          .split({torch::nn::Linear(torch::nn::LinearOptions(4, 8)), torch::nn::Linear(4, 16)})
          .merge(add()),
      [] {
        LayerSpec spec = spec_of({{4}});
        spec.dtype = at::kFloat;
        spec.inputs[0].dtype = at::kFloat;
        return spec;
      }());

  EXPECT_THAT(said, HasSubstr("merge() in step 2: \"add_0\" (add) cannot take [B, 8] from "
                              "\"Linear_0\" and [B, 16] from \"Linear_1\": "));
  EXPECT_THAT(said, HasSubstr("8"));
}

TEST(FlowMistakes, AShapeThatDoesNotFitALayer) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 5}, at::kFloat)};
  EXPECT_THAT(
      mistakes(FlowBuilder::from(torch::nn::Linear(4, 8)), spec),
      HasSubstr("through() in step 1: \"Linear_0\" (Linear) cannot take [B, 5] from \"input\": "));
}

TEST(FlowMistakes, TheBodyOfALoopKeepsItsShape) {
  const Part doubled = [](const at::Tensor& x) { return x.repeat({1, 2}); };
  EXPECT_THAT(
      mistakes(FlowBuilder().loop(doubled).times(2), spec_of({{4}})),
      HasSubstr(
          "the body of a loop gives what it takes, but this one takes [B, 4] and gives [B, 8]"));
}

TEST(FlowMistakes, BranchesOfASwitchGiveOneShape) {
  const Part doubled = [](const at::Tensor& x) { return x.repeat({1, 2}); };
  EXPECT_THAT(
      mistakes(FlowBuilder().switch_(fixed_selector(0), {times(1), doubled}), spec_of({{4}})),
      HasSubstr("branch 0 gives [B, 4] and branch 1 gives [B, 8]"));
}

TEST(FlowMistakes, TheRouterOfASwitchChoosesAmongItsBranches) {
  const std::vector<Part> two{times(1), times(2)};
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder().switch_(fixed_selector(2), two)),
                                      "switch_() in step 1",
                                      {"\"switch_0\"", "\"fixed_selector\"", "2", "1"}));
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder().switch_(argmax_selector(4, 3), two), spec_of({{4}})),
      "switch_() in step 1", {"\"switch_0\"", "\"argmax_selector\"", "2", "1"}));
  const std::vector<Part> three{times(1), times(2), times(3)};
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder().switch_(argmax_selector(4, 2), three), spec_of({{4}})),
      "switch_() in step 1", {"\"switch_0\"", "\"argmax_selector\"", "1", "2"}));
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder().switch_(argmax_selector(4, 2), two, SwitchBy::kRow), spec_of({{4}})),
      "switch_() in step 1", {"\"switch_0\"", "\"argmax_selector\""}));
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder().switch_(argmax_selector(4, 2, true), two), spec_of({{4}})),
      "switch_() in step 1", {"\"switch_0\"", "\"argmax_selector\""}));
}

TEST(FlowMistakes, ABranchOfASwitchByRowHasNoState) {
  const Part remembers = FlowBuilder::from(state_add()).using_({"sum"}).tag("sum");
  const std::vector<Part> branches{times(1), FlowBuilder::from(times(2)).through(remembers)};
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder().switch_(argmax_selector(4, 2, true), branches, SwitchBy::kRow),
               spec_of({{4}})),
      "switch_() in step 1", {"\"switch_0\"", "1"}));
  EXPECT_EQ(mistakes(FlowBuilder().switch_(argmax_selector(4, 2), branches), spec_of({{4}})), "");
}

TEST(FlowMistakes, TheRouterOfAMixtureHasAWeightForEachExpert) {
  LayerSpec spec = spec_of({{3}});
  EXPECT_THAT(
      mistakes(FlowBuilder().mixture_of_experts(softmax_router(3, 3), {times(1), times(2)}), spec),
      HasSubstr("the router gives 3 weights for 2 experts"));
}

TEST(FlowMistakes, PositionsOfAGridAreWithinItAndApart) {
  const auto merged = [](std::vector<GridPosition> positions) {
    return mistakes(
        FlowBuilder().split({times(1), times(2)}).merge(grid_cat({2, 2, 1}, std::move(positions))),
        spec_of({{3}}));
  };
  EXPECT_EQ(merged({{0, 1, 0}, {0, 0, 0}}), "");
  EXPECT_TRUE(treadle::testing::tells(merged({{0, 0, 0}, {0, 2, 0}}), "merge() in step 2",
                                      {"[0,2,0]", "[2,2,1]"}));
  EXPECT_TRUE(treadle::testing::tells(merged({{1, 0, 0}, {1, 0, 0}}), "merge() in step 2",
                                      {"0 and 1", "[1,0,0]"}));
  EXPECT_TRUE(
      treadle::testing::tells(merged({{1, 0, 0}}), "merge() in step 2", {"positions for 1", "2"}));
}

TEST(FlowMistakes, ExpertsOfAMixtureGiveOneSize) {
  const Part first = [](const at::Tensor& x) { return x.narrow(1, 0, 1); };
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder().mixture_of_experts(softmax_router(3, 2), {times(1), first}),
               spec_of({{3}})),
      "mixture_of_experts() in step 1", {"[B, 3]", "[B, 1]", "\"pad\": true"}));
}

TEST(FlowMistakes, SlicesDivideTheLastDimension) {
  EXPECT_THAT(mistakes(FlowBuilder().map(times(1)).slices(3), spec_of({{4}})),
              HasSubstr("a last dimension of 4 cannot be cut into 3 slices of one size"));
}

TEST(FlowMistakes, AStateThatIsAbsentAtFirst) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(plus_reference()).using_({"h"}).tag("h"), spec_of({{2}})),
      "through() in step 1", {"\"PlusReference_0\"", "\"h\""}));
}

TEST(FlowMistakes, AnInitialValueOfAnotherShape) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(plus_reference()).using_({"h"}).tag("h").initial("h", {1}),
               spec_of({{2}})),
      "", {"\"h\"", "\"PlusReference_0\"", "1", "2"}));
}

TEST(FlowMistakes, TheNumberOfInputs) {
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder().input({"mask"}).through(plus_reference()).using_({"mask"}),
               spec_of({{2}})),
      "", {"2", "1"}));
  const auto graph = FlowBuilder::from(times(1)).build();
  GraphState state(*graph);
  EXPECT_THROW(graph->run(std::vector<at::Tensor>{row({1}), row({2})}, state), DataError);
}

TEST(FlowMistakes, OfAFlowWithinNameTheNodeItStandsIn) {
  const FlowBuilder inner = FlowBuilder::from(times(1)).tag("a").through(times(1)).tag("a");
  EXPECT_TRUE(
      treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).through(inner).named("block")),
                              "", {"\"block\"", "\"a\"", "2"}));
}

TEST(FlowMistakes, ReferencesThatAFlowWithinDoesNotKnow) {
  const FlowBuilder inner =
      FlowBuilder::from(times(1)).input({"context"}).through(plus_reference()).using_({"context"});
  EXPECT_TRUE(treadle::testing::tells(mistakes(FlowBuilder::from(times(1)).tag("x").through(inner)),
                                      "through() in step 2",
                                      {"\"flow_0\"", "\"context\"", "\"using\""}));
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(times(1)).tag("contest").through(inner).using_({"contest"})),
      "through() in step 2", {"\"flow_0\"", "\"context\"", "\"using\""}));
  const FlowBuilder alone = FlowBuilder::from(times(1)).through(times(2));
  EXPECT_TRUE(treadle::testing::tells(
      mistakes(FlowBuilder::from(times(1)).tag("x").through(alone).using_({"x"})),
      "through() in step 2", {"\"flow_0\"", "\"x\""}));
}

TEST(FlowMistakes, AnEmptyFlowGivesItsInput) {
  EXPECT_EQ(numbers(FlowBuilder().build()->forward(row({3}))), std::vector<double>{3});
}

/// A flow of so many flows, each in the one before.
FlowBuilder nested(int levels) {
  FlowBuilder flow = FlowBuilder::from(times(1)).through(plus(1));
  for (int level = 1; level < levels; ++level)
    flow = FlowBuilder(FlowBuilder::from(flow)).through(plus(1));
  return flow;
}

TEST(FlowLimits, AHundredLevelsDeep) {
  EXPECT_EQ(numbers(nested(100).build(spec_of({{1}}))->forward(row({0}))),
            std::vector<double>{100});
}

TEST(FlowLimits, AThousandLevelsAreTooDeep) {
  const std::string too_deep = "flows stand in each other more than 100 levels deep";
  EXPECT_EQ(mistakes(nested(101)), too_deep);
  EXPECT_EQ(mistakes(nested(1000)), too_deep);
  std::shared_ptr<Graph> graph = FlowBuilder::from(times(1)).through(plus(1)).build();
  for (int level = 1; level < 100; ++level)
    graph = FlowBuilder::from(graph).through(plus(1)).build();
  EXPECT_EQ(mistakes(FlowBuilder::from(graph).through(plus(1))), too_deep);
}

TEST(FlowLimits, TenThousandNodes) {
  FlowBuilder flow;
  for (int i = 0; i < 10'000; ++i)
    flow.through(plus(1));
  const auto begin = std::chrono::steady_clock::now();
  const auto graph = flow.build(spec_of({{1}}));
  RecordProperty("build_ms", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                  std::chrono::steady_clock::now() - begin)
                                                  .count()));

  EXPECT_EQ(numbers(graph->forward(row({0}))), std::vector<double>{10'000});
}

}  // namespace
}  // namespace treadle::graph
