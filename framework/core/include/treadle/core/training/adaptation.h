#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/validation/metric_computer.h>

/// How a model that goes on learning follows its task: numbers per window of rows, changes of the
/// task, and how long it takes to recover from each.
namespace treadle {

/// From this row on, counted from 0, the task is another one.
struct TaskChange {
  std::int64_t row = 0;
  std::string task;
};

/// Consecutive rows, each predicted before the model learnt from it.
struct AdaptationWindow {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;            ///< 0: nothing was predicted; such a window counts nowhere
  std::string task;                 ///< of the first row
  std::vector<MetricValue> values;  ///< "loss", then the metrics
};

/// A model counts as recovered from a change in the first window whose `metric` meets a bound.
struct RecoveryRule {
  std::string metric;
  /// Met by a value of at least this; where lower is better, of at most this.
  std::optional<double> threshold;
  /// Met by a value of at least this part, in (0, 1], of that of the window before the change;
  /// where lower is better, of at most that value divided by this part. Needs a value above 0.
  std::optional<double> share;
};

/// A change and what followed.
struct ChangeEffect {
  TaskChange change;
  /// Index of the window that contains the row; nothing: the windows end before it.
  std::optional<std::size_t> window;
  std::vector<MetricValue> before;  ///< of the window before that; empty where there is none
  std::vector<MetricValue> after;   ///< of that window
  /// The number of windows from that one to the first which is recovered: 0 for that one itself.
  /// Nothing: none of those before the one that contains the next change is.
  std::optional<std::int64_t> windows_to_threshold;
  std::optional<std::int64_t> windows_to_share;
};

/// Over all windows that have rows, and in which a number is known.
struct AdaptationSummary {
  std::vector<ChangeEffect> changes;
  std::vector<MetricValue> means;
  /// Population variances, divided by n: the smaller, the more stable.
  std::vector<MetricValue> variances;
};

/// The number called `name` of a window; null where it has none.
const MetricValue* find_number(std::span<const MetricValue> values, std::string_view name);

/// `changes` by ascending rows. Throws UsageError, with the names there are, where no window has
/// the rule's metric.
AdaptationSummary summarize(std::span<const AdaptationWindow> windows,
                            std::span<const TaskChange> changes, const RecoveryRule& rule);

/// Counts rows into windows and finds the task of each: the clock of a model that goes on learning.
/// One thread.
class AdaptationTracker final : public Stateful {
 public:
  /// `first_task`: until the first change. Throws UsageError unless the rows of `changes` ascend,
  /// from 1 on.
  AdaptationTracker(std::string first_task, std::vector<TaskChange> changes);

  /// A change that is not scheduled but met: `change.row` is not before a row of the windows that
  /// have ended, nor before an earlier change.
  void add_change(TaskChange change);
  /// Further rows, in the window that is open.
  void count(std::int64_t rows);
  /// Ends the open window. Expects rows in it.
  void end_window(std::vector<MetricValue> values);

  /// Counted so far.
  std::int64_t rows() const { return first_row_ + open_rows_; }
  std::int64_t open_rows() const { return open_rows_; }
  /// Of a row: what was the last change up to it.
  const std::string& task_of(std::int64_t row) const;

  const std::vector<AdaptationWindow>& windows() const { return windows_; }
  const std::vector<TaskChange>& changes() const { return changes_; }

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::string first_task_;
  std::vector<TaskChange> changes_;
  std::vector<AdaptationWindow> windows_;
  std::int64_t first_row_ = 0;  // of the open window
  std::int64_t open_rows_ = 0;
};

/// What a training that tests before it trains leaves beside its history.
struct AdaptationRecord {
  std::int64_t window_rows = 0;  ///< of a full window
  RecoveryRule recovery;
  std::vector<AdaptationWindow> windows;
  AdaptationSummary summary;
};
/// An optional ability of a TrainingWorkflow that evaluates each batch before it trains on it.
class RecordsAdaptation {
 public:
  static constexpr std::string_view kInterface = "treadle.records-adaptation/0";

  virtual ~RecordsAdaptation();
  /// After train().
  virtual AdaptationRecord adaptation() const = 0;
};

}  // namespace treadle
