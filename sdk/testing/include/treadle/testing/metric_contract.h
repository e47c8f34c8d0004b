#pragma once

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/case_name.h>
#include <treadle/testing/metric_case.h>

/// What every MetricComputer must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Metrics, MetricContract, ::testing::Values(
///         MetricCase{"Accuracy", [] { return plugin().make<MetricComputer>("accuracy"); },
///                    MetricCase::classes(3)}), CaseName());
namespace treadle::testing {

TEST_P(MetricContract, GivesAValueOrATable) {
  const auto metric = started();

  update(*metric, random_rows());

  const MetricResult result = metric->compute();
  EXPECT_FALSE(result.values.empty() && result.tables.empty());
  for (const MetricValue& value : result.values)
    EXPECT_TRUE(std::isfinite(value.value)) << value.name;
  for (const MetricTable& table : result.tables) {
    EXPECT_EQ(table.values.scalar_type(), at::kDouble);
    EXPECT_EQ(table.values.dim(), 2);
    if (!table.row_labels.empty()) {
      EXPECT_EQ(static_cast<std::int64_t>(table.row_labels.size()), table.values.size(0));
    }
    if (!table.column_labels.empty()) {
      EXPECT_EQ(static_cast<std::int64_t>(table.column_labels.size()), table.values.size(1));
    }
  }
}

TEST_P(MetricContract, ReportsNaNBeforeTheFirstBatch) {
  for (const MetricValue& value : started()->compute().values)
    EXPECT_TRUE(std::isnan(value.value)) << value.name << " " << value.value;
}

TEST_P(MetricContract, ItsNamesAreTheSameFromTheFirstBatchToTheLast) {
  const auto metric = started();
  std::vector<std::vector<std::string>> told;
  const auto tell = [&] {
    told.emplace_back();
    for (const MetricValue& value : metric->compute().values)
      told.back().push_back(value.name);
  };

  tell();
  update(*metric, random_rows());
  tell();
  metric->reset();
  tell();

  EXPECT_EQ(told[1], told[0]);
  EXPECT_EQ(told[2], told[0]);
  const std::set<std::string> different(told[0].begin(), told[0].end());
  EXPECT_EQ(different.size(), told[0].size()) << "two values have one name";
  EXPECT_EQ(different.count(""), 0U);
}

TEST_P(MetricContract, ABatchWithoutRowsChangesNothing) {
  const EvaluatedRows rows = random_rows();
  const auto metric = started();
  update(*metric, rows);
  const MetricResult before = metric->compute();

  update(*metric, rows.part(0, 0));
  expect_equal(metric->compute(), before, 0);

  const auto empty = started();
  update(*empty, rows.part(0, 0));
  for (const MetricValue& value : empty->compute().values)
    EXPECT_TRUE(std::isnan(value.value)) << value.name << " " << value.value;
}

TEST_P(MetricContract, RowsOfWeightZeroAreNoRows) {
  EvaluatedRows rows = random_rows();
  rows.batch.weights = at::zeros({kRows}, at::kDouble);
  const auto metric = started();

  update(*metric, rows);

  for (const MetricValue& value : metric->compute().values)
    EXPECT_TRUE(std::isnan(value.value)) << value.name << " " << value.value;
}

TEST_P(MetricContract, DoesNotDependOnTheOrderOfRowsUnlessItSaysSo) {
  if (GetParam().depends_on_order)
    return;
  for (const bool weighted : {false, true}) {
    const EvaluatedRows rows = random_rows(weighted);
    const auto forwards = started();
    const auto backwards = started();

    update(*forwards, rows);
    update(*backwards, rows.reversed());

    expect_equal(backwards->compute(), forwards->compute(), tolerance());
  }
}

TEST_P(MetricContract, TwoObjectsKnowNothingOfEachOther) {
  const EvaluatedRows rows = random_rows();
  const auto alone = started();
  update(*alone, rows.part(0, 15));
  update(*alone, rows.part(15, kRows));

  const auto one = started();
  const auto other = started();
  update(*one, rows.part(0, 15));
  update(*other, rows.part(20, kRows));
  update(*one, rows.part(15, kRows));

  expect_equal(one->compute(), alone->compute(), 0);
}

TEST_P(MetricContract, DoesNotDependOnBatchBoundaries) {
  for (const bool weighted : {false, true}) {
    const EvaluatedRows rows = random_rows(weighted);
    const auto whole = started();
    const auto pieces = started();

    update(*whole, rows);
    for (const auto& [begin, end] : {std::pair(0, 1), std::pair(1, 17), std::pair(17, 40)})
      update(*pieces, rows.part(begin, end));

    expect_equal(pieces->compute(), whole->compute(), tolerance());
  }
}

TEST_P(MetricContract, MergingTwoWorkersEqualsOneSeeingBoth) {
  for (const bool weighted : {false, true}) {
    const EvaluatedRows rows = random_rows(weighted);
    const auto whole = started();
    const auto first = started();
    const auto second = started();

    update(*whole, rows);
    update(*first, rows.part(0, 13));
    update(*second, rows.part(13, kRows));
    first->merge(*second);

    expect_equal(first->compute(), whole->compute(), tolerance());
  }
}

TEST_P(MetricContract, MergingManyWorkersInAnyGroupingIsTheSame) {
  const EvaluatedRows rows = random_rows(true);
  const auto worker = [&](std::int64_t begin, std::int64_t end) {
    auto metric = started();
    update(*metric, rows.part(begin, end));
    return metric;
  };
  const auto left = worker(0, 9);
  left->merge(*worker(9, 22));
  left->merge(*worker(22, kRows));
  const auto right = worker(0, 9);
  const auto rest = worker(9, 22);
  const auto last = worker(22, kRows);
  const MetricResult last_alone = last->compute();
  rest->merge(*last);

  right->merge(*rest);

  expect_equal(right->compute(), left->compute(), tolerance());
  expect_equal(last->compute(), last_alone, 0);
}

TEST_P(MetricContract, MergingWithAWorkerThatSawNothingChangesNothing) {
  const auto metric = started();
  const auto idle = started();
  update(*metric, random_rows());
  const MetricResult before = metric->compute();

  metric->merge(*idle);
  expect_equal(metric->compute(), before, 0);
  idle->merge(*metric);
  expect_equal(idle->compute(), before, 0);
}

TEST_P(MetricContract, ForgetsEverythingOnReset) {
  const EvaluatedRows rows = random_rows();
  const auto used = started();
  const auto fresh = started();

  update(*used, rows.part(0, 25));
  used->reset();
  update(*used, rows.part(25, kRows));
  update(*fresh, rows.part(25, kRows));

  expect_equal(used->compute(), fresh->compute(), 0);
}

TEST_P(MetricContract, StateRoundTripContinuesBitwise) {
  for (const bool weighted : {false, true}) {
    const EvaluatedRows rows = random_rows(weighted);
    const auto original = started();
    update(*original, rows.part(0, 25));
    const auto resumed = started();
    resumed->load_state(original->state().snapshot());
    expect_equal(resumed->compute(), original->compute(), 0);

    update(*original, rows.part(25, kRows));
    update(*resumed, rows.part(25, kRows));

    expect_equal(resumed->compute(), original->compute(), 0);
  }
}

TEST_P(MetricContract, ComputingInBetweenChangesNothing) {
  const EvaluatedRows rows = random_rows();
  const auto asked = started();
  const auto quiet = started();

  update(*asked, rows.part(0, 20));
  asked->compute();
  update(*asked, rows.part(20, kRows));
  update(*quiet, rows.part(0, 20));
  update(*quiet, rows.part(20, kRows));

  expect_equal(asked->compute(), quiet->compute(), 0);
}

TEST_P(MetricContract, WeightsOfOneChangeNothing) {
  EvaluatedRows rows = random_rows();
  const auto plain = started();
  const auto weighted = started();

  update(*plain, rows);
  rows.batch.weights = at::ones({kRows}, at::kDouble);
  update(*weighted, rows);

  expect_equal(weighted->compute(), plain->compute(), tolerance());
}

TEST_P(MetricContract, WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow) {
  EvaluatedRows rows = random_rows();
  const auto twice = started();
  const auto weighted = started();

  update(*twice, rows.part(0, kRows - 2));
  update(*twice, rows.part(0, 1));
  rows.batch.weights = at::ones({kRows}, at::kDouble);
  rows.batch.weights[0] = 2;
  rows.batch.weights.slice(0, kRows - 2).zero_();  // the weights do not add up to the rows
  update(*weighted, rows);

  MetricResult expected = twice->compute();
  MetricResult got = weighted->compute();
  expected.tables.clear();  // a table may show rows as such
  got.tables.clear();
  expect_equal(got, expected, tolerance());
}

TEST_P(MetricContract, PaddingChangesNothing) {
  for (const bool weighted : {false, true}) {
    const EvaluatedRows rows = padded_rows(weighted);
    const at::Tensor& weights = rows.batch.position_weights[0];
    const auto one = started();
    const auto other = started();
    const at::Tensor targets = random_targets(target(), kRows);
    EvaluatedRows changed = rows.with_values([&](const at::Tensor& values) {
      return with_padding(values, random_values(target(), targets), weights);
    });
    changed.batch.original_targets = {
        with_padding(rows.batch.original_targets[0], targets, weights)};

    update(*one, rows);
    update(*other, changed);

    expect_equal(other->compute(), one->compute(), tolerance());
  }
}

TEST_P(MetricContract, NaNInPaddingChangesNothing) {
  for (const bool weighted : {false, true}) {
    const EvaluatedRows rows = padded_rows(weighted);
    const auto one = started();
    const auto other = started();

    update(*one, rows);
    update(*other, rows.with_values([&](const at::Tensor& values) {
      return with_padding(values, at::full_like(values, NAN), rows.batch.position_weights[0]);
    }));

    expect_equal(other->compute(), one->compute(), tolerance());
  }
}

TEST_P(MetricContract, APaddedBatchEqualsItsRowsOneByOne) {
  for (const bool weighted : {false, true}) {
    const EvaluatedRows rows = padded_rows(weighted);
    const at::Tensor& weights = rows.batch.position_weights[0];
    const auto whole = started();
    const auto pieces = started();

    update(*whole, rows);
    for (std::int64_t row = 0; row < kRows; ++row) {
      EvaluatedRows one = rows.with([&](const at::Tensor& tensor) {
        return tensor.dim() == 1 && weights.dim() > 1
                   ? tensor.slice(0, row, row + 1)  // of the row, not of its positions
                   : row_alone(tensor, weights, rows.batch.targets[0], row);
      });
      one.batch.position_weights.clear();
      update(*pieces, one);
    }

    expect_equal(pieces->compute(), whole->compute(), tolerance());
  }
}

TEST_P(MetricContract, DoesNotKeepTheCallersTensors) {
  const EvaluatedRows rows = random_rows(true);
  const auto metric = started();
  update(*metric, rows);
  const MetricResult before = metric->compute();

  rows.prediction.values.zero_();
  for (const Prediction::Extra& extra : rows.prediction.extras)
    extra.values.zero_();
  rows.batch.original_targets[0].zero_();
  rows.batch.weights.zero_();
  rows.batch.rows.zero_();

  expect_equal(metric->compute(), before, 0);
}

TEST_P(MetricContract, UsesTheTargetsAsTheDataGaveThem) {
  EvaluatedRows rows = random_rows();
  const auto plain = started();
  const auto transformed = started();

  update(*plain, rows);
  rows.batch.targets = {rows.batch.targets[0].mul(0)};  // what a transform would leave for the loss
  update(*transformed, rows);

  expect_equal(transformed->compute(), plain->compute(), 0);
}

TEST_P(MetricContract, TakesSinglePrecision) {
  EvaluatedRows rows = random_rows(true);
  const auto wide = started();
  const auto narrow = started();

  update(*wide, rows);
  rows = rows.with_values([](const at::Tensor& values) { return values.to(at::kFloat); });
  if (target().kind != TargetKind::kClasses)
    rows.batch.original_targets = {rows.batch.original_targets[0].to(at::kFloat)};
  rows.batch.weights = rows.batch.weights.to(at::kFloat);
  update(*narrow, rows);

  expect_equal(narrow->compute(), wide->compute(), GetParam().single_precision_tolerance);
}

TEST_P(MetricContract, LeavesGradientModeAsItWas) {
  EvaluatedRows rows = random_rows();
  rows.prediction.values.requires_grad_(true);
  const auto metric = started();

  update(*metric, rows);

  EXPECT_TRUE(c10::GradMode::is_enabled());
  const StateDict state = metric->state();
  for (const auto& [name, tensor] : state.tensors())
    EXPECT_FALSE(tensor.requires_grad()) << name;
}

TEST_P(MetricContract, RefusesTheOtherKindOfTarget) {
  EXPECT_THROW(GetParam().make()->start(other_kind_of(target())), DataError);
}

}  // namespace treadle::testing
