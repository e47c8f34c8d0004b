#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/component.h>
#include <treadle/base/number.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/validation/predictions.h>

namespace treadle {

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

/// Accumulates a metric over many batches: accuracy, F1, RMSE.
///
/// One object per training, another for its test rows; never used by two threads at once, so it
/// needs no locks. Memory stays bounded unless the class comment documents why it cannot (AUC keeps
/// its scores).
class MetricComputer : public Component, public Stateful {
 public:
  static constexpr std::string_view kInterface = "treadle.metric/0";

  ~MetricComputer() override;

  /// Called once, before the first update. Throws a DataError when the metric has no meaning for
  /// such a target, saying for which it has.
  void start(const TargetSpec& target);

  /// Discards all batches so far.
  void reset();

  /// Adds one batch, both in the data's units and on the CPU, whatever device the model is on.
  /// Positions count target.weights() (1 each where undefined); those of weight 0 are padding. No
  /// gradients are recorded.
  void update(const Prediction& prediction, const TargetBatch& target);

  /// Adds the batches of `other`, as if they had been added here, after ours. Expects `other` to be
  /// of the same class and configuration.
  void merge(const MetricComputer& other);

  /// The values over all batches since reset(). More may follow. A value that has no meaning for
  /// these rows and weights (there are none; no row is positive) is undefined, with the reason;
  /// NaN without a reason says that predictions were not finite. More rows never make a value
  /// undefined that was not.
  MetricResult compute() const;

 private:
  virtual void do_start(const TargetSpec& target) = 0;
  virtual void do_reset() = 0;
  virtual void do_update(const Prediction& prediction, const TargetBatch& target) = 0;
  virtual void do_merge(const MetricComputer& other) = 0;
  virtual MetricResult do_compute() const = 0;
};

/// A metric and the target it is computed for. The metric is borrowed.
struct TargetMetric {
  MetricComputer* metric = nullptr;
  std::size_t target = 0;   ///< index in DataSpec::targets
  TargetSpec spec = {};     ///< of that target, in the data's units
  std::string prefix = {};  ///< "species/" where the data has several targets

  void update(const Predictions& predictions, const Batch& batch) const;
  /// MetricComputer::compute() with the prefix in front of every name.
  MetricResult compute() const;
};

}  // namespace treadle
