#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

const nlohmann::json kWithin{{"use", "dense"}, {"out_features", 3}};

INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
                         ::testing::ValuesIn(components_of(
                             TREADLE_PLUGIN_FOLDER,
                             {{"dense", {{"out_features", 3}}},
                              {"batch_ensemble_dense", {{"members", 2}, {"out_features", 3}}},
                              {"ensemble_dense", {{"members", 2}, {"out_features", 3}}},
                              {"weight_norm", {{"layer", kWithin}}},
                              {"spectral_norm", {{"layer", kWithin}}},
                              {"fp8_linear", {{"out_features", 3}}},
                              {"nvfp4_linear", {{"out_features", 3}}},
                              {"conv1d", {{"out_channels", 2}, {"kernel_size", 3}}},
                              {"conv2d", {{"out_channels", 2}, {"kernel_size", 3}}},
                              {"conv3d", {{"out_channels", 2}, {"kernel_size", 3}}},
                              {"conv_transpose1d", {{"out_channels", 2}, {"kernel_size", 3}}},
                              {"conv_transpose2d", {{"out_channels", 2}, {"kernel_size", 3}}},
                              {"conv_transpose3d", {{"out_channels", 2}, {"kernel_size", 3}}},
                              {"max_pool1d", {{"kernel_size", 2}}},
                              {"max_pool2d", {{"kernel_size", 2}}},
                              {"avg_pool1d", {{"kernel_size", 2}}},
                              {"avg_pool2d", {{"kernel_size", 2}}},
                              {"adaptive_max_pool1d", {{"output_size", 2}}},
                              {"adaptive_max_pool2d", {{"output_size", 2}}},
                              {"adaptive_avg_pool1d", {{"output_size", 2}}},
                              {"adaptive_avg_pool2d", {{"output_size", 2}}},
                              {"group_norm", {{"num_groups", 2}}},
                              {"embedding", {{"num_embeddings", 4}, {"embedding_dim", 3}}},
                              {"gated_feed_forward", {{"hidden_features", 3}}},
                              {"rnn_cell", {{"hidden_size", 3}}},
                              {"gru_cell", {{"hidden_size", 3}}},
                              {"lstm_cell", {{"hidden_size", 3}}},
                              {"rnn", {{"hidden_size", 3}}},
                              {"gru", {{"hidden_size", 3}}},
                              {"lstm", {{"hidden_size", 3}}},
                              {"unflatten", {{"shape", {2, 3}}}},
                              {"narrow", {{"length", 2}}},
                              {"pad", {{"padding", {1}}}}})),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
