#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
                         ::testing::ValuesIn(components_of(
                             TREADLE_PLUGIN_FOLDER,
                             {{"grid_softmax", {{"rows", 2}, {"cols", 3}}},
                              {"tree_softmax", {{"levels", {2, 3}}}},
                              {"top_k_router", {{"num_experts", 3}}},
                              {"adaptive_log_softmax", {{"num_classes", 5}, {"cutoffs", {2}}}}})),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
