#include <treadle/graph/cost.h>
#include <treadle/graph/picture.h>

#include <cstdlib>

#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

LayerSpec floats(std::int64_t width) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, width}, at::kFloat)};
  return spec;
}

TEST(Dot, NodesSayNameSizeParametersAndTags) {
  const auto graph =
      FlowBuilder::from(torch::nn::Linear(32, 40)).tag("wide").through(times(1)).build(floats(32));

  EXPECT_THAT(dot(*graph),
              HasSubstr("\"Linear_0\" [label=\"Linear_0\\n[B, 40]\\n1.3K\\n#wide\", shape=box"));
  EXPECT_THAT(dot(*graph),
              AllOf(HasSubstr("\"input\" -> \"Linear_0\";"), HasSubstr("shape=ellipse")));
}

TEST(Dot, ReferencesAreDashedAndStatesDotted) {
  const auto graph = FlowBuilder::from(times(1))
                         .tag("x")
                         .through(plus_reference())
                         .using_({"x"})
                         .through(state_add())
                         .using_({"h"})
                         .tag("h")
                         .build();

  EXPECT_THAT(
      dot(*graph),
      AllOf(HasSubstr("\"Function_0\" -> \"PlusReference_0\" [style=dashed, label=\"x\"];"),
            HasSubstr("\"state_read_0\" -> \"state_add_0\" [style=dashed, label=\"h\"];"),
            HasSubstr("\"state_add_0\" -> \"state_read_0\" [style=dotted, constraint=false];"),
            HasSubstr("\"state_read_0\" [label=\"state_read_0\", shape=cylinder")));
}

TEST(Dot, CompositesAreClusters) {
  const FlowBuilder refine = FlowBuilder::from(times(1)).through(times(2));
  const auto graph = FlowBuilder::from(refine)
                         .named("block")
                         .loop(refine)
                         .times(3)
                         .switch_(fixed_selector(0), {times(1), refine})
                         .build();

  EXPECT_THAT(dot(*graph),
              AllOf(HasSubstr("subgraph \"cluster_block\" {"),
                    HasSubstr("\"block/Function_0\" -> \"block/Function_1\";"),
                    HasSubstr("\"input\" -> \"block/input\";"),
                    HasSubstr("\"block/Function_1\" -> \"loop_0/body/input\";"),
                    HasSubstr("label=\"loop_0\\n3 rounds\""),
                    HasSubstr("[style=bold, constraint=false, label=\"again\"]"),
                    HasSubstr("\"switch_0/router\" -> \"switch_0/branch_0\" [label=\"0\"];"),
                    HasSubstr("\"switch_0/branch_1/Function_1\" -> \"switch_0/exit\";")));
}

TEST(Dot, NodesOfOneLevelStandSideBySide) {
  const auto graph = FlowBuilder().split({times(1), times(2)}).merge(add()).build();

  EXPECT_THAT(dot(*graph), HasSubstr("{ rank=same; \"Function_0\"; \"Function_1\"; }"));
  EXPECT_EQ(graph->nodes()[3].level, 2U);
}

TEST(Dot, QuotesItsTitle) {
  EXPECT_THAT(dot(*FlowBuilder::from(times(1)).build(), {"a \"b\""}),
              HasSubstr("label=\"a \\\"b\\\"\""));
}

TEST(Svg, IsDrawnByGraphvizOrSaysWhatIsMissing) {
  const bool is_there = std::system("dot -V > /dev/null 2>&1") == 0;
  const std::string picture = dot(*FlowBuilder::from(times(1)).loop(times(2)).times(2).build());
  if (is_there) {
    EXPECT_THAT(svg(picture), AllOf(HasSubstr("<svg"), HasSubstr("loop_0")));
    EXPECT_THROW(svg("this is no picture"), UsageError);
  } else {
    try {
      svg(picture);
      FAIL();
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("install graphviz"));
    }
  }
}

TEST(Summary, IsATableOfNodes) {
  const FlowBuilder refine = FlowBuilder::from(torch::nn::Linear(4, 4)).through(times(2));
  const auto graph = FlowBuilder::from(torch::nn::Linear(3, 4))
                         .tag("wide")
                         .loop(refine)
                         .times(2)
                         .named("refine")
                         .through(torch::nn::Linear(4, 1))
                         .frozen()
                         .build(floats(3));

  EXPECT_EQ(summary(*graph),
            "node            layer           gives   parameters  bytes  FLOPs\n"
            "input           input           [B, 3]                 12\n"
            "Linear_0 #wide  Linear          [B, 4]          16     16     24\n"
            "refine          loop, 2 rounds  [B, 4]          20     16     72\n"
            "  body          flow\n"
            "    input       input           [B, 4]\n"
            "    Linear_0    Linear          [B, 4]          20\n"
            "    Function_0  Function        [B, 4]\n"
            "Linear_1        Linear          [B, 1]    5 frozen      4      8\n"
            "41 parameters, 36 of them trained; for a row, 48 bytes of values and 104 FLOPs\n");
}

TEST(Summary, OfAGraphWithoutSizesHasNoCosts) {
  const auto graph = FlowBuilder::from(torch::nn::Linear(3, 4)).build();

  EXPECT_EQ(summary(*graph),
            "node      layer   gives  parameters\n"
            "input     input   ?\n"
            "Linear_0  Linear  ?              16\n"
            "16 parameters\n");
}

TEST(Costs, AreThoseOfTheRowsThatAreAskedFor) {
  const auto graph = FlowBuilder::from(torch::nn::Linear(3, 4)).through(times(2)).build(floats(3));
  graph->train();

  const std::vector<NodeCost> costs = graph::costs(*graph, 10);

  ASSERT_EQ(costs.size(), 3U);
  EXPECT_EQ(costs[0].bytes, 10 * 3 * 4);
  EXPECT_EQ(costs[1].bytes, 10 * 4 * 4);
  EXPECT_EQ(costs[1].operations, 10 * 3 * 4 * 2) << "a product of matrices";
  EXPECT_EQ(costs[2].operations, 10 * 4);
  EXPECT_TRUE(graph->is_training()) << "as it was";
}

TEST(ShortCount, HasUnits) {
  EXPECT_EQ(short_count(999), "999");
  EXPECT_EQ(short_count(1200), "1.2K");
  EXPECT_EQ(short_count(3'450'000), "3.5M");
  EXPECT_EQ(short_count(7'000'000'000), "7.0G");
}

}  // namespace
}  // namespace treadle::graph
