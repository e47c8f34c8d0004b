#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/core/metric_computer.h>
#include <treadle/core/task_random.h>
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
  /// The order of rows is part of what it judges, as with a metric of a series.
  bool depends_on_order = false;

  static TargetSpec numbers(std::int64_t width) { return number_target(width); }
  static TargetSpec classes(std::int64_t count) { return class_target(count); }
};

/// Some rows that have been predicted.
struct JudgedRows {
  Predictions predictions;
  Batch batch;

  JudgedRows part(std::int64_t begin, std::int64_t end) const {
    return with([&](const at::Tensor& tensor) { return tensor.slice(0, begin, end); });
  }
  /// The last row first.
  JudgedRows reversed() const {
    return with([](const at::Tensor& tensor) { return tensor.flip(0); });
  }

 private:
  template <typename Change>
  JudgedRows with(Change&& change) const {
    const auto changed = [&](const at::Tensor& t) { return t.defined() ? change(t) : t; };
    return {{predictions.kind, changed(predictions.values)},
            {{},
             changed(batch.targets),
             changed(batch.original_targets),
             changed(batch.weights),
             changed(batch.rows)}};
  }
};

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

class MetricContract : public ::testing::TestWithParam<MetricCase> {
 protected:
  static constexpr std::int64_t kRows = 40;

  std::unique_ptr<MetricComputer> started() const {
    auto metric = GetParam().make();
    metric->start(GetParam().target);
    return metric;
  }

  /// Whole eighths, so that sums of weights are exact.
  static at::Tensor random_weights() { return at::randint(1, 16, {kRows}, at::kDouble).div(8); }

  static JudgedRows random_rows(const TargetSpec& target, bool weighted = false) {
    const TaskRandom random(23);
    JudgedRows rows;
    rows.predictions.kind = target.kind;
    Batch& batch = rows.batch;
    if (target.kind == TargetKind::kClasses) {
      rows.predictions.values = at::randn({kRows, target.class_count()}, at::kDouble).softmax(1);
      batch.targets = random_targets(target, kRows);
    } else {
      batch.targets = random_targets(target, kRows);
      rows.predictions.values =
          batch.targets.add(at::randn({kRows, target.width}, at::kDouble), 0.5);
    }
    batch.original_targets = batch.targets;
    batch.rows = at::arange(kRows);
    if (weighted)
      batch.weights = random_weights();
    return rows;
  }
  JudgedRows random_rows(bool weighted = false) const {
    return random_rows(GetParam().target, weighted);
  }

  static void update(MetricComputer& metric, const JudgedRows& rows) {
    metric.update(rows.predictions, rows.batch);
  }

  double tolerance() const { return GetParam().tolerance; }
};

}  // namespace treadle::testing
