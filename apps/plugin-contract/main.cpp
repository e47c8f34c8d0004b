// treadle-contract: tests the claims of the contract suites on a plugin's library. Started by
// workflow-runner for `plugins check --contract`, with the same arguments; ships with the SDK.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "answer.h"
#include "claims.h"
#include "plugin_check.h"
#include "program.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;
using testing::PluginUnderTest;

/// The parameters in contract.json beside the library; those that the library has within it are
/// what the rest is made from.
std::map<std::string, Json> parameters_for(const PluginUnderTest& plugin,
                                           const std::filesystem::path& library) {
  std::map<std::string, Json> parameters = plugin.contract_parameters();
  const std::filesystem::path beside = library.parent_path() / "contract.json";
  if (!std::filesystem::exists(beside))
    return parameters;
  const auto document = Document::read(beside);
  if (!document->value().is_object())
    throw DocumentError({{document->place_of(""), "",
                          "expected parameters by the names of components, got " +
                              describe_value(document->value())}});
  for (const auto& [component, given] : document->value().items())
    parameters[component] = given;
  return parameters;
}

void check_contract(const CommandLine& line) {
  const std::filesystem::path library = std::filesystem::absolute(line.arguments[0]);
  const PluginCheck check = check_plugin(line.arguments[0], line.plugin_settings());
  ContractResult contract;
  if (check.loads) {
    const PluginUnderTest plugin(PluginUnderTest::Library{library});
    contract = test_claims({&plugin, parameters_for(plugin, library)});
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
