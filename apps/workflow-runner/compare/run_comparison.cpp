#include "compare/run_comparison.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

#include "terminal/result_text.h"
#include "terminal/text_table.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

template <typename Value, std::size_t count>
Value value_named(const CommandLine& line, const char* option,
                  const std::array<std::pair<const char*, Value>, count>& known) {
  const std::string word = line.text(option);
  std::vector<std::string> words;
  for (const auto& [name, value] : known) {
    if (name == word)
      return value;
    words.emplace_back(name);
  }
  throw UsageError("--" + std::string(option) + ": expected " + name_list(words) + ", got " +
                   quote_text(word) + did_you_mean(word, words));
}

Budget budget_of(const CommandLine& line, const std::vector<RunRecord>& runs) {
  if (!line.has("at"))
    return {};
  if (judged_on(line) == JudgedOn::kTest) {
    throw UsageError(
        "--at compares what validation rows came to on the way, and test rows are evaluated once, "
        "at the end; leave --on or --at out");
  }
  constexpr std::array kUnits{std::pair("updates", Budget::Unit::kUpdates),
                              std::pair("time", Budget::Unit::kSeconds)};
  return shared_budget(runs, value_named(line, "at", kUnits));
}

void expect_test_rows(const std::vector<RunRecord>& runs,
                      const std::vector<MeasuredRun>& measured) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].result.is_object() && measured[i].trainings.empty()) {
      throw UsageError(measured[i].name +
                       ": has no test rows; train with validation.test_fraction, or leave --on "
                       "test out");
    }
  }
}

std::string budget_text(const Budget& budget) {
  const std::string when =
      budget.unit == Budget::Unit::kUpdates
          ? std::to_string(static_cast<std::int64_t>(budget.amount)) +
                " updates of each training, the most"
          : fine_seconds_text(budget.amount) + " of each training, the longest";
  return "After " + when + " that all reach: the last validated epoch, and the best until then.";
}

Json budget_json(const Budget& budget) {
  return budget.unit == Budget::Unit::kNone      ? Json()
         : budget.unit == Budget::Unit::kUpdates ? Json{{"updates", budget.amount}}
                                                 : Json{{"seconds", budget.amount}};
}

}  // namespace

JudgedOn judged_on(const CommandLine& line) {
  constexpr std::array kRows{std::pair("validation", JudgedOn::kValidation),
                             std::pair("test", JudgedOn::kTest)};
  return value_named(line, "on", kRows);
}

RunComparison compare_runs(const CommandLine& line) {
  const JudgedOn on = judged_on(line);
  RunComparison comparison;
  for (const std::string& folder : line.arguments)
    comparison.runs.push_back(read_run(std::filesystem::path(folder).lexically_normal()));
  expect_same_targets(comparison.runs);
  comparison.budget = budget_of(line, comparison.runs);
  for (const RunRecord& run : comparison.runs)
    comparison.measured.push_back(measure_run(run, on, comparison.budget));
  join_sources(comparison.measured);
  if (on == JudgedOn::kTest)
    expect_test_rows(comparison.runs, comparison.measured);
  comparison.table =
      run_table(comparison.runs, comparison.measured, comparison.budget, line.text("sort"));
  comparison.methods = compare_methods(comparison.runs, comparison.measured,
                                       have_comparable_losses(comparison.runs));
  comparison.checks = check_comparability(comparison.runs, comparison.measured, comparison.methods);
  return comparison;
}

std::string RunComparison::text(const Terminal& terminal) const {
  std::string said;
  if (budget.unit != Budget::Unit::kNone)
    said += paragraph(budget_text(budget), terminal) + "\n";
  said += table.text(terminal);
  if (methods.has_repeated_runs())
    said += "\n" + terminal.bold("Methods") + "\n" + methods.table(terminal);
  if (!checks.empty())
    said += "\n" + terminal.bold("Comparable") + "\n" + checks_text(checks, terminal);
  if (const std::string differences = methods.differences(terminal); !differences.empty())
    said += "\n" + terminal.bold("Differences") + "\n" + differences;
  return said;
}

Json RunComparison::json() const {
  Json all = methods.json(measured);
  all["runs"] = table.json();
  all["comparable"] = checks_json(checks);
  all["at"] = budget_json(budget);
  return all;
}

}  // namespace treadle::cli
