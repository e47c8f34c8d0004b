// treadle-contract: tests the claims of the contract suites on a plugin's library. Started by
// workflow-runner for `plugins check --contract`, with the same arguments; ships with the SDK.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/problem.h>

#include "claims.h"
#include "command_line/answer.h"
#include "command_line/program.h"
#include "plugins/plugin_check.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;
using testing::PluginUnderTest;

/// Those packed into the library, or, by component, those in contract.json beside it. Throws
/// DocumentError for a file that has other things in it.
std::map<std::string, Json> parameters_for(const PluginUnderTest& plugin,
                                           const std::filesystem::path& library) {
  std::map<std::string, Json> parameters = plugin.contract_parameters();
  const std::filesystem::path beside = library.parent_path() / "contract.json";
  if (!std::filesystem::exists(beside))
    return parameters;
  const auto document = Document::read(beside);
  if (!document->value().is_object())
    throw DocumentError({{document->place_of(""), "",
                          "expected parameters by the names of components, as in "
                          "{\"my_component\": {\"path\": \"table.txt\"}}, got " +
                              describe_value(document->value())}});
  std::vector<std::string> offered;
  for (const PluginUnderTest::Offer& offer : plugin.offers()) {
    offered.push_back(offer.name);
    offered.push_back(offer.interface_word + "/" + offer.name);
  }
  std::vector<Problem> problems;
  for (const auto& [component, given] : document->value().items()) {
    const std::string pointer = child_pointer("", component);
    if (std::find(offered.begin(), offered.end(), component) == offered.end()) {
      problems.push_back({document->place_of(pointer), pointer,
                          "the plugin offers no component " + quote_text(component) +
                              did_you_mean(component, offered)});
    } else if (!given.is_object()) {
      problems.push_back({document->place_of(pointer), pointer,
                          "expected the parameters of " + quote_text(component) +
                              " as an object, got " + describe_value(given)});
    }
    for (const PluginUnderTest::Offer& offer : plugin.offers()) {
      const std::string full = offer.interface_word + "/" + offer.name;
      if (component == offer.name || component == full)
        parameters[full] = given;
    }
  }
  if (!problems.empty())
    throw DocumentError(std::move(problems));
  return parameters;
}

/// Throws DocumentError where a component lacks a key that its schema requires: none of its claims
/// could be tested.
void expect_all_required(const PluginUnderTest& plugin,
                         const std::map<std::string, Json>& parameters,
                         const std::filesystem::path& library) {
  std::vector<Problem> problems;
  for (const PluginUnderTest::Offer& offer : plugin.offers()) {
    if (!offer.schema.is_object())
      continue;
    const Json given = testing::parameters_of(offer, parameters);
    for (const Json& key : offer.schema.value("required", Json::array())) {
      if (given.contains(key.get<std::string>()))
        continue;
      const std::string component = quote_text(offer.name);
      const std::string name = quote_text(key.get<std::string>());
      problems.push_back({{library.string(), 0, 0},
                          "",
                          component + " cannot be made without " + name +
                              ", which its schema requires; say with what it is tested in "
                              "contract.json, beside plugin.json or beside the library: {" +
                              component + ": {" + name + ": ...}}"});
    }
  }
  if (!problems.empty())
    throw DocumentError(std::move(problems));
}

void check_contract(const CommandLine& line) {
  const std::filesystem::path library = std::filesystem::absolute(line.arguments[0]);
  const PluginCheck check = check_plugin(line.arguments[0], line.plugin_settings());
  ContractResult contract;
  if (check.loads) {
    const PluginUnderTest plugin(PluginUnderTest::Library{library});
    const std::map<std::string, Json> parameters = parameters_for(plugin, library);
    expect_all_required(plugin, parameters, library);
    contract = test_claims({&plugin, parameters});
  }
  if (line.has("json")) {
    Json answer = check.json();
    answer["contract"] = contract.json();
    answer["good"] = check.is_good() && contract.is_good();
    print(answer);
  } else if (!line.has("quiet")) {
    const Terminal terminal(STDOUT_FILENO);
    print(check.text(terminal) + contract.text(terminal));
  }
  if (!check.is_good() || !contract.is_good())
    throw AlreadyTold{ErrorKind::kPlugin};
}

}  // namespace
}  // namespace treadle::cli

int main(int argc, char** argv) {
  using namespace treadle::cli;
  const Program program{true, {{"plugins check", check_contract}}, [](const CommandLine& line) {
                          throw treadle::UsageError("treadle-contract does not execute \"" +
                                                    std::string(line.command->name) +
                                                    "\"; start workflow-runner instead");
                        }};
  return run_program(argc, argv, program);
}
