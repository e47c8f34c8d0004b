#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/testing/plugin/plugin_under_test.h>

/// The cases of all contract suites for a plugin that nothing is known of but its library:
/// components made from their schemas, on specifications that they accept.
namespace treadle::cli {

struct ContractSubject {
  const testing::PluginUnderTest* plugin = nullptr;
  /// Those that a component cannot be made without, by the component's name.
  std::map<std::string, nlohmann::json> parameters;
};

/// GoogleTest asks for cases without an argument, when it is initialized: this is what they are
/// of. The subject outlives the tests.
void set_contract_subject(const ContractSubject& subject);

/// For GoogleTest: all claims but those that depend on what only the author of a component knows,
/// such as whether a schedule may rise.
std::string contract_filter();

/// The component that a case is about, as "optimizer adam"; "" for one that is not from here.
std::string component_of_case(const std::string& suite, const std::string& name);

}  // namespace treadle::cli
