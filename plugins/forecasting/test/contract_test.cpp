// Every layer keeps what LayerContract asks, every builder what GraphContract asks.
#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/testing/graph/graph_contract.h>
#include <treadle/testing/model/layer_contract.h>

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

/// Two lstms by the equations of torch.nn's page, the second from the first one's last states.
at::Tensor encoded_and_decoded(const Layer& layer, const std::vector<at::Tensor>& inputs,
                               const HandOn& hand_on) {
  const std::vector<at::Tensor> weights = layer.parameters();
  const std::size_t layers = weights.size() / 8;
  const at::Tensor nothing = at::zeros_like(inputs[0].select(1, 0));
  std::vector<at::Tensor> hidden(layers, inputs.size() == 4 ? inputs[2] : nothing);
  std::vector<at::Tensor> cell(layers, inputs.size() == 4 ? inputs[3] : nothing);
  std::vector<at::Tensor> states;
  for (std::size_t part = 0; part < 2; ++part) {
    for (std::int64_t time = 0; time < inputs[part].size(1); ++time) {
      at::Tensor x = inputs[part].select(1, time);
      for (std::size_t i = 0; i < layers; ++i) {
        if (!states.empty()) {
          hidden[i] = hand_on(hidden[i]);
          cell[i] = hand_on(cell[i]);
        }
        const at::Tensor* const w = &weights[4 * (part * layers + i)];
        const auto gates =
            (x.matmul(w[0].t()) + w[2] + hidden[i].matmul(w[1].t()) + w[3]).chunk(4, 1);
        cell[i] = gates[1].sigmoid() * cell[i] + gates[0].sigmoid() * gates[2].tanh();
        hidden[i] = gates[3].sigmoid() * cell[i].tanh();
        x = hidden[i];
      }
      states.push_back(x);
    }
  }
  return at::stack(states, 1);
}

LayerCase encoder_decoder(LayerCase one) {
  one.by_hand = encoded_and_decoded;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Forecasting, LayerContract,
    ::testing::Values(
        layer("Last", "window_scale", {{"method", "last"}}), layer("Standard", "window_scale"),
        layer("Robust", "window_scale", {{"method", "robust"}}),
        layer("MinMax", "window_scale", {{"method", "min_max"}}),
        layer("AffineStandard", "window_scale", {{"affine", true}}),
        layer("AffineLast", "window_scale", {{"method", "last"}, {"affine", true}}),
        layer("Unscale", "window_unscale", Json::object(), {{4, 3}, {2, 3}}),
        layer("UnscaleOfDistributions", "window_unscale",
              {{"estimates", {"location", "location", "scale", "dimensionless"}}},
              {{8, 3}, {2, 3}}),
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
        layer("InterpolatedStack", "n_hits_stack",
              {{"horizon", 5},
               {"estimates", {"location", "scale"}},
               {"freq_downsample", 2},
               {"pool_kernel_size", 3},
               {"blocks", 2},
               {"width", 4}},
              {{2, 7}}),
        layer("InterpolatedStackBehindAnother", "n_hits_stack",
              {{"horizon", 5}, {"interpolation", "cubic"}, {"freq_downsample", 2}, {"width", 4}},
              {{2, 7}, {2, 5}}),
        layer("GatedResidual", "gated_residual_network", {{"hidden_size", 5}}, {{3, 4}}),
        with_training(layer("GatedResidualWithContext", "gated_residual_network",
                            {{"hidden_size", 5}, {"out_features", 3}, {"dropout", 0.2}},
                            {{3, 4}, {2}})),
        layer("GatedAddNorm", "gated_add_norm", Json::object(), {{3, 4}, {3, 5}}),
        layer("VariableSelection", "variable_selection", Json::object(), {{3, 4, 5}}),
        with_training(layer("VariableSelectionWithContext", "variable_selection",
                            {{"dropout", 0.2}}, {{3, 4}, {2}})),
        encoder_decoder(layer("LstmEncoderDecoder", "lstm_encoder_decoder", {{"num_layers", 2}},
                              {{4, 3}, {2, 3}})),
        encoder_decoder(layer("LstmWithContexts", "lstm_encoder_decoder", Json::object(),
                              {{4, 3}, {2, 3}, {3}, {3}})),
        with_training(layer("InterpretableAttention", "interpretable_attention",
                            {{"num_heads", 2}, {"queries", 2}, {"dropout", 0.2}}, {{5, 4}})),
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

/// One that has everything, in the order of its "inputs".
GraphCase with_all_inputs(GraphCase one) {
  one.inputs = {{7, 6}, {5, 3}, {5, 1}, {2}, {1}, {7, 1}};
  one.roles = {Role::kFeatures, Role::kFeatures,   Role::kCategories,
               Role::kFeatures, Role::kCategories, Role::kCategories};
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
                      network("PatchTstWithAffineRevin", "patch_tst",
                              {{"patch_len", 4},
                               {"stride", 2},
                               {"d_model", 4},
                               {"num_heads", 2},
                               {"dim_feedforward", 5},
                               {"num_layers", 1},
                               {"revin_affine", true}}),
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
                      network("NHits", "n_hits", {{"width", 4}}),
                      network("ScaledNHits", "n_hits",
                              {{"width", 4},
                               {"scale", "standard"},
                               {"revin_affine", true},
                               {"channel", 1},
                               {"pool_kernel_size", {4, 1}},
                               {"freq_downsample", {3, 1}},
                               {"blocks", {2, 1}},
                               {"interpolation", "nearest"}}),
                      recurrent("Gru", "gru_forecaster", {{"hidden_size", 4}, {"num_layers", 2}}),
                      recurrent("Lstm", "lstm_forecaster", {{"hidden_size", 4}}),
                      with_all_inputs(recurrent("TemporalFusionTransformer",
                                                "temporal_fusion_transformer",
                                                {{"hidden_size", 4},
                                                 {"num_heads", 2},
                                                 {"lstm_layers", 2},
                                                 {"inputs",
                                                  {"future", "future.categories", "static",
                                                   "static.categories", "categories"}}}))),
    CaseName());

}  // namespace
}  // namespace treadle::testing
