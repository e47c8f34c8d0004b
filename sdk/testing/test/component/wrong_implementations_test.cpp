#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/scratch_folder.h>

#include "wrong.h"

namespace treadle::testing {
namespace {

std::vector<Defect> all_defects() {
  std::vector<Defect> all;
  for (const auto& some :
       {data_defects(),        stream_defects(),    transform_defects(), validation_defects(),
        model_defects(),       layer_defects(),     graph_defects(),     loss_defects(),
        gradients_defects(),   optimizer_defects(), schedule_defects(),  metric_defects(),
        output_defects(),      sampler_defects(),   writer_defects(),    sequence_defects(),
        observer_defects(),    training_defects(),  callback_defects(),  device_defects(),
        tokenizer_defects(),   storage_defects(),   tuner_defects(),     pruner_defects(),
        communicator_defects()})
    all.insert(all.end(), some.begin(), some.end());
  for (Defect& defect : all)
    defect.name = defect.suite + "_" + defect.name;
  return all;
}

/// This program run a second time, with the instantiations that it hides from the first: all suites
/// on all wrong implementations.
class WrongImplementation : public ::testing::TestWithParam<Defect> {
 protected:
  static void SetUpTestSuite() {
    const ScratchFolder folder;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    const std::filesystem::path verdicts = folder.path() / "verdicts.json";
    const std::string command = "cd '" + folder.path().string() + "' && '" + program.string() +
                                "' --gtest_also_run_disabled_tests "
                                "--gtest_filter='DISABLED_Wrong/*' --gtest_output='json:" +
                                verdicts.string() + "' > output.txt 2>&1";
    const int status = std::system(command.c_str());
    std::ostringstream output;
    output << std::ifstream(folder.path() / "output.txt").rdbuf();
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << output.str();
    const nlohmann::json report = nlohmann::json::parse(std::ifstream(verdicts));
    for (const auto& suite : report["testsuites"]) {
      for (const auto& test : suite["testsuite"])
        check(suite["name"], test);
    }
  }

  /// "DISABLED_Wrong/MetricContract" and "IsUndefined/Dropped" →
  /// failures["MetricContract_Dropped"].
  static void check(const std::string& suite, const nlohmann::json& test) {
    const std::string name = test["name"];
    const std::size_t slash = name.find('/');
    const std::string wrong = suite.substr(suite.find('/') + 1) + "_" + name.substr(slash + 1);
    auto& failed = failures[wrong];
    if (test.contains("failures"))
      failed[name.substr(0, slash)] = test["failures"].dump(2);
  }

  /// By suite and case, by claim: what it said.
  static inline std::map<std::string, std::map<std::string, std::string>> failures;
};

TEST_P(WrongImplementation, FailsExactlyTheClaimsAboutItsDefect) {
  const Defect& defect = GetParam();
  ASSERT_EQ(failures.count(defect.name), 1U) << "it was not run";

  std::set<std::string> claims;
  std::string said;
  for (const auto& [claim, text] : failures[defect.name]) {
    claims.insert(claim);
    said += claim + ": " + text + "\n";
  }
  EXPECT_EQ(claims, defect.claims) << said;
}

INSTANTIATE_TEST_SUITE_P(All, WrongImplementation, ::testing::ValuesIn(all_defects()), CaseName());

}  // namespace
}  // namespace treadle::testing
