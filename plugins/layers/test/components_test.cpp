#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Plugin, ComponentContract,
    ::testing::ValuesIn(components_of(TREADLE_PLUGIN_FOLDER,
                                      {{"dense", {{"units", 3}}},
                                       {"conv1d", {{"channels", 2}, {"kernel", 3}}},
                                       {"conv2d", {{"channels", 2}, {"kernel", 3}}},
                                       {"conv3d", {{"channels", 2}, {"kernel", 3}}},
                                       {"conv_transpose1d", {{"channels", 2}, {"kernel", 3}}},
                                       {"conv_transpose2d", {{"channels", 2}, {"kernel", 3}}},
                                       {"conv_transpose3d", {{"channels", 2}, {"kernel", 3}}},
                                       {"max_pool1d", {{"kernel", 2}}},
                                       {"max_pool2d", {{"kernel", 2}}},
                                       {"avg_pool1d", {{"kernel", 2}}},
                                       {"avg_pool2d", {{"kernel", 2}}},
                                       {"adaptive_max_pool1d", {{"size", 2}}},
                                       {"adaptive_max_pool2d", {{"size", 2}}},
                                       {"adaptive_avg_pool1d", {{"size", 2}}},
                                       {"adaptive_avg_pool2d", {{"size", 2}}},
                                       {"group_norm", {{"groups", 2}}},
                                       {"embedding", {{"num_embeddings", 4}, {"embedding_dim", 3}}},
                                       {"rnn_cell", {{"units", 3}}},
                                       {"gru_cell", {{"units", 3}}},
                                       {"lstm_cell", {{"units", 3}}},
                                       {"rnn", {{"units", 3}}},
                                       {"gru", {{"units", 3}}},
                                       {"lstm", {{"units", 3}}},
                                       {"unflatten", {{"sizes", {2, 3}}}},
                                       {"narrow", {{"length", 2}}},
                                       {"pad", {{"widths", {1}}}}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
