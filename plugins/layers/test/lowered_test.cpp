// Which layers a plan takes in as operations. That the operations give the layer's bits is up to
// LayerContract.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>
#include <treadle/testing/graph/plan_interpreter.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

/// Layers of other kinds: a plan calls them.
const std::set<std::string> kCalled{"alpha_dropout",
                                    "attention",
                                    "batch_ensemble_dense",
                                    "conv_transpose1d",
                                    "conv_transpose2d",
                                    "conv_transpose3d",
                                    "ensemble_dense",
                                    "feature_dropout",
                                    "fp8_linear",
                                    "gru",
                                    "gru_cell",
                                    "lstm",
                                    "lstm_cell",
                                    "nvfp4_linear",
                                    "periodic_embedding",
                                    "piecewise_linear_embedding",
                                    "rnn",
                                    "rnn_cell",
                                    "spectral_norm",
                                    "weight_norm"};
/// Not asked: its input is indices.
const std::set<std::string> kOfIndices{"embedding"};

/// What a layer cannot do without.
Json required_of(const std::string& component) {
  const std::map<std::string, Json> known{{"dense", {{"out_features", 3}}},
                                          {"conv1d", {{"out_channels", 2}, {"kernel_size", 3}}},
                                          {"conv2d", {{"out_channels", 2}, {"kernel_size", 3}}},
                                          {"conv3d", {{"out_channels", 2}, {"kernel_size", 3}}},
                                          {"max_pool1d", {{"kernel_size", 2}}},
                                          {"max_pool2d", {{"kernel_size", 2}}},
                                          {"avg_pool1d", {{"kernel_size", 2}}},
                                          {"avg_pool2d", {{"kernel_size", 2}}},
                                          {"adaptive_max_pool1d", {{"output_size", 2}}},
                                          {"adaptive_max_pool2d", {{"output_size", 2}}},
                                          {"adaptive_avg_pool1d", {{"output_size", 2}}},
                                          {"adaptive_avg_pool2d", {{"output_size", 2}}},
                                          {"gated_feed_forward", {{"hidden_features", 3}}},
                                          {"group_norm", {{"num_groups", 2}}},
                                          {"unflatten", {{"shape", {2, 3}}}},
                                          {"narrow", {{"length", 2}}},
                                          {"pad", {{"padding", {1}}}}};
  const auto found = known.find(component);
  return found == known.end() ? Json::object() : found->second;
}

/// The layer for the first of some sizes that it takes.
std::shared_ptr<Layer> layer_for_any(const LayerFactory& factory, std::vector<std::int64_t>& sizes,
                                     std::string& refusal) {
  for (const std::vector<std::int64_t>& given :
       {std::vector<std::int64_t>{4, 6}, {4, 6, 8}, {4, 4, 6, 6}, {2, 4, 4, 6, 6}}) {
    LayerSpec spec;
    spec.dtype = at::kDouble;
    spec.outputs = {{"output", {3}}};
    std::vector<std::int64_t> of_batches = given;
    of_batches[0] = TensorSpec::kVaries;
    spec.inputs = {TensorSpec(of_batches, at::kDouble)};
    try {
      auto layer = factory.create(spec);
      layer->result(spec.inputs);
      sizes = given;
      return layer;
    } catch (const std::exception& error) {
      refusal = error.what();
    }
  }
  return nullptr;
}

TEST(Lowered, EveryActivationNormReductionAndShapeLayerIsOperations) {
  const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  std::size_t lowered = 0;
  for (const PluginUnderTest::Offer& offer : plugin.offers()) {
    if (offer.interface_word != "layer" || kOfIndices.count(offer.name) > 0 ||
        kCalled.count(offer.name) > 0)
      continue;
    SCOPED_TRACE(offer.name);
    const auto factory = plugin.make<LayerFactory>(offer.name, required_of(offer.name));
    std::vector<std::int64_t> sizes;
    std::string refusal;
    const auto layer = layer_for_any(*factory, sizes, refusal);
    ASSERT_NE(layer, nullptr) << refusal;
    const auto* const says = dynamic_cast<const Lowerable*>(layer.get());
    ASSERT_NE(says, nullptr) << "derive from Lowerable, or name it in kCalled";
    PlanInterpreter plan;
    const PlanValue given = plan.give(at::randn(sizes, at::kDouble), true);

    EXPECT_TRUE(says->lower(plan, {&given, 1}).has_value());
    ++lowered;
  }
  EXPECT_GE(lowered, 48U);
}

}  // namespace
}  // namespace treadle::testing
