#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/testing/support/evaluated_rows.h>
#include <treadle/testing/support/targets.h>

#include "this_plugin.h"

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;

EvaluatedRows of_second(const std::vector<double>& second,
                        const std::vector<std::int64_t>& actual) {
  const at::Tensor yes = at::tensor(second, at::kDouble).unsqueeze(1);
  return evaluated_rows(TargetKind::kClasses, at::cat({1 - yes, yes}, 1),
                        at::tensor(actual, at::kLong));
}

MetricResult result_of(std::string_view name, const EvaluatedRows& rows, const TargetSpec& target,
                       nlohmann::json parameters = {}) {
  const auto metric = plugin().make<MetricComputer>(name, std::move(parameters));
  metric->start(target);
  metric->reset();
  update(*metric, rows, target);
  return metric->compute();
}

at::Tensor rows_like(const std::vector<double>& numbers, std::int64_t columns) {
  return at::tensor(numbers, at::kDouble).view({-1, columns});
}

TEST(Thresholds, CountDecisionsAndTheirCost) {
  // By hand; 0.5 is at the threshold.
  const EvaluatedRows rows = of_second({0.2, 0.5, 0.7, 0.4}, {0, 0, 1, 1});

  const MetricTable table = result_of("thresholds", rows, class_target(2),
                                      {{"costs", {{"false_positive", 1}, {"false_negative", 10}}}})
                                .tables.at(0);

  EXPECT_THAT(table.column_labels,
              ElementsAre("threshold", "true_positives", "false_positives", "true_negatives",
                          "false_negatives", "precision", "recall", "f1", "mcc", "cost"));
  ASSERT_EQ(table.row_labels.size(), 21U);
  EXPECT_EQ(table.row_labels[0], "0.05");
  EXPECT_EQ(table.row_labels[9], "0.5");
  EXPECT_TRUE(at::equal(table.values[9], rows_like({0.5, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0, 11}, 10)[0]))
      << table.values[9];
  EXPECT_EQ(table.row_labels[19], "best_f1");
  EXPECT_EQ(table.values[19][0].item<double>(), 0.4);  // two of three right, none missed
  EXPECT_EQ(table.row_labels[20], "best_mcc");
  EXPECT_EQ(table.values[20][0].item<double>(), 0.7);  // as good as 0.4, and higher
}

TEST(Thresholds, LeaveOutTheBestOfOneClassOnly) {
  const auto labels = [](const EvaluatedRows& rows) {
    return result_of("thresholds", rows, class_target(2)).tables.at(0).row_labels;
  };
  EXPECT_EQ(labels(of_second({0.2, 0.6}, {0, 0})).back(), "0.95");
  EXPECT_EQ(labels(of_second({0.2, 0.6}, {1, 1})).back(), "best_f1");
}

TEST(ScoreHistogram, BeginsBinsAtTheirLowerEdge) {
  const MetricTable table =
      result_of("score_histogram", of_second({0, 0.05, 0.049, 1}, {0, 0, 1, 1}), class_target(2))
          .tables.at(0);

  EXPECT_THAT(table.column_labels, ElementsAre("from", "to", "class-0", "class-1"));
  ASSERT_EQ(table.values.size(0), 20);
  EXPECT_TRUE(at::equal(table.values[0], rows_like({0, 0.05, 1, 1}, 4)[0])) << table.values[0];
  EXPECT_TRUE(at::equal(table.values[1], rows_like({0.05, 0.1, 1, 0}, 4)[0])) << table.values[1];
  EXPECT_TRUE(at::equal(table.values[19], rows_like({0.95, 1, 0, 1}, 4)[0])) << table.values[19];
}

TEST(Reliability, OfQuantilesHasBinsOfEqualWeight) {
  EvaluatedRows rows = of_second({0.6, 0.7, 0.8, 0.9, 0.95}, {1, 0, 1, 1, 1});
  rows.batch.weights = at::tensor({1, 1, 1, 1, 2}, at::kDouble);

  const at::Tensor table =
      result_of("reliability", rows, class_target(2), {{"strategy", "quantile"}, {"bins", 3}})
          .tables.at(0)
          .values;

  EXPECT_TRUE(table.allclose(rows_like({0.65, 0.5, 2, 0.85, 1, 2, 0.95, 1, 2}, 3), 1e-12, 1e-12))
      << table;
}

