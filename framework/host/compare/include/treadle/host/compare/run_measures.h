#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/host/compare/run_records.h>

/// The numbers that finished runs are compared by.
namespace treadle::compare {

/// The rows that measure a model.
enum class EvaluatedOn {
  kValidation,  ///< as when settings are chosen; of folds with test rows, those
  kTest
};

/// How far a training has come when it is measured.
struct Budget {
  enum class Unit { kNone, kUpdates, kSeconds };
  Unit unit = Unit::kNone;  ///< kNone: as it ended
  double amount = 0;
};

/// One training that a run is measured by: its only one, or that of a fold.
struct MeasuredTraining {
  std::string fit;  ///< its path
  /// Identifies the evaluated rows: equal for the same rows of the same data. Empty if unknown.
  std::string rows;
  std::int64_t evaluated_rows = 0;  ///< how many these are; 0: not known
  std::int64_t training = 0;        ///< how many rows train; 0: not known
  std::optional<double> updates;
  std::optional<double> seconds;
  std::map<std::string, double> values;  ///< of the measures that are numbers
};

struct MeasuredRun {
  std::string name;                   ///< its folder as it is shown
  std::optional<std::uint64_t> seed;  ///< as its document has it
  std::string data;                   ///< a hash of its data; empty where it is not known
  std::string source;                 ///< of which rows of which file that is, likewise
  std::vector<MetricValue> numbers;   ///< "loss", then metrics; of folds the means
  std::vector<MeasuredTraining> trainings;
};

/// Numbers without values and trainings where there is nothing to measure: in an unfinished run,
/// one without test rows, or where no epoch fits the budget. With a budget, "loss" and the metrics
/// are those of the last validated epoch within it, and "best loss" and so on the best until then.
MeasuredRun measure_run(const RunRecord& run, EvaluatedOn on = EvaluatedOn::kValidation,
                        const Budget& budget = {});

/// Runs on the same rows of one file have the same data from then on, whichever columns they take
/// and in whatever precision.
void join_sources(std::vector<MeasuredRun>& runs);

/// "f1.setosa": a number of every class makes no table that anybody can read; CSV and JSON have
/// them.
bool is_of_one_class(std::string_view name);

/// The largest amount that all trainings of the finished runs reach. Throws UsageError where a run
/// has no validated epochs.
Budget shared_budget(const std::vector<RunRecord>& runs, Budget::Unit unit);

}  // namespace treadle::compare
