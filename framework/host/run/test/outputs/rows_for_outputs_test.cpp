#include "outputs/rows_for_outputs.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

ResolvedWorkflow with_outputs(double fraction) {
  ResolvedWorkflow workflow;
  workflow.resolved = {
      {"outputs", {{"calibration", {{"use", "temperature"}}}, {"fraction", fraction}}}};
  return workflow;
}

ValidationPlan one_split(std::int64_t rows) {
  std::vector<std::int64_t> training;
  for (std::int64_t row = 0; row < rows; ++row)
    training.push_back(row);
  Fold fold;
  fold.name = "all";
  fold.training = RowList(std::move(training));
  ValidationPlan plan;
  plan.folds = {std::move(fold)};
  return plan;
}

/// 40 rows, of which every fourth is of the second class.
SplitRequest request_of_classes() {
  SplitRequest request;
  request.rows = 40;
  request.targets = {class_target("kind", {"usual", "rare"})};
  request.target_values = {at::arange(40, at::kLong).remainder(4).eq(0).to(at::kLong)};
  return request;
}

std::vector<std::int64_t> numbers(const RowList& rows) {
  return {rows.begin(), rows.end()};
}

TEST(RowsForOutputs, AreOfEachClassItsShareAndInNoOtherList) {
  ValidationPlan plan = one_split(40);
  set_rows_aside_for_outputs(with_outputs(0.4), request_of_classes(), plan);

  const std::vector<std::int64_t> aside = numbers(plan.folds[0].outputs);
  EXPECT_EQ(aside.size(), 16U);
  EXPECT_EQ(std::count_if(aside.begin(), aside.end(), [](auto row) { return row % 4 == 0; }), 4);
  std::set<std::int64_t> all(aside.begin(), aside.end());
  for (const std::int64_t row : plan.folds[0].training)
    EXPECT_TRUE(all.insert(row).second) << row;
  EXPECT_EQ(all.size(), 40U);
}

TEST(RowsForOutputs, AreWholeGroups) {
  SplitRequest request = request_of_classes();
  request.groups = at::arange(40, at::kLong).div(5, "floor");
  ValidationPlan plan = one_split(40);
  set_rows_aside_for_outputs(with_outputs(0.25), request, plan);

  std::set<std::int64_t> groups;
  for (const std::int64_t row : plan.folds[0].outputs)
    groups.insert(row / 5);
  EXPECT_EQ(groups.size() * 5, plan.folds[0].outputs.size());
}

TEST(RowsForOutputs, AreTheLatest) {
  SplitRequest request = request_of_classes();
  request.timestamps = -at::arange(40, at::kDouble);
  ValidationPlan plan = one_split(40);
  set_rows_aside_for_outputs(with_outputs(0.1), request, plan);

  std::vector<std::int64_t> aside = numbers(plan.folds[0].outputs);
  std::sort(aside.begin(), aside.end());
  EXPECT_EQ(aside, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(RowsForOutputs, AreNoneWhereFoldsServe) {
  ValidationPlan plan = one_split(40);
  plan.folds.push_back(plan.folds.front());
  set_rows_aside_for_outputs(with_outputs(0.4), request_of_classes(), plan);
  EXPECT_TRUE(plan.folds[0].outputs.empty());

  plan = one_split(40);
  set_rows_aside_for_outputs({}, request_of_classes(), plan);
  EXPECT_TRUE(plan.folds[0].outputs.empty());
}

TEST(RowsForOutputs, NeedOthersToTrainOn) {
  ValidationPlan plan = one_split(1);
  SplitRequest request = request_of_classes();
  EXPECT_THROW(set_rows_aside_for_outputs(with_outputs(0.4), request, plan), DataError);
}

}  // namespace
}  // namespace treadle::internal
