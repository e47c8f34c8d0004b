#include <treadle/testing/support/evaluated_rows.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/core/data/abilities/fits_training_rows.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/support/targets.h>

namespace treadle::testing {

EvaluatedRows evaluated_rows(TargetKind kind, const at::Tensor& values, const at::Tensor& targets) {
  EvaluatedRows rows;
  rows.prediction = {kind, values};
  rows.batch.targets = rows.batch.original_targets = {targets};
  rows.batch.rows = at::arange(targets.size(0));
  return rows;
}

void update(MetricComputer& metric, const EvaluatedRows& rows, const TargetSpec& target) {
  metric.update(rows.prediction, TargetBatch::original(rows.batch, 0, target));
}

void expect_equal(const MetricResult& got, const MetricResult& expected, double tolerance) {
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
    EXPECT_TRUE(got.tables[i].values.allclose(expected.tables[i].values, tolerance, tolerance,
                                              /*equal_nan=*/true))
        << got.tables[i].name;
  }
}

MatrixRows training_rows(const TargetSpec& target) {
  constexpr std::int64_t kTrainingRows = 50;
  const TaskRandom random(29);
  MatrixRows::Matrices rows;
  rows.spec.inputs = {{"features", {1}, {{"x"}}, Role::kFeatures, at::kDouble}};
  rows.inputs = {at::randn({kTrainingRows, 1}, at::kDouble)};
  rows.spec.targets = {target};
  std::vector<std::int64_t>& shape = rows.spec.targets[0].shape;
  shape.erase(shape.begin(),
              shape.begin() + static_cast<std::ptrdiff_t>(target.position_dimensions()));
  rows.targets = {random_targets(rows.spec.targets[0], kTrainingRows)};
  return MatrixRows(std::move(rows));
}

void fit_to_training_rows(MetricComputer& metric, const TargetSpec& target) {
  auto* const fits = metric.ask<FitsTrainingRows>();
  if (fits == nullptr)
    return;
  const MatrixRows data = training_rows(target);
  fits->use(fits->fit(data, RowList::range(0, data.rows()), 0), {});
}

}  // namespace treadle::testing