TEST(Reliability, IsThatOfTheDecision) {
  EvaluatedRows rows = of_second({0.625, 0.75}, {0, 1});
  rows.prediction.decision = at::tensor({0, 1}, at::kLong);

  const at::Tensor table =
      result_of("reliability", rows, class_target(2), {{"bins", 2}}).tables.at(0).values;

  EXPECT_TRUE(at::equal(table, rows_like({0.375, 1, 1, 0.75, 1, 1}, 3))) << table;
}

TEST(Metrics, OfTwoClassesRefuseMore) {
  for (const std::string name : {"thresholds", "score_histogram"}) {
    try {
      plugin().make<MetricComputer>(name)->start(class_target(3));
      ADD_FAILURE() << name << ": nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), "metric \"" + name +
                                  "\" needs two classes, but the target \"species\" has 3; use "
                                  "curves or confusion_matrix");
    }
  }
}

TEST(Deviation, BucketsIncludeTheirUpperBound) {
  // 10 %, 50 %, 100 %, 200 %, of a target of 0 the difference in percent, and two that are none.
  const at::Tensor actual = rows_like({10, 10, 10, 10, 0, 10, 10}, 1);
  const at::Tensor predicted = rows_like({11, 5, 20, 30, 0.25, NAN, INFINITY}, 1);

  const MetricResult result = result_of(
      "deviation", evaluated_rows(TargetKind::kNumbers, predicted, actual), number_target(1));

  const MetricTable& table = result.tables.at(0);
  EXPECT_EQ(table.name, "deviation_buckets");
  EXPECT_THAT(table.row_labels,
              ElementsAre("0-10%", "10-20%", "20-30%", "30-40%", "40-50%", "50-100%", "100%+"));
  EXPECT_TRUE(at::equal(table.values, rows_like({1, 0, 1, 0, 1, 3, 1}, 1))) << table.values;
  ASSERT_EQ(result.values.size(), 3U);
  EXPECT_EQ(result.values[0].name, "deviation");
  EXPECT_NEAR(result.values[0].value, (10 + 50 + 100 + 200 + 25 + 100 + 100) / 7.0, 1e-12);
  EXPECT_EQ(result.values[1].name, "deviation_quality");
  EXPECT_NEAR(result.values[1].value, (90 + 50 + 75) / 7.0, 1e-12);
  EXPECT_EQ(result.values[2].name, "deviation_failures");
  EXPECT_EQ(result.values[2].value, 1);
}

TEST(QuantileCoverage, CountsTargetsAtAQuantileAsBelowIt) {
  EvaluatedRows rows = evaluated_rows(TargetKind::kNumbers, rows_like({5, 5, 5, 5, 5}, 1),
                                      rows_like({1, 2, 5, 9, 10}, 1));
  rows.prediction.extras = {{"q0.1", rows_like({2, 2, 2, 2, 2}, 1), 0.1},
                            {"q0.9", rows_like({9, 9, 9, 9, 9}, 1), 0.9}};

  const auto values = result_of("quantile_coverage", rows, number_target(1)).values;

  const std::vector<std::pair<std::string, double>> expected{{"quantile_coverage", 0.6},
                                                             {"quantile_coverage.q0.1", 0.4},
                                                             {"quantile_coverage.q0.5", 0.6},
                                                             {"quantile_coverage.q0.9", 0.8}};
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].name, expected[i].first);
    EXPECT_EQ(values[i].value, expected[i].second) << values[i].name;
  }
}

TEST(Metrics, RefuseTheStateOfOtherBins) {
  const auto of_bins = [](int bins) {
    auto metric = plugin().make<MetricComputer>("ece", {{"bins", bins}});
    metric->start(class_target(2));
    return metric;
  };
  EXPECT_THROW(of_bins(4)->load_state(of_bins(5)->state()), StorageError);
}

}  // namespace
}  // namespace treadle::testing
