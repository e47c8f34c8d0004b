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
  one.is_whole = component != "table_embedding" && parameters.value("head", true);
  one.make = [component, parameters = std::move(parameters)] {
    return plugin().make<GraphBuilder>(component, parameters);
  };
  one.components = [] { return std::cref(components()); };
  one.inputs = std::move(inputs);
  one.roles = std::move(roles);
  return one;
}

const Json kSmallSaint{{"width", 6},  {"num_heads", 2},  {"row_head_dim", 3},
                       {"hidden", 6}, {"references", 5}, {"dropout", 0.0}};

INSTANTIATE_TEST_SUITE_P(
    Tables, GraphContract,
    ::testing::Values(
        network("NumbersAndCategories", "table_embedding", {{"embedding_dim", 3}}, {{4}, {2}},
                {Role::kFeatures, Role::kCategories}),
        network("CategoriesAndNumbersAsTokens", "table_embedding",
                {{"embedding_dim", 3}, {"tokens", true}}, {{2}, {4}},
                {Role::kCategories, Role::kFeatures}),
        network("CategoriesAlone", "table_embedding", {{"embedding_dim", 3}}, {{2}},
                {Role::kCategories}),
        network("NumbersInBins", "table_embedding",
                {{"numbers",
                  {{{"use", "piecewise_linear_embedding"}, {"bins", 3}, {"embedding_dim", 2}}}}},
                {{4}, {2}}, {Role::kFeatures, Role::kCategories}),
        network("TabNet", "tabnet", {{"n_d", 3}, {"n_a", 2}, {"virtual_batch_size", 4}}, {{5}}),
        network("TabNetOfOneStepWithoutPenalty", "tabnet",
                {{"n_steps", 1}, {"n_shared", 0}, {"lambda_sparse", 0}, {"mask", "entmax"}}, {{5}}),
        network("TabNetWithoutHead", "tabnet",
                {{"n_d", 3}, {"n_a", 2}, {"n_independent", 0}, {"n_shared", 1}, {"head", false}},
                {{5}}),
        network("Saint", "saint", kSmallSaint, {{3}}),
        network("SaintOfBoth", "saint", kSmallSaint, {{3}, {2}},
                {Role::kFeatures, Role::kCategories}),
        network("SaintOfCategories", "saint", kSmallSaint, {{2}}, {Role::kCategories})),
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

/// Of the rows of the whole batch in training.
LayerCase of_batches(LayerCase one) {
  one.training_differs = true;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Layers, LayerContract,
    ::testing::Values(
        of_batches(layer("GhostBatchNorm", "ghost_batch_norm", Json::object(), {{4}})),
        of_batches(layer("GhostBatchNormOfParts", "ghost_batch_norm", {{"virtual_batch_size", 2}},
                         {{4}})),
        layer("RelaxedPrior", "relaxed_prior", Json::object(), {{4}, {4}, {4}}),
        layer("EntropyPenalty", "entropy_penalty", {{"weight", 0.5}}, {{4}}),
        layer("Scale", "scale", {{"factor", -0.5}}, {{3, 4}}),
        layer("RandomFourierFeatures", "random_fourier_features", {{"out_features", 7}}, {{4}}),
        of_batches(layer("IntersampleAttention", "intersample_attention",
                         {{"num_heads", 2}, {"head_dim", 3}, {"references", 8}}, {{4}})),
        of_batches(layer("IntersampleAttentionOfFewReferences", "intersample_attention",
                         {{"head_dim", 3}, {"references", 2}, {"dropout", 0.2}}, {{4}}))),
    CaseName());

}  // namespace
}  // namespace treadle::testing
