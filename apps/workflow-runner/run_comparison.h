#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "run_records.h"
#include "terminal.h"

/// What `runs list` and `runs compare` print.
namespace treadle::cli {

std::string run_listing(const std::vector<RunRecord>& runs, const Terminal& terminal);
nlohmann::json run_listing_json(const std::vector<RunRecord>& runs);

/// Runs side by side: a row for each, with its numbers and those keys of the documents that are not
/// the same in all of them.
struct Comparison {
  std::vector<std::string> numbers;  ///< "loss", then metrics, "epochs", "time"
  std::vector<std::string> keys;     ///< "optimizer.learning_rate"; a list is one value
  struct Row {
    std::string run;
    std::vector<nlohmann::json> values;  ///< of numbers, then of keys; null where there is none
  };
  std::vector<Row> rows;

  std::string text(const Terminal& terminal) const;
  std::string csv() const;
  nlohmann::json json() const;
};

/// `sort` names a number or a key, or is empty. The best comes first where a direction is better,
/// else the smallest; runs without the value come last. Throws UsageError with a near miss for a
/// name that no run has.
Comparison compare_runs(const std::vector<RunRecord>& runs, const std::string& sort);

/// Runs of the same method, repeated: their documents are the same but for the name and the seed.
struct Method {
  std::vector<std::string> runs;
  std::vector<nlohmann::json> settings;  ///< of MethodComparison::keys; null where it has none
  /// Of a number over the finished runs that have a value.
  struct Spread {
    std::int64_t n = 0;
    double mean = 0;                  ///< NaN of none
    std::optional<double> deviation;  ///< of the sample, divided by n - 1; nothing below two runs
    /// 95 % confidence interval of the mean: mean ± t(0.975, n - 1) deviation / sqrt(n), Student's
    /// t, which takes the values of the runs as normally distributed.
    std::optional<std::pair<double, double>> interval;
  };
  std::vector<Spread> spreads;  ///< of MethodComparison::numbers
};

/// Methods side by side, in the order of their first runs.
struct MethodComparison {
  std::vector<ResultNumber> numbers;  ///< "loss", then metrics, "time"; without values
  std::vector<std::string> keys;      ///< settings that are not the same in all methods
  std::vector<Method> methods;
  /// Of a number with a direction, by name: the methods with the best mean; of runs that test each
  /// batch before they train on it, "accuracy variance" is that over their windows, and the method
  /// with the least of it the most stable.
  std::map<std::string, std::vector<std::size_t>> best;

  std::string text(const Terminal& terminal) const;
  nlohmann::json json() const;
};
MethodComparison compare_methods(const std::vector<RunRecord>& runs);

}  // namespace treadle::cli
