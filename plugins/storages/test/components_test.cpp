#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
                         ::testing::ValuesIn(components_of(
                             TREADLE_PLUGIN_FOLDER,
                             {{"journal", {{"location", "/nowhere/studies.jsonl"}}},
                              {"postgresql", {{"location", "postgresql://me@nowhere/studies"}}},
                              {"sqlite", {{"location", "/nowhere/studies.db"}}}})),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
