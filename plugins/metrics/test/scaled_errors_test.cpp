#include <cmath>
#include <numeric>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/fits_training_rows.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/evaluated_rows.h>

namespace treadle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<MetricComputer> scaled_metric(const std::string& name, std::int64_t period = 1) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  std::unique_ptr<MetricComputer> metric = plugin.make<MetricComputer>(name, {{"period", period}});
  metric->start(MetricCase::numbers(1));
  return metric;
}

at::Tensor as_column(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).unsqueeze(1);
}

/// Two series: 1, 3, 2, 6 and 10, 10, 10, 40.
MatrixRows two_series(std::vector<at::Tensor> position_weights = {}) {
  MatrixRows::Matrices rows;
  rows.spec.inputs = {{"features", {1}, {{"x"}}, Role::kFeatures, at::kDouble}};
  rows.spec.targets = {number_target("y")};
  rows.inputs = {as_column({0, 0, 0, 0, 0, 0, 0, 0})};
  rows.targets = {as_column({1, 3, 2, 6, 10, 10, 10, 40})};
  rows.position_weights = std::move(position_weights);
  rows.groups = at::tensor({7, 7, 7, 7, 9, 9, 9, 9}, at::kLong);
  return MatrixRows(std::move(rows));
}

std::vector<std::int64_t> numbers_to(std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

void fit(MetricComputer& metric, const RowReader& data, const std::vector<std::int64_t>& rows) {
  auto* const fits = metric.ask<FitsTrainingRows>();
  fits->use(fits->fit(data, rows, 0), data.groups());
}

void add(MetricComputer& metric, const at::Tensor& predicted, const at::Tensor& targets,
         const at::Tensor& rows, const at::Tensor& weights = {}) {
  EvaluatedRows evaluated = evaluated_rows(TargetKind::kNumbers, predicted, targets);
  evaluated.batch.rows = rows;
  evaluated.batch.weights = weights;
  update(metric, evaluated, MetricCase::numbers(1));
}

double value_of(const MetricComputer& metric) {
  return metric.compute().values.at(0).value;
}

// By hand, of the first three rows of each: series 7 changes by 2 and 1, a mean of 1.5; series 9 by
// 0 and 0, so it has no scale and is left out. Errors 3 and 6 of series 7: 4.5 / 1.5 = 3.
TEST(Mase, IsMeasuredByTheTrainingRowsOfTheSameSeries) {
  const MatrixRows data = two_series();
  const auto metric = scaled_metric("mase");
  fit(*metric, data, {0, 1, 2, 4, 5, 6});

  add(*metric, as_column({9, 12, 100}), as_column({6, 6, 40}), at::tensor({3, 3, 7}, at::kLong));

  EXPECT_NEAR(value_of(*metric), 3, 1e-12);
}

// Of all rows: series 7 changes by 2, 1, 4, a mean of 7/3; series 9 by 0, 0, 30, a mean of 10.
// MASE: (7 / (7/3) + 20 / 10) / 2 = 2.5. RMSSE: squares 4, 1, 16 and 900, means 7 and 300:
// (sqrt(49 / 7) + sqrt(400 / 300)) / 2.
TEST(ScaledErrors, AreMeansOverSeries) {
  const MatrixRows data = two_series();
  const auto mase = scaled_metric("mase");
  const auto rmsse = scaled_metric("rmsse");
  for (MetricComputer* metric : {mase.get(), rmsse.get()}) {
    fit(*metric, data, numbers_to(8));
    add(*metric, as_column({7, 7, 20}), as_column({0, 0, 40}), at::tensor({0, 1, 7}, at::kLong));
  }

  EXPECT_NEAR(value_of(*mase), 2.5, 1e-12);
  EXPECT_NEAR(value_of(*rmsse), (std::sqrt(7.0) + std::sqrt(4.0 / 3)) / 2, 1e-12);
}

// Two rows apart: series 7 changes by 1 and 3, a mean of 2; errors 4 and 1 with weights 1 and 3:
// (4 + 3) / 4 / 2.
TEST(Mase, TakesAPeriodAndWeights) {
  const MatrixRows data = two_series();
  const auto metric = scaled_metric("mase", 2);
  fit(*metric, data, {0, 1, 2, 3});

  add(*metric, as_column({4, 1}), as_column({0, 0}), at::tensor({0, 1}, at::kLong),
      at::tensor({1.0, 3.0}, at::kDouble));

  EXPECT_NEAR(value_of(*metric), 7.0 / 8, 1e-12);
}

// The third target of series 7 is missing, so only the change from 1 to 3 counts: a scale of 2.
TEST(Mase, LeavesMissingTargetsOutOfTheScale) {
  const MatrixRows data =
      two_series({at::tensor({1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0}, at::kDouble)});
  const auto metric = scaled_metric("mase");
  fit(*metric, data, {0, 1, 2, 3});

  add(*metric, as_column({5}), as_column({0}), at::tensor({0}, at::kLong));

  EXPECT_NEAR(value_of(*metric), 2.5, 1e-12);
}

TEST(Mase, NamesTheRowOfASeriesWithoutTrainingRows) {
  const MatrixRows data = two_series();
  const auto metric = scaled_metric("mase");
  fit(*metric, data, {0, 1, 2, 3});

  try {
    add(*metric, as_column({5}), as_column({0}), at::tensor({6}, at::kLong));
    ADD_FAILURE() << "series 9 has no training rows";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"mase\""), HasSubstr("the series of row 6")));
  }
}

TEST(Mase, RefusesAPeriodThatNoSeriesHas) {
  const MatrixRows data = two_series();
  const auto metric = scaled_metric("mase", 4);

  try {
    fit(*metric, data, numbers_to(8));
    ADD_FAILURE() << "a series has four rows";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("4 rows before"), HasSubstr("8 training rows"),
                                    HasSubstr("\"period\"")));
  }
}

}  // namespace
}  // namespace treadle::testing
