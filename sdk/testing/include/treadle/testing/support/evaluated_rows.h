#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/validation/metric_computer.h>

/// Predictions with the batch that they are of, for tests of metrics.
namespace treadle::testing {

/// Some rows that have been predicted.
struct EvaluatedRows {
  Prediction prediction;
  Batch batch;

  EvaluatedRows part(std::int64_t begin, std::int64_t end) const {
    return with([&](const at::Tensor& tensor) { return tensor.slice(0, begin, end); });
  }
  /// The last row first.
  EvaluatedRows reversed() const {
    return with([](const at::Tensor& tensor) { return tensor.flip(0); });
  }
  /// Every tensor changed.
  template <typename Change>
  EvaluatedRows with(Change&& change) const {
    const auto changed = [&](const at::Tensor& t) { return t.defined() ? change(t) : t; };
    const auto each = [&](const std::vector<at::Tensor>& tensors) {
      std::vector<at::Tensor> all;
      for (const at::Tensor& tensor : tensors)
        all.push_back(changed(tensor));
      return all;
    };
    EvaluatedRows rows = with_values(changed);
    rows.batch.targets = each(batch.targets);
    rows.batch.original_targets = each(batch.original_targets);
    rows.batch.position_weights = each(batch.position_weights);
    rows.batch.weights = changed(batch.weights);
    rows.batch.rows = changed(batch.rows);
    return rows;
  }
  /// Every tensor of the prediction changed.
  template <typename Change>
  EvaluatedRows with_values(Change&& change) const {
    EvaluatedRows rows = *this;
    for_each_tensor(rows.prediction,
                    [&](at::Tensor& tensor, std::int64_t /*rows*/) { tensor = change(tensor); });
    return rows;
  }
};

/// Rows with these values, and targets as the data gives them.
EvaluatedRows evaluated_rows(TargetKind kind, const at::Tensor& values, const at::Tensor& targets);

/// Adds `rows` to what `metric`, started for `target`, has seen.
void update(MetricComputer& metric, const EvaluatedRows& rows, const TargetSpec& target);

/// `tolerance` is relative, and absolute below 1.
void expect_equal(const MetricResult& got, const MetricResult& expected, double tolerance);

/// Training rows of one series for a metric of `target` (FitsTrainingRows), a row for each step.
MatrixRows training_rows(const TargetSpec& target);

/// Lets `metric`, started for `target`, take what it needs of training rows; nothing where it needs
/// none.
void fit_to_training_rows(MetricComputer& metric, const TargetSpec& target);

}  // namespace treadle::testing
