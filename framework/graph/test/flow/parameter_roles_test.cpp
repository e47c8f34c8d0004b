// Which layers of a graph give the outputs of a model.
#include <set>
#include <string>

#include <torch/nn/modules/linear.h>

#include <treadle/core/training/parameter_arena.h>
#include <treadle/graph/flow_model.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

using namespace testing;

Part linear_of(std::int64_t in, std::int64_t out) {
  return Part(torch::nn::Linear(in, out));
}

/// The names of the parameters that are outputs', of a model of one input [4].
std::set<std::string> outputs_of(const FlowBuilder& flow,
                                 std::vector<OutputSpec> outputs = {{"value", {2}}}) {
  ModelSpec spec;
  spec.inputs = {{"features", {4}}};
  spec.outputs = std::move(outputs);
  const auto model = build_model(flow, spec);
  std::set<std::string> names;
  for (const Segment& segment : segments_of(*model)) {
    if (segment.role == ParameterRole::kOutput)
      names.insert(segment.name);
  }
  return names;
}

using Names = std::set<std::string>;

TEST(OutputLayers, AreTheLastWithAMatrix) {
  FlowBuilder flow = FlowBuilder::from(linear_of(4, 4)).named("a");
  flow.through(linear_of(4, 2)).named("b");

  EXPECT_EQ(outputs_of(flow), (Names{"b.weight", "b.bias"}));
}

TEST(OutputLayers, AreLookedForBehindLayersWithoutOne) {
  FlowBuilder flow = FlowBuilder::from(linear_of(4, 4)).named("a");
  flow.through(linear_of(4, 2)).named("b").through(times(2)).named("c");

  EXPECT_EQ(outputs_of(flow), (Names{"b.weight", "b.bias"}));
}

TEST(OutputLayers, AreThoseOfEveryOutput) {
  FlowBuilder flow = FlowBuilder::from(linear_of(4, 4)).named("a").tag("encoded");
  flow.through(linear_of(4, 1)).named("b").tag("price").at({"encoded"});
  flow.through(linear_of(4, 3)).named("c").tag("species");

  EXPECT_EQ(outputs_of(flow, {{"species", {3}}, {"price", {1}}}),
            (Names{"b.weight", "b.bias", "c.weight", "c.bias"}));
}

TEST(OutputLayers, AreFoundInGraphsWithin) {
  FlowBuilder inner = FlowBuilder::from(linear_of(4, 4)).named("x");
  inner.through(linear_of(4, 2)).named("y");
  FlowBuilder flow = FlowBuilder::from(linear_of(4, 4)).named("a");
  flow.through(inner).named("inner");

  EXPECT_EQ(outputs_of(flow), (Names{"inner.y.weight", "inner.y.bias"}));
}

}  // namespace
}  // namespace treadle::graph
