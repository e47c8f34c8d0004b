// What build() says of flows that cannot be: rows A03, A05, A07, A09, A11-A17, A19-A27, and "Bad
// graphs".
#include "small_parts.h"

#include <chrono>

#include <ATen/ops/relu.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::HasSubstr;

TEST(FlowMistakes, ThroughNeedsOneStream) {
  EXPECT_EQ(mistakes(FlowBuilder().split({times(1), times(2)}).through(times(3))),
            "through() in step 2: needs one stream, but 2 are open; merge them first");
}

TEST(FlowMistakes, OpenBranchesAtTheEnd) {
  EXPECT_EQ(mistakes(FlowBuilder().split({times(1), times(2)})),
            "2 streams are open at the end of the flow; merge them");
}

TEST(FlowMistakes, MergeNeedsOpenStreams) {
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).merge(add())),
            "merge() in step 2: needs at least two open streams; a split opens them");
}

TEST(FlowMistakes, FewerThanTwoBranches) {
  EXPECT_THAT(mistakes(FlowBuilder().split({times(1)})),
              HasSubstr("split() in step 1: needs at least two branches, got 1"));
  EXPECT_THAT(mistakes(FlowBuilder().split({})), HasSubstr("needs at least two branches, got 0"));
  EXPECT_EQ(mistakes(FlowBuilder().gate(times(1), {times(1)})),
            "gate() in step 1: needs at least two experts, got 1");
  EXPECT_EQ(mistakes(FlowBuilder().switch_(times(1), {times(1)})),
            "switch_() in step 1: needs at least two branches, got 1");
  EXPECT_EQ(mistakes(FlowBuilder().switch_(times(1), {})),
            "switch_() in step 1: needs at least two branches, got 0");
}

TEST(FlowMistakes, DuplicateTags) {
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).tag("a").through(times(2)).tag("a")),
            "through() in step 2: the tag \"a\" is used twice");
}

TEST(FlowMistakes, UnknownTags) {
  EXPECT_EQ(
      mistakes(
          FlowBuilder::from(times(1)).tag("encoded").through(plus_reference()).using_({"encodet"})),
      "through() in step 2: uses \"encodet\", but nothing is tagged so; did you mean \"encoded\"?");
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).tag("encoded").at({"encodet"})),
            "at() in step 2: nothing is tagged \"encodet\"; did you mean \"encoded\"?");
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).map(times(1)).over("nothing")),
            "map() in step 2: nothing is tagged \"nothing\"");
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).outputs({"nothing"})),
            "the outputs name \"nothing\", but nothing is tagged so");
}

TEST(FlowMistakes, MapGoesOnlyOverWhatIsThere) {  // A24
  EXPECT_EQ(
      mistakes(
          FlowBuilder::from(times(1)).map(times(1)).over("later").through(times(1)).tag("later")),
      "map() in step 2: the tag \"later\" comes only later; \"using\" can reach it, as a state");
}

TEST(FlowMistakes, TagsNeedOneStreamAndGroupsSeveral) {
  EXPECT_EQ(mistakes(FlowBuilder().split({times(1), times(2)}).tag("a").merge(add())),
            "split() in step 1: the tag \"a\" needs one stream, but 2 are open; a tag group names "
            "them all");
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).tag_group("g")),
            "tag_group() in step 2: tag group \"g\" needs at least two open streams");
}

TEST(FlowMistakes, TagGroupsAreToldFromTags) {
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1))
                         .tag("g")
                         .split({times(1), times(2)})
                         .tag_group("g")
                         .merge(add())),
            "tag_group() in step 3: tag group \"g\" is called as a tag is");
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1))
                         .tag("g_1")
                         .split({times(1), times(2)})
                         .tag_group("g")
                         .merge(add())),
            "tag_group() in step 3: the tag \"g_1\" is used twice");
}

TEST(FlowMistakes, LoopsAndMapsThatDoNotSayHowLong) {
  FlowBuilder looping;
  looping.loop(times(2));
  EXPECT_EQ(mistakes(looping),
            "loop() in step 1: does not say for how long: times(), while_(), until() or "
            "adaptively()");
  FlowBuilder mapping;
  mapping.map(times(2));
  EXPECT_EQ(mistakes(mapping),
            "map() in step 1: does not say over what: each(), over() or slices()");
  EXPECT_EQ(mistakes(FlowBuilder().loop(times(2)).times(0)),
            "loop() in step 1: needs at least one round, got 0");
  EXPECT_EQ(mistakes(FlowBuilder().loop(times(2)).until(threshold_halt(1), 0)),
            "loop() in step 1: needs at least one round, got 0");
  EXPECT_EQ(mistakes(FlowBuilder().map(times(2)).slices(0)),
            "map() in step 1: needs at least one slice, got 0");
}

TEST(FlowMistakes, NamesThatClash) {
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).named("a").through(times(1)).named("a")),
            "through() in step 2: two nodes are named \"a\"");
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).named("a..b")),
            "through() in step 1: the name \"a..b\" must be of letters, digits, _, - and, between "
            "them, dots");
  EXPECT_EQ(
      mistakes(FlowBuilder::from(times(1)).named("a").through(times(1)).named("a.b.c")),
      "through() in step 2: a node is named \"a.b.c\" and another \"a\"; what stands before a "
      "dot is a group of nodes, not a node");
  EXPECT_EQ(
      mistakes(FlowBuilder::from(times(1)).named("a.b.c").through(times(1)).named("a.b")),
      "through() in step 2: a node is named \"a.b\" and another \"a.b.c\"; what stands before "
      "a dot is a group of nodes, not a node");
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).tag("x").input({"x"})),
            "input() in step 2: an input is called \"x\", and so is something before it");
}

