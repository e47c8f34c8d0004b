// Every builder keeps what GraphContract asks, every layer what LayerContract asks.
#include <treadle/testing/graph/graph_contract.h>
#include <treadle/testing/model/layer_contract.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

GraphCase network(std::string name, const std::string& component, Json parameters,
                  std::vector<std::vector<std::int64_t>> inputs, std::vector<Role> roles = {}) {
  GraphCase one;
  one.name = std::move(name);
  one.is_whole = parameters.value("head", true);
  one.make = [component, parameters = std::move(parameters)] {
    return plugin().make<GraphBuilder>(component, parameters);
  };
  one.components = [] { return std::cref(components()); };
  one.inputs = std::move(inputs);
  one.roles = std::move(roles);
  return one;
}

/// Of an ensemble of so many members.
GraphCase with_positions(GraphCase one, std::vector<std::int64_t> positions) {
  one.output_positions = std::move(positions);
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Networks, GraphContract,
    ::testing::Values(
        network("ResNet18", "resnet", {{"width", 2}, {"stem", "small"}}, {{2, 8, 8}}),
        network("ResNetWithoutHead", "resnet", {{"width", 2}, {"stem", "small"}, {"head", false}},
                {{1, 8, 8}}),
        network("UNetWithoutHead", "unet", {{"width", 2}, {"depth", 1}, {"head", false}},
                {{1, 4, 6}}),
        network("MlpMixer", "mlp_mixer",
                {{"patch_size", 2},
                 {"width", 4},
                 {"num_layers", 2},
                 {"tokens_mlp_dim", 3},
                 {"channels_mlp_dim", 5}},
                {{1, 4, 6}}),
        network("Vit", "vit",
                {{"patch_size", 2},
                 {"width", 4},
                 {"num_layers", 1},
                 {"num_heads", 2},
                 {"dim_feedforward", 5}},
                {{1, 4, 6}}),
        network("Tcn", "tcn", {{"channels", {3, 4}}, {"kernel_size", 2}}, {{5, 2}}),
        network("TcnOfSequences", "tcn",
                {{"channels", {2}},
                 {"kernel_size", 3},
                 {"dropout", 0},
                 {"return_sequences", true},
                 {"head", false}},
                {{5, 2}}),
        network("Mlp", "mlp", {{"hidden", {5, 4}}, {"norm", "layer_norm"}, {"dropout", 0.2}},
                {{4}}),
        with_positions(network("TabM", "tabm", {{"width", 5}, {"num_layers", 2}}, {{4}}), {2}),
        with_positions(network("TabMMini", "tabm",
                               {{"width", 5}, {"num_layers", 2}, {"variant", "tabm-mini"}}, {{4}}),
                       {2}),
        network("Gpt", "gpt",
                {{"hidden_size", 4},
                 {"num_layers", 1},
                 {"num_heads", 2},
                 {"max_length", 6},
                 {"head", false}},
                {{5}}, {Role::kTokens}),
        network("Bert", "bert",
                {{"hidden_size", 4},
                 {"num_layers", 1},
                 {"num_heads", 2},
                 {"dim_feedforward", 5},
                 {"max_length", 6}},
                {{5}}, {Role::kTokens}),
        network("BertOfTypesAndLengths", "bert",
                {{"hidden_size", 4},
                 {"num_layers", 1},
                 {"num_heads", 2},
                 {"dim_feedforward", 5},
                 {"max_length", 6},
                 {"type_vocab_size", 3},
                 {"pooler", false},
                 {"head", false}},
                {{5}, {5}, {}}, {Role::kTokens, Role::kSegments, Role::kLengths}),
        network("FtTransformer", "ft_transformer",
                {{"width", 6}, {"num_layers", 1}, {"num_heads", 2}}, {{4}}),
        network("FtTransformerOfCategories", "ft_transformer",
                {{"width", 6}, {"num_layers", 1}, {"num_heads", 2}}, {{3}}, {Role::kCategories}),
        network("FtTransformerOfBoth", "ft_transformer",
                {{"width", 6}, {"num_layers", 1}, {"num_heads", 2}}, {{3}, {4}},
                {Role::kCategories, Role::kFeatures})),
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

INSTANTIATE_TEST_SUITE_P(Tokens, LayerContract,
                         ::testing::Values(layer("ClassToken", "class_token", Json::object(),
                                                 {{3, 4}}),
                                           layer("FeatureTokenizer", "feature_tokenizer",
                                                 {{"embedding_dim", 3}}, {{4}})),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
