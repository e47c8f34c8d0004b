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

/// Of batch norms and dropout.
LayerCase with_training(LayerCase one) {
  one.training_differs = true;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Forecasting, LayerContract,
    ::testing::Values(
        layer("Last", "window_scale", {{"method", "last"}}), layer("Standard", "window_scale"),
        layer("Robust", "window_scale", {{"method", "robust"}}),
        layer("MinMax", "window_scale", {{"method", "min_max"}}),
        layer("Unscale", "window_unscale", Json::object(), {{4, 3}, {2, 3}}),
        layer("LastValue", "repeat_period", {{"horizon", 4}}),
        layer("LastPeriod", "repeat_period", {{"horizon", 7}, {"period", 3}}),
        layer("Decomposition", "series_decomposition", {{"kernel_size", 5}}),
        layer("Patches", "patches", {{"patch_len", 3}, {"stride", 2}}),
        layer("PaddedPatches", "patches", {{"patch_len", 3}, {"stride", 2}, {"end_padding", 2}}),
        layer("GenericStack", "n_beats_stack",
              {{"horizon", 3}, {"width", 4}, {"blocks", 2}, {"num_layers", 2}}, {{2, 5}}),
        layer("TrendStack", "n_beats_stack",
              {{"horizon", 3},
               {"outputs", 2},
               {"width", 4},
               {"blocks", 2},
               {"num_layers", 1},
               {"basis", "trend"},
               {"share_weights", true}},
              {{2, 5}, {2, 6}}),
        layer("SeasonalityStack", "n_beats_stack",
              {{"horizon", 3},
               {"width", 4},
               {"num_layers", 2},
               {"basis", "seasonality"},
               {"harmonics", 2}},
              {{2, 5}}),
        layer("Embedding", "patch_embedding", {{"out_features", 4}}, {{2, 3, 5}}),
        with_training(layer("EncoderLayer", "patch_encoder_layer",
                            {{"num_heads", 2}, {"dim_feedforward", 5}}, {{2, 3, 4}})),
        with_training(layer("EncoderLayerWithScores", "patch_encoder_layer",
                            {{"num_heads", 2},
                             {"dim_feedforward", 5},
                             {"dropout", 0.3},
                             {"attention_dropout", 0.2}},
                            {{2, 3, 4}, {2, 2, 3, 3}}))),
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

GraphCase recurrent(std::string name, const std::string& builder,
                    const nlohmann::json& parameters) {
  GraphCase one = network(std::move(name), builder, parameters);
  one.is_recurrent = true;
  return one;
}

GraphCase without_parameters(GraphCase one) {
  one.has_parameters = false;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Forecasting, GraphContract,
    ::testing::Values(network("Linear", "linear", {}),
                      without_parameters(network("Repeat", "repeat", {})),
                      without_parameters(network("Seasonal", "seasonal", {{"period", 3}})),
                      network("NLinear", "nlinear", {{"channel", 1}}),
                      network("DLinear", "dlinear", {{"kernel_size", 3}}),
                      network("PatchTst", "patch_tst",
                              {{"patch_len", 4},
                               {"stride", 2},
                               {"d_model", 4},
                               {"num_heads", 2},
                               {"dim_feedforward", 5},
                               {"num_layers", 3}}),
                      network("PatchTstWithoutScores", "patch_tst",
                              {{"patch_len", 4},
                               {"channel", 1},
                               {"d_model", 4},
                               {"num_heads", 1},
                               {"dim_feedforward", 5},
                               {"num_layers", 2},
                               {"dropout", 0},
                               {"residual_attention", false}}),
                      network("NBeats", "n_beats", {{"stacks", 2}, {"width", 4}}),
                      network("InterpretableNBeats", "n_beats",
                              {{"kind", "interpretable"},
                               {"scale", "last"},
                               {"channel", 1},
                               {"blocks", 2},
                               {"trend_width", 4},
                               {"seasonality_width", 4}}),
                      recurrent("Gru", "gru_forecaster", {{"hidden_size", 4}, {"num_layers", 2}}),
                      recurrent("Lstm", "lstm_forecaster", {{"hidden_size", 4}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
