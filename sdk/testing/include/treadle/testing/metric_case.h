#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/core/fits_training_rows.h>
#include <treadle/core/matrix_rows.h>
#include <treadle/core/metric_computer.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/targets.h>

/// The language in which MetricContract speaks: cases, rows that have been predicted, results.
namespace treadle::testing {

struct MetricCase {
  std::string name;
  std::function<std::unique_ptr<MetricComputer>()> make;
  TargetSpec target;  ///< one the metric has a meaning for
  /// Relative; sums in another order differ by rounding.
  double tolerance = 1e-12;
  /// float32 predictions give the same up to this.
  double single_precision_tolerance = 1e-5;
  /// The order of rows matters, as with a metric of a series.
  bool depends_on_order = false;

  /// Further numbers of a prediction that the metric evaluates: "q0.1".
  std::vector<std::string> extras = {};

  // For one value a row, or one for each of the positions: {kVaries}, {2, 3}.
  using Positions = std::vector<std::int64_t>;
  static TargetSpec numbers(std::int64_t width, Positions positions = {}) {
    return number_target(width, std::move(positions));
  }
  static TargetSpec classes(std::int64_t count, Positions positions = {}) {
    return class_target(count, std::move(positions));
  }
  static TargetSpec labels(std::int64_t count, Positions positions = {}) {
    return label_target(count, std::move(positions));
  }
  static TargetSpec distribution(std::int64_t count, Positions positions = {}) {
    return distribution_target(count, std::move(positions));
  }
};

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
    rows.prediction.values = change(prediction.values);
    for (Prediction::Extra& extra : rows.prediction.extras)
      extra.values = change(extra.values);
    return rows;
  }
};

/// Rows with these values, and targets as the data gives them.
inline EvaluatedRows evaluated_rows(TargetKind kind, const at::Tensor& values,
                                    const at::Tensor& targets) {
  EvaluatedRows rows;
  rows.prediction = {kind, values};
  rows.batch.targets = rows.batch.original_targets = {targets};
  rows.batch.rows = at::arange(targets.size(0));
  return rows;
}

/// Adds `rows` to what `metric`, started for `target`, has seen.
inline void update(MetricComputer& metric, const EvaluatedRows& rows, const TargetSpec& target) {
  metric.update(rows.prediction, TargetBatch::original(rows.batch, 0, target));
}

/// `tolerance` is relative, and absolute below 1.
inline void expect_equal(const MetricResult& got, const MetricResult& expected, double tolerance) {
  ASSERT_EQ(got.values.size(), expected.values.size());
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double value = expected.values[i].value;
    EXPECT_EQ(got.values[i].name, expected.values[i].name);
    EXPECT_EQ(got.values[i].direction, expected.values[i].direction);
    EXPECT_EQ(std::isnan(got.values[i].value), std::isnan(value)) << got.values[i].name;
    if (!std::isnan(value)) {
      EXPECT_NEAR(got.values[i].value, value, tolerance * std::max(1.0, std::abs(value)))
          << got.values[i].name;
    }
  }
  ASSERT_EQ(got.tables.size(), expected.tables.size());
  for (std::size_t i = 0; i < got.tables.size(); ++i) {
    EXPECT_EQ(got.tables[i].name, expected.tables[i].name);
    EXPECT_EQ(got.tables[i].row_labels, expected.tables[i].row_labels);
    EXPECT_EQ(got.tables[i].column_labels, expected.tables[i].column_labels);
    ASSERT_EQ(got.tables[i].values.sizes(), expected.tables[i].values.sizes());
    EXPECT_TRUE(got.tables[i].values.allclose(expected.tables[i].values, tolerance, tolerance))
        << got.tables[i].name;
  }
}

/// Training rows of one series for a metric of `target` (FitsTrainingRows), a row for each step.
inline MatrixRows training_rows(const TargetSpec& target) {
  constexpr std::int64_t kTrainingRows = 50;
  const TaskRandom random(29);
  MatrixRows::Matrices rows;
  rows.dtype = at::kDouble;
  rows.spec.inputs = {{"features", {1}, {{"x"}}, Role::kFeatures, at::kDouble}};
  rows.inputs = {at::randn({kTrainingRows, 1}, at::kDouble)};
  rows.spec.targets = {target};
  std::vector<std::int64_t>& shape = rows.spec.targets[0].shape;
  shape.erase(shape.begin(),
              shape.begin() + static_cast<std::ptrdiff_t>(target.position_dimensions()));
  rows.targets = {random_targets(rows.spec.targets[0], kTrainingRows)};
  return MatrixRows(std::move(rows));
}

/// Lets `metric`, started for `target`, take what it needs of training rows; nothing where it needs
/// none.
inline void fit_to_training_rows(MetricComputer& metric, const TargetSpec& target) {
  auto* const fits = metric.ask<FitsTrainingRows>();
  if (fits == nullptr)
    return;
  const MatrixRows data = training_rows(target);
  fits->use(fits->fit(data, RowList::range(0, data.rows()), 0), {});
}

class MetricContract : public ::testing::TestWithParam<MetricCase> {
 protected:
  static constexpr std::int64_t kRows = 40;

  std::unique_ptr<MetricComputer> started() const {
    auto metric = GetParam().make();
    metric->start(target());
    fit_to_training_rows(*metric, target());
    return metric;
  }

  /// Whole eighths, so that sums of weights are exact.
  static at::Tensor random_weights() { return at::randint(1, 16, {kRows}, at::kDouble).div(8); }

  /// Predictions as a model might make them of `targets`.
  static at::Tensor random_values(const TargetSpec& target, const at::Tensor& targets) {
    std::vector<std::int64_t> sizes = sizes_of(targets.size(0), target.positions());
    sizes.push_back(target.kind == TargetKind::kClasses ? target.class_count() : target.width());
    const at::Tensor noise = at::randn(sizes, at::kDouble);
    if (target.kind == TargetKind::kNumbers)
      return targets.add(noise, 0.5);
    return target.kind == TargetKind::kLabels ? noise.sigmoid() : noise.softmax(-1);
  }

  EvaluatedRows random_rows(bool weighted = false) const {
    const TaskRandom random(23);
    const at::Tensor targets = random_targets(target(), kRows);
    EvaluatedRows rows = evaluated_rows(target().kind, random_values(target(), targets), targets);
    for (const std::string& name : GetParam().extras)
      rows.prediction.extras.push_back({name, random_values(target(), targets)});
    if (weighted)
      rows.batch.weights = random_weights();
    return rows;
  }
  /// With padding in them.
  EvaluatedRows padded_rows(bool weighted) const {
    EvaluatedRows rows = random_rows(weighted);
    rows.batch.position_weights = {padding_weights(target(), rows.batch.targets[0])};
    return rows;
  }

  static void update(MetricComputer& metric, const EvaluatedRows& rows) {
    testing::update(metric, rows, target());
  }

  static const TargetSpec& target() { return GetParam().target; }
  double tolerance() const { return GetParam().tolerance; }
};

}  // namespace treadle::testing
