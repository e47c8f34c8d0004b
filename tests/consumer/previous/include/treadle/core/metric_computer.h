#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/component.h>
#include <treadle/core/batch.h>
#include <treadle/core/predictions.h>
#include <treadle/core/state_dict.h>

namespace treadle {

/// Which way is better; decides what "best" means and how early stopping looks at it.
enum class Direction { kLowerIsBetter, kHigherIsBetter, kNone };

struct MetricValue {
  std::string name;  ///< "accuracy", "recall.setosa"
  double value = 0;
  Direction direction = Direction::kNone;
};

/// A result that is a table rather than a number: a confusion matrix, a residual histogram.
struct MetricTable {
  std::string name;
  std::vector<std::string> row_labels;     ///< may be empty
  std::vector<std::string> column_labels;  ///< may be empty
  at::Tensor values;                       ///< float64 [rows, columns], CPU
};

struct MetricResult {
  std::vector<MetricValue> values;
  std::vector<MetricTable> tables;
};

/// Accumulates a judgement over many batches: accuracy, F1, RMSE.
///
/// One object per data split and worker; never shared between threads, needs no locks. Memory stays
/// bounded unless the class comment says why it cannot (AUC keeps its scores).
class MetricComputer : public Component, public Stateful {
 public:
  static constexpr std::string_view kInterface = "treadle.metric/1";

  ~MetricComputer() override;

  /// Called once, before the first update. Throws a DataError when the metric has no meaning for
  /// such a target, saying for which it has.
  void start(const TargetSpec& target);

  /// Forgets every batch seen so far.
  void reset();

  /// Adds one batch. `predictions` in the data's units; judges by
  /// batch.original_targets; rows count batch.weights (1 each when undefined). No gradients are
  /// recorded.
  void update(const Predictions& predictions, const Batch& batch);

  /// Adds everything `other` has seen, as if its batches had been given here, after ours. Expects
  /// `other` to be of the same class and configuration.
  void merge(const MetricComputer& other);

  /// The values over all batches since reset(). More may follow. A value that has no meaning yet
  /// (no rows; no positive row) is NaN.
  MetricResult compute() const;

 private:
  virtual void do_start(const TargetSpec& target) = 0;
  virtual void do_reset() = 0;
  virtual void do_update(const Predictions& predictions, const Batch& batch) = 0;
  virtual void do_merge(const MetricComputer& other) = 0;
  virtual MetricResult do_compute() const = 0;
};

}  // namespace treadle
