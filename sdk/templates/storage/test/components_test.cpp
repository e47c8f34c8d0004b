#include <treadle/testing/component_contract.h>

namespace {

using namespace treadle::testing;

// What every component keeps, whatever its interface: made from its defaults and from any parameters its schema allows,
// refused by name otherwise, and the process stays as it was.
INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
                         ::testing::ValuesIn(components_of(TREADLE_PLUGIN_FOLDER,
                                                           {{"@name@", {{"location", "studies.json"}}}})), CaseName());

}  // namespace
