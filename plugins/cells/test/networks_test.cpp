// Networks beside published counts of parameters, and what they derive.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/model/graph_builder.h>
#include <treadle/core/training/structure_search.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/tensor/task_random.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

std::shared_ptr<graph::Graph> build(const std::string& builder, Json parameters,
                                    std::vector<std::int64_t> row, std::int64_t classes = 10) {
  LayerSpec spec;
  row.insert(row.begin(), TensorSpec::kVaries);
  spec.inputs = {{std::move(row), at::kFloat}};
  spec.outputs = {{"output", {classes}}};
  parameters["use"] = builder;
  const Json steps{{{"use", "graph"}, {"name", "net"}, {"builder", std::move(parameters)}}};
  const TaskRandom random(3);
  return graph::read_steps(Config(), steps, "", components()).build(spec);
}

std::int64_t parameters_of(const std::string& operation) {
  const auto network =
      build("cell_network", {{"edges", std::vector<std::string>(6, operation)}}, {3, 32, 32});
  std::int64_t count = 0;
  for (const at::Tensor& parameter : network->parameters())
    count += parameter.numel();
  return count;
}

TEST(CellNetworkTest, HasTheParametersOfNasBench201) {
  // The largest and the smallest networks of its table for CIFAR-10: 1.531546 MB and 0.073306 MB.
  EXPECT_EQ(parameters_of("conv_3x3"), 1531546);
  EXPECT_EQ(parameters_of("skip"), 73306);
  EXPECT_EQ(parameters_of("zero"), 73306);
  // 30 convolutions in each of three stages: 16 · 16 + 2 · 16, 32 · 32 + 2 · 32, 64 · 64 + 2 · 64
  EXPECT_EQ(parameters_of("conv_1x1"), 73306 + 30 * (288 + 1088 + 4224));
}

TEST(CellNetworkTest, AllCellsHaveTheWeightsOfOneStructure) {
  const auto network = build("cell_network", {{"cells", 3}, {"width", 4}}, {5});
  int structures = 0;
  for (const auto& module : network->modules()) {
    if (const auto* const layer = dynamic_cast<WeighsOperations*>(module.get())) {
      ++structures;
      EXPECT_EQ(layer->structure(), "cell");
      ASSERT_EQ(layer->choices().size(), 6);
      EXPECT_EQ(layer->choices()[2].name, "1_2");
      EXPECT_EQ(layer->choices()[2].node, "2");
      EXPECT_EQ(layer->choices()[2].operations,
                (std::vector<std::string>{"zero", "skip", "dense", "gated"}));
    }
  }
  EXPECT_EQ(structures, 1);
}

TEST(CellNetworkTest, DerivesTheNetworkThatWasChosen) {
  const Json parameters =
      Json::parse(R"({"nodes": 3, "edges": [["skip", "dense"], "gated", ["zero", "dense"]]})");
  const auto builder = plugin().make<GraphBuilder>("cell_network", parameters);
  const auto* const derives = builder->ask<DerivesNetwork>();
  ASSERT_NE(derives, nullptr);
  EXPECT_EQ(derives->structure(), "cell");
  StructureRecord record{"cell",
                         {{{"0_1", "1", {"skip", "dense"}}, {0.4, 0.6}, 1},
                          {{"1_2", "2", {"zero", "dense"}}, {0.9, 0.1}, {}}}};
  const Json derived = derives->derived(record);
  EXPECT_EQ(derived.at("edges"), Json({"dense", "gated", "zero"}));
  EXPECT_EQ(
      plugin().make<GraphBuilder>("cell_network", derived)->ask<DerivesNetwork>()->structure(), "");
}

void expect_refused(const std::string& builder, const Json& parameters,
                    const std::vector<std::int64_t>& row, const std::vector<std::string>& words) {
  try {
    build(builder, parameters, row);
    ADD_FAILURE() << "not refused: " << parameters;
  } catch (const Error& error) {
    for (const std::string& word : words)
      EXPECT_THAT(error.what(), HasSubstr(word));
  }
}

TEST(CellTest, MistakesAreRefused) {
  expect_refused("cell", {{"nodes", 3}, {"edges", {"skip", "skip"}}}, {4},
                 {"edges", "3 nodes has 3 edges", "got 2"});
  expect_refused("cell", {{"edges", std::vector<std::string>(6, "conv_3x3")}}, {4},
                 {"\"conv_3x3\"", "zero, skip, dense, gated"});
  expect_refused("cell", {{"operations", {"skip", "skip"}}}, {4}, {"operations", "twice"});
  expect_refused("cell", {{"define", {{{"name", "skip"}, {"flow", {{{"use", "relu"}}}}}}}}, {4},
                 {"define", "\"skip\" already"});
  expect_refused(
      "cell",
      {{"nodes", 2},
       {"define", {{{"name", "wide"}, {"flow", {{{"use", "dense"}, {"out_features", 9}}}}}}},
       {"edges", Json::array({{"wide", "skip"}})}},
      {4}, {"one size", "[B, 9]", "[B, 4]"});
  expect_refused("cell_network", {{"stages", 2}}, {4}, {"halve images", "stages"});
  expect_refused("cell_network", {{"stages", 5}}, {1, 8, 8}, {"5 stages", "[B, 1, 8, 8]"});
}

}  // namespace
}  // namespace treadle::testing
