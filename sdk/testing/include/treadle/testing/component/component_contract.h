#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/component.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>
#include <treadle/testing/plugin/plugin_under_test.h>

/// What every component must keep, whatever its interface. `plugins check --contract` runs it on a
/// built plugin; in a test program, one line is for all components:
///
///     INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
///                              ::testing::ValuesIn(components_of(TREADLE_PLUGIN_FOLDER)),
///                              CaseName());
namespace treadle::testing {

struct ComponentCase {
  std::string name;
  /// Makes one as a document would: checks the parameters and fills in defaults.
  std::function<std::unique_ptr<Component>(const nlohmann::json& parameters)> make;
  nlohmann::json schema;
  /// Those that have no default.
  nlohmann::json parameters = nlohmann::json::object();
};

/// A case per component that the plugin of this program registers or `folder` has a schema for,
/// named "optimizer_adam". `parameters` are by component, for those whose schemas require some.
std::vector<ComponentCase> components_of(
    const std::filesystem::path& folder,
    const std::map<std::string, nlohmann::json>& parameters = {},
    const ComponentContext& context = {});

TREADLE_CONTRACT_SUITE(ComponentContract, ComponentCase);

}  // namespace treadle::testing
