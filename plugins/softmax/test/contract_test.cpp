// Every layer keeps what LayerContract asks, gradients by finite differences among it.
#include <treadle/testing/model/layer_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using Shapes = std::vector<std::vector<std::int64_t>>;

const Shapes kRows{{6}};
const Shapes kSequences{{5, 6}};

LayerCase layer(std::string name, const std::string& component, Json parameters = Json::object(),
                Shapes inputs = kRows) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  LayerCase one;
  one.name = std::move(name);
  one.make = [component, parameters = std::move(parameters)] {
    return plugin.make<LayerFactory>(component, parameters);
  };
  one.inputs = std::move(inputs);
  return one;
}

LayerCase in_training(LayerCase one) {
  one.training_differs = true;
  return one;
}

/// A step, whose slopes are not those of a gradient that is straight-through.
LayerCase stepped(LayerCase one) {
  one.is_differentiable = false;
  return one;
}

LayerCase balanced(LayerCase one) {
  one.has_losses_of_batch = true;
  return one;
}

LayerCase masked_by(LayerCase one, std::vector<std::int64_t> mask) {
  one.roles = {Role::kFeatures, Role::kMask};
  one.inputs.push_back(std::move(mask));
  return one;
}

const Json kMask{true, false, true, true, false, true};

INSTANTIATE_TEST_SUITE_P(
    Softmax, LayerContract,
    ::testing::Values(
        layer("Temperature", "temperature_softmax", {{"temperature", 0.5}}),
        layer("TemperatureAlongPositions", "temperature_softmax", {{"temperature", 3}, {"dim", 1}},
              kSequences),
        layer("Grid", "grid_softmax", {{"rows", 2}, {"cols", 3}}, kSequences),
        layer("Tree", "tree_softmax", {{"levels", {2, 2}}}, kSequences),
        layer("TreeOfThreeLevels", "tree_softmax", {{"levels", {1, 2, 3}}}, {{9}}),
        layer("LastLevel", "tree_softmax", {{"levels", {2, 3}}, {"normalize", "last_level"}}),
        in_training(layer("Gumbel", "gumbel_softmax", {{"temperature", 0.7}})),
        in_training(stepped(layer("GumbelHard", "gumbel_softmax", {{"hard", true}, {"dim", 1}},
                                  kSequences))),
        layer("Masked", "masked_softmax", {{"mask", kMask}}, kSequences),
        layer("MaskedEntirely", "masked_softmax", {{"mask", {false, false, false}}}, {{2, 3}}),
        masked_by(layer("MaskedByRow", "masked_softmax", {{"dim", 1}}, kSequences), {5}),
        masked_by(layer("MaskedByNumber", "masked_softmax", {{"mask", kMask}}, kSequences), {5, 6}),
        layer("Sparsemax", "sparsemax"),
        layer("SparsemaxAlongPositions", "sparsemax", {{"dim", 1}}, kSequences),
        layer("Entmax", "entmax", Json::object(), kSequences),
        layer("EntmaxOfOne", "entmax", {{"alpha", 1}}),
        layer("EntmaxByBisection", "entmax", {{"alpha", 1.2}}, kSequences),
        layer("EntmaxBeyondTwo", "entmax", {{"alpha", 3}, {"dim", 1}}, kSequences),
        layer("Mixture", "mixture_softmax", {{"num_components", 3}}, kSequences),
        layer("MixtureByGate", "mixture_softmax", Json::object(), {{5, 6}, {5, 2}}),
        layer("Adaptive", "adaptive_log_softmax",
              {{"num_classes", 9}, {"cutoffs", {3, 5}}, {"div_value", 2}}, kSequences),
        balanced(layer("Router", "top_k_router", {{"num_experts", 4}})),
        balanced(
            layer("RouterOfTwo", "top_k_router",
                  {{"num_experts", 4}, {"top_k", 2}, {"temperature", 0.5}, {"z_coefficient", 0.1}},
                  kSequences)),
        balanced(layer("RouterBySparsemax", "top_k_router",
                       {{"num_experts", 3}, {"top_k", 3}, {"softmax", {{"use", "sparsemax"}}}})),
        in_training(stepped(layer("RouterWithNoise", "top_k_router",
                                  {{"num_experts", 4}, {"top_k", 2}, {"noise", 1}}))),
        in_training(stepped(layer("RouterWithCapacity", "top_k_router",
                                  {{"num_experts", 2}, {"capacity_factor", 0.5}}, kSequences))),
        balanced(layer("RouterOfTwoStreams", "top_k_router", {{"num_experts", 3}}, {{6}, {6}})),
        layer("MixtureOfItsOwn", "mixture_softmax", {{"num_components", 3}, {"out_features", 4}},
              kSequences)),
    CaseName());

}  // namespace
}  // namespace treadle::testing
