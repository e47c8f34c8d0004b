// Every builder keeps what GraphContract asks, every layer what LayerContract asks.
#include <treadle/testing/graph/graph_contract.h>
#include <treadle/testing/model/layer_contract.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

const Json kChoices{{{"name", "0_1"}, {"node", "1"}, {"operations", {"skip", "dense"}}},
                    {{"name", "0_2"}, {"node", "2"}, {"operations", {"skip", "dense", "zero"}}}};

GraphCase network(std::string name, const std::string& component, Json parameters,
                  std::vector<std::vector<std::int64_t>> inputs) {
  GraphCase one;
  one.name = std::move(name);
  one.is_whole = component == "cell_network";
  one.make = [component, parameters = std::move(parameters)] {
    return plugin().make<GraphBuilder>(component, parameters);
  };
  one.components = [] { return std::cref(components()); };
  one.inputs = std::move(inputs);
  return one;
}

const Json kWide{{"name", "wide"},
                 {"flow", {{{"use", "dense"}, {"out_features", 4}}, {{"use", "tanh"}}}}};

INSTANTIATE_TEST_SUITE_P(
    Cells, GraphContract,
    ::testing::Values(
        network("OfVectors", "cell", {{"nodes", 3}}, {{4}}),
        network("OfSequences", "cell",
                {{"edges", {"dense", "skip", "gated", "zero", "zero", "dense"}}}, {{5, 4}}),
        network("OfImages", "cell",
                {{"nodes", 3}, {"edges", {"skip", {"conv_3x3", "avg_pool_3x3"}, "conv_1x1"}}},
                {{2, 4, 4}}),
        network("OfItsOwnOperations", "cell",
                {{"nodes", 2}, {"define", {kWide}}, {"edges", Json::array({{"wide", "skip"}})}},
                {{4}}),
        network("ANetwork", "cell_network", {{"nodes", 3}, {"cells", 2}, {"width", 4}}, {{3}}),
        network("ANetworkOfImages", "cell_network",
                {{"nodes", 2}, {"cells", 1}, {"width", 2}, {"stages", 2}}, {{1, 4, 4}}),
        network("AChosenNetwork", "cell_network",
                {{"nodes", 3}, {"cells", 1}, {"width", 4}, {"edges", {"dense", "zero", "skip"}}},
                {{3}})),
    CaseName());

LayerCase layer(std::string name, const std::string& component, Json parameters,
                std::vector<std::vector<std::int64_t>> inputs) {
  LayerCase one;
  one.name = std::move(name);
  one.make = [component, parameters = std::move(parameters)] {
    return plugin().make<LayerFactory>(component, parameters);
  };
  one.inputs = std::move(inputs);
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Layers, LayerContract,
    ::testing::Values(layer("OperationWeights", "operation_weights", {{"places", kChoices}}, {{4}}),
                      layer("WeightedSum", "weighted_sum", {{"choice", 1}}, {{4}, {4}, {2, 2}}),
                      layer("Zero", "zero", Json::object(), {{3, 4}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
