#include "claims.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "terminal/fatal_signals.h"

namespace treadle::cli {
namespace {

/// What stands in front of the first slash, or behind the last.
std::string before_slash(std::string_view text) {
  return std::string(text.substr(0, text.find('/')));
}
std::string after_slash(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  return std::string(slash == text.npos ? text : text.substr(slash + 1));
}

/// Collects the outcome of each claim; prints nothing.
class ClaimCollector final : public ::testing::EmptyTestEventListener {
 public:
  explicit ClaimCollector(ContractResult& result) : result_(result) {}

 private:
  // GoogleTest's names: suite "Plugin/LossContract", test "AddsUpOverPartsOfABatch/mse_numbers".
  void OnTestStart(const ::testing::TestInfo& info) override {
    set_crash_remedy("It was tested for " + after_slash(info.test_suite_name()) + "." +
                     before_slash(info.name()) + ", on " + component_of(info) +
                     ": mend what the claim finds.");
  }

  void OnTestEnd(const ::testing::TestInfo& info) override {
    ComponentResult& component = of(component_of(info));
    const ::testing::TestResult& outcome = *info.result();
    if (outcome.Skipped()) {
      ++component.skipped;
    } else if (outcome.Passed()) {
      ++component.held;
    } else {
      component.failed.push_back({after_slash(info.test_suite_name()), before_slash(info.name()),
                                  after_slash(info.name()), messages_of(outcome)});
    }
  }

  static std::string component_of(const ::testing::TestInfo& info) {
    return component_of_case(after_slash(info.test_suite_name()), after_slash(info.name()));
  }

  static std::string messages_of(const ::testing::TestResult& outcome) {
    constexpr int kShown = 3;  // the first few say it
    std::string messages;
    int failed = 0;
    for (int i = 0; i < outcome.total_part_count(); ++i) {
      const ::testing::TestPartResult& part = outcome.GetTestPartResult(i);
      if (part.failed() && ++failed <= kShown)
        messages += (messages.empty() ? "" : "\n") + std::string(part.message());
    }
    if (failed > kShown)
      messages += "\n… and " + std::to_string(failed - kShown) + " more";
    return messages;
  }

  ComponentResult& of(const std::string& component) {
    const auto found =
        std::find_if(result_.components.begin(), result_.components.end(),
                     [&](const ComponentResult& one) { return one.component == component; });
    if (found != result_.components.end())
      return *found;
    result_.components.push_back({component, 0, 0, {}});
    return result_.components.back();
  }

  ContractResult& result_;
};

/// What components print is no part of the answer.
class NoStandardOutput {
 public:
  NoStandardOutput() : before_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::close(nowhere);
  }
  ~NoStandardOutput() {
    std::fflush(stdout);
    ::dup2(before_, STDOUT_FILENO);
    ::close(before_);
  }
  NoStandardOutput(const NoStandardOutput&) = delete;
  NoStandardOutput& operator=(const NoStandardOutput&) = delete;

 private:
  int before_;
};

}  // namespace

ContractResult test_claims(const ContractSubject& subject) {
  set_contract_subject(subject);
  // Settings of GoogleTest in the environment are meant for tests.
  for (const char* variable : {"GTEST_FILTER", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX",
                               "GTEST_OUTPUT", "GTEST_REPEAT", "GTEST_SHUFFLE"})
    ::unsetenv(variable);
  std::string program = "treadle-contract";
  std::string filter = "--gtest_filter=" + contract_filter();
  std::string also = "--gtest_also_run_disabled_tests";
  char* arguments[] = {program.data(), filter.data(), also.data(), nullptr};
  int count = 3;
  ::testing::InitGoogleTest(&count, arguments);
  ContractResult result;
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new ClaimCollector(result));  // GoogleTest's from here on
  report_fatal_signals();
  const NoStandardOutput none;
  [[maybe_unused]] const int failed = RUN_ALL_TESTS();  // the collector knows which
  return result;
}

}  // namespace treadle::cli
