#include "compare/run_comparison.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

#include "compare/comparison_text.h"
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

compare::Budget budget_of(const CommandLine& line, const std::vector<compare::RunRecord>& runs) {
  if (!line.has("at"))
    return {};
  if (evaluated_on(line) == compare::EvaluatedOn::kTest) {
    throw UsageError(
        "--at compares what validation rows came to on the way, and test rows are evaluated once, "
        "at the end; leave --on or --at out");
  }
  constexpr std::array kUnits{std::pair("updates", compare::Budget::Unit::kUpdates),
                              std::pair("time", compare::Budget::Unit::kSeconds)};
  return compare::shared_budget(runs, value_named(line, "at", kUnits));
}

void expect_test_rows(const std::vector<compare::RunRecord>& runs,
                      const std::vector<compare::MeasuredRun>& measured) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].result.has_value() && measured[i].trainings.empty()) {
      throw UsageError(measured[i].name +
                       ": has no test rows; train with validation.test_fraction, or leave --on "
                       "test out");
    }
  }
}

std::string budget_text(const compare::Budget& budget) {
  const std::string when =
      budget.unit == compare::Budget::Unit::kUpdates
          ? std::to_string(static_cast<std::int64_t>(budget.amount)) +
                " updates of each training, the most"
          : fine_seconds_text(budget.amount) + " of each training, the longest";
  return "After " + when + " that all reach: the last validated epoch, and the best until then.";
}

Json budget_json(const compare::Budget& budget) {
  return budget.unit == compare::Budget::Unit::kNone      ? Json()
         : budget.unit == compare::Budget::Unit::kUpdates ? Json{{"updates", budget.amount}}
                                                          : Json{{"seconds", budget.amount}};
}

}  // namespace

compare::EvaluatedOn evaluated_on(const CommandLine& line) {
  constexpr std::array kRows{std::pair("validation", compare::EvaluatedOn::kValidation),
                             std::pair("test", compare::EvaluatedOn::kTest)};
  return value_named(line, "on", kRows);
}

RunComparison compare_runs(const CommandLine& line) {
  const compare::EvaluatedOn on = evaluated_on(line);
  RunComparison comparison;
  for (const std::string& folder : line.arguments)
    comparison.runs.push_back(compare::read_run(std::filesystem::path(folder).lexically_normal()));
  compare::expect_same_targets(comparison.runs);
  comparison.budget = budget_of(line, comparison.runs);
  for (const compare::RunRecord& run : comparison.runs) {
    comparison.measured.push_back(compare::measure_run(run, on, comparison.budget));
    comparison.measured.back().name = shown_path(run.folder);
  }
  compare::join_sources(comparison.measured);
  if (on == compare::EvaluatedOn::kTest)
    expect_test_rows(comparison.runs, comparison.measured);
  comparison.table =
      run_table(comparison.runs, comparison.measured, comparison.budget, line.text("sort"));
  comparison.methods = compare::compare_methods(comparison.runs, comparison.measured,
                                                compare::have_comparable_losses(comparison.runs));
  comparison.checks =
      compare::check_comparability(comparison.runs, comparison.measured, comparison.methods);
  return comparison;
}

std::string RunComparison::text(const Terminal& terminal) const {
  std::string said;
  if (budget.unit != compare::Budget::Unit::kNone)
    said += paragraph(budget_text(budget), terminal) + "\n";
  said += table.text(terminal);
  if (methods.has_repeated_runs())
    said += "\n" + terminal.bold("Methods") + "\n" + methods_text(methods, terminal);
  if (!checks.empty())
    said += "\n" + terminal.bold("Comparable") + "\n" + checks_text(checks, terminal);
  if (const std::string differences = differences_text(methods, terminal); !differences.empty())
    said += "\n" + terminal.bold("Differences") + "\n" + differences;
  return said;
}

Json RunComparison::json() const {
  Json all = comparison_json(methods, measured);
  all["runs"] = table.json();
  all["comparable"] = checks_json(checks);
  all["at"] = budget_json(budget);
  return all;
}

}  // namespace treadle::cli
