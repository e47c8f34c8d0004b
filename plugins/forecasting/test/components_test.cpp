#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Plugin, ComponentContract,
    ::testing::ValuesIn(components_of(TREADLE_PLUGIN_FOLDER,
                                      {{"repeat_period", {{"horizon", 3}}},
                                       {"n_beats_stack", {{"horizon", 3}}},
                                       {"n_hits_stack", {{"horizon", 3}}},
                                       {"gated_residual_network", {{"hidden_size", 4}}},
                                       {"interpretable_attention", {{"queries", 2}}},
                                       {"patch_embedding", {{"out_features", 8}}}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
