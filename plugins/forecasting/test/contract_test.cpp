// Every layer keeps what LayerContract asks, every builder what GraphContract asks.
#include <treadle/testing/graph_contract.h>
#include <treadle/testing/layer_contract.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

LayerCase layer(std::string name, const std::string& component, Json parameters = Json::object(),
                std::vector<std::vector<std::int64_t>> inputs = {{6, 2}}) {
  LayerCase one;
  one.name = std::move(name);
  one.make = [component, parameters = std::move(parameters)] {
    return plugin().make<LayerFactory>(component, parameters);
  };
  one.inputs = std::move(inputs);
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Forecasting, LayerContract,
    ::testing::Values(layer("Last", "window_scale", {{"method", "last"}}),
                      layer("Standard", "window_scale"),
                      layer("Robust", "window_scale", {{"method", "robust"}}),
                      layer("MinMax", "window_scale", {{"method", "min_max"}}),
                      layer("Unscale", "window_unscale", Json::object(), {{4, 3}, {2, 3}}),
                      layer("LastValue", "repeat_period", {{"horizon", 4}}),
                      layer("LastPeriod", "repeat_period", {{"horizon", 7}, {"period", 3}}),
                      layer("Decomposition", "series_decomposition", {{"kernel_size", 5}})),
    CaseName());

GraphCase network(std::string name, const std::string& component, Json parameters) {
  GraphCase one;
  one.name = std::move(name);
  one.is_whole = true;
  one.make = [component, parameters = std::move(parameters)] {
    return plugin().make<GraphBuilder>(component, parameters);
  };
  one.components = [] { return std::cref(plugin().registry()); };
  one.inputs = {{7, 6}};
  one.output_positions = {5};
  return one;
}

GraphCase without_parameters(GraphCase one) {
  one.has_parameters = false;
  return one;
}

INSTANTIATE_TEST_SUITE_P(Forecasting, GraphContract,
                         ::testing::Values(network("Linear", "linear", {}),
                                           without_parameters(network("Repeat", "repeat", {})),
                                           without_parameters(network("Seasonal", "seasonal",
                                                                      {{"period", 3}})),
                                           network("NLinear", "nlinear", {{"channel", 1}}),
                                           network("DLinear", "dlinear", {{"kernel_size", 3}})),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
