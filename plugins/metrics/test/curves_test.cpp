#include "curves.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/logit.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/trapz.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/support/evaluated_rows.h>
#include <treadle/testing/support/targets.h>

#include "ranking_metrics.h"

namespace treadle::metrics {
namespace {

using testing::evaluated_rows;
using testing::EvaluatedRows;

at::Tensor doubles(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble);
}

/// `rows` positions whose scores are of some use.
EvaluatedRows scored(std::int64_t rows) {
  const TaskRandom random(11);
  const at::Tensor classes = at::randint(0, 2, {rows}, at::kLong);
  const at::Tensor yes = at::rand({rows}, at::kDouble).mul(0.8).add(classes, 0.2).unsqueeze(1);
  return evaluated_rows(TargetKind::kClasses, at::cat({yes.neg().add(1), yes}, 1), classes);
}

MetricResult computed(MetricComputer& metric, const EvaluatedRows& rows, std::int64_t classes) {
  const TargetSpec target = testing::class_target(classes);
  metric.start(target);
  metric.reset();
  testing::update(metric, rows, target);
  return metric.compute();
}

MetricTable curves_of(const EvaluatedRows& rows, std::int64_t classes = 2) {
  Curves curves{Config()};
  return computed(curves, rows, classes).tables.at(0);
}

double auc_of(const EvaluatedRows& rows) {
  Auc auc{Config()};
  return computed(auc, rows, 2).values.at(0).value;
}

double area_under(const MetricTable& table) {
  return at::trapz(table.values.select(1, 2), table.values.select(1, 1)).item<double>();
}

TEST(Corners, LeaveOutPointsOnALine) {
  const auto kept = corners_of(doubles({0, 1, 2, 3, 4}), doubles({0, 0, 0, 5, 10}), 200);
  EXPECT_EQ(kept, (std::vector<std::int64_t>{0, 2, 4}));
}

TEST(Corners, KeepTheFurthestFirst) {
  const at::Tensor x = doubles({0, 1, 2, 3, 4});
  const at::Tensor y = doubles({0, 1, 5, 0.5, 0});
  EXPECT_EQ(corners_of(x, y, 3), (std::vector<std::int64_t>{0, 2, 4}));
  EXPECT_EQ(corners_of(x, y, 2), (std::vector<std::int64_t>{0, 4}));
}

TEST(Corners, OfOnePointAreThatPoint) {
  EXPECT_EQ(corners_of(doubles({1}), doubles({1}), 5), (std::vector<std::int64_t>{0}));
}

TEST(Curves, HaveTheAreaOfAllPointsWhereTheyKeepTheCorners) {
  const EvaluatedRows rows = scored(150);
  const MetricTable table = curves_of(rows);

  EXPECT_LT(table.values.size(0), static_cast<std::int64_t>(Curves::kMostPoints));
  EXPECT_NEAR(area_under(table), auc_of(rows), 1e-12);
}

TEST(Curves, HaveFewPointsAndNearlyTheSameAreaOfManyRows) {
  const EvaluatedRows rows = scored(20'000);
  const MetricTable table = curves_of(rows);

  EXPECT_EQ(table.values.size(0), static_cast<std::int64_t>(Curves::kMostPoints));
  EXPECT_NEAR(area_under(table), auc_of(rows), 1e-4);
  EXPECT_EQ(table.values[0][0].item<double>(), INFINITY);
  for (const std::int64_t column : {1, 2, 4}) {
    EXPECT_EQ(table.values[0][column].item<double>(), 0);
    EXPECT_EQ(table.values[-1][column].item<double>(), 1);
  }
  EXPECT_NEAR(table.values[-1][5].item<double>(), 1, 1e-12);  // the lift of taking all
}

TEST(Curves, GiveThresholdsOfLogitsAsProbabilities) {
  EvaluatedRows rows = scored(100);
  const at::Tensor yes = rows.prediction.values.select(1, 1);
  rows.prediction.logits = yes.logit().unsqueeze(1);
  const at::Tensor of_logits = curves_of(rows).values;
  rows.prediction.logits = at::Tensor();
  const at::Tensor of_probabilities = curves_of(rows).values;

  EXPECT_TRUE(of_logits.allclose(of_probabilities, 1e-12, 1e-12));
}

TEST(Curves, AreOfEachClassThatSomeRowsHave) {
  const TaskRandom random(3);
  const at::Tensor classes = at::tensor({0, 1, 0, 1, 1}, at::kLong);
  const MetricTable table = curves_of(
      evaluated_rows(TargetKind::kClasses, at::rand({5, 3}, at::kDouble).softmax(1), classes), 3);

  const std::vector<std::string> names = testing::class_target(3).class_names;
  EXPECT_EQ(table.row_labels.front(), names[0]);
  EXPECT_EQ(table.row_labels.back(), names[1]);
}

TEST(Curves, AreNoneOfOneClassOnly) {
  EvaluatedRows rows = scored(5);
  rows.batch.original_targets = {at::tensor({1, 1, 1, 1, 1}, at::kLong)};
  EXPECT_EQ(curves_of(rows).values.size(0), 0);
}

TEST(Curves, RefuseMoreClassesThanPicturesHave) {
  Curves curves{Config()};
  try {
    curves.start(testing::class_target(101));
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "metric \"curves\" takes at most 100 classes, but the target \"species\" has 101");
  }
}

}  // namespace
}  // namespace treadle::metrics