TEST(FlowMistakes, InitialValuesOfWhatIsNoState) {
  EXPECT_EQ(
      mistakes(FlowBuilder::from(times(1)).tag("a").initial("a", {1})),
      "an initial value is given for \"a\", which is no state: no step uses it before it is there");
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

TEST(FlowMistakes, TheRouterOfASwitchChoosesAmongItsBranches) {  // A17, A49, A50
  const std::vector<Part> two{times(1), times(2)};
  EXPECT_EQ(
      mistakes(FlowBuilder().switch_(fixed_selector(2), two)),
      "switch_() in step 1: \"switch_0\": the router \"fixed_selector\" chooses branch 2, but "
      "the switch has branches 0 to 1");
  EXPECT_EQ(
      mistakes(FlowBuilder().switch_(argmax_selector(4, 3), two), spec_of({{4}})),
      "switch_() in step 1: \"switch_0\": the router \"argmax_selector\" chooses branches 0 to "
      "2, but the switch has branches 0 to 1");
  const std::vector<Part> three{times(1), times(2), times(3)};
  EXPECT_EQ(
      mistakes(FlowBuilder().switch_(argmax_selector(4, 2), three), spec_of({{4}})),
      "switch_() in step 1: \"switch_0\": the router \"argmax_selector\" chooses branches 0 to "
      "1, but the switch has branches 0 to 2");
  EXPECT_EQ(
      mistakes(FlowBuilder().switch_(argmax_selector(4, 2), two, SwitchBy::kRow), spec_of({{4}})),
      "switch_() in step 1: \"switch_0\": the switch goes by row, but its router "
      "\"argmax_selector\" chooses once for the whole batch; say the same of both");
  EXPECT_EQ(mistakes(FlowBuilder().switch_(argmax_selector(4, 2, true), two), spec_of({{4}})),
            "switch_() in step 1: \"switch_0\": the switch goes by batch, but its router "
            "\"argmax_selector\" chooses for each row; say the same of both");
}

TEST(FlowMistakes, ABranchOfASwitchByRowHasNoState) {  // A15, A17
  const Part remembers = FlowBuilder::from(state_add()).using_({"sum"}).tag("sum");
  const std::vector<Part> branches{times(1), FlowBuilder::from(times(2)).through(remembers)};
  EXPECT_EQ(mistakes(FlowBuilder().switch_(argmax_selector(4, 2, true), branches, SwitchBy::kRow),
                     spec_of({{4}})),
            "switch_() in step 1: \"switch_0\": branch 1 has a state, but a switch by row gives it "
            "other rows in every forward; switch by batch, or let the state stand in front of the "
            "switch or behind it");
  EXPECT_EQ(mistakes(FlowBuilder().switch_(argmax_selector(4, 2), branches), spec_of({{4}})), "");
}

TEST(FlowMistakes, TheRouterOfAGateHasAWeightForEachExpert) {  // A16
  LayerSpec spec = spec_of({{3}});
  EXPECT_THAT(mistakes(FlowBuilder().gate(softmax_router(3, 3), {times(1), times(2)}), spec),
              HasSubstr("the router gives 3 weights for 2 experts"));
}

TEST(FlowMistakes, SlicesDivideTheLastDimension) {  // A25
  EXPECT_THAT(mistakes(FlowBuilder().map(times(1)).slices(3), spec_of({{4}})),
              HasSubstr("a last dimension of 4 cannot be cut into 3 slices of one size"));
}

TEST(FlowMistakes, AStateThatIsAbsentAtFirst) {  // A15
  EXPECT_EQ(mistakes(FlowBuilder::from(plus_reference()).using_({"h"}).tag("h"), spec_of({{2}})),
            "through() in step 1: \"PlusReference_0\" uses the state \"h\", which is absent in the "
            "first forward; give it an "
            "initial value, or a layer that takes absence in front");
}

TEST(FlowMistakes, AnInitialValueOfAnotherShape) {  // A15
  EXPECT_EQ(mistakes(FlowBuilder::from(plus_reference()).using_({"h"}).tag("h").initial("h", {1}),
                     spec_of({{2}})),
            "the state \"h\" is [B, 1] at first, but \"PlusReference_0\" makes it [B, 2]");
}

TEST(FlowMistakes, TheNumberOfInputs) {
  EXPECT_EQ(mistakes(FlowBuilder().input({"mask"}).through(plus_reference()).using_({"mask"}),
                     spec_of({{2}})),
            "the flow takes 2 inputs (the stream, mask), but is given 1");
  const auto graph = FlowBuilder::from(times(1)).build();
  GraphState state(*graph);
  EXPECT_THROW(graph->run(std::vector<at::Tensor>{row({1}), row({2})}, state), DataError);
}

TEST(FlowMistakes, OfAFlowWithinNameTheNodeItStandsIn) {
  const FlowBuilder inner = FlowBuilder::from(times(1)).tag("a").through(times(1)).tag("a");
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).through(inner).named("block")),
            "in \"block\": through() in step 2: the tag \"a\" is used twice");
}

TEST(FlowMistakes, ReferencesThatAFlowWithinDoesNotKnow) {  // B25
  const FlowBuilder inner =
      FlowBuilder::from(times(1)).input({"context"}).through(plus_reference()).using_({"context"});
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).tag("x").through(inner)),
            "through() in step 2: \"flow_0\" wants \"context\", which \"using\" does not give it");
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).tag("contest").through(inner).using_({"contest"})),
            "through() in step 2: \"flow_0\" wants \"context\", which \"using\" does not give it");
  const FlowBuilder alone = FlowBuilder::from(times(1)).through(times(2));
  EXPECT_EQ(mistakes(FlowBuilder::from(times(1)).tag("x").through(alone).using_({"x"})),
            "through() in step 2: \"flow_0\" is given \"x\", but wants no references");
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
