#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/metric_computer.h>
#include <treadle/core/task_random.h>
#include <treadle/testing/case_name.h>

/// What every MetricComputer must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Metrics, MetricContract, ::testing::Values(
///         MetricCase{"Accuracy", [] { return plugin().make<MetricComputer>("accuracy"); },
///                    MetricCase::classes(3)}), CaseName());
namespace treadle::testing {

struct MetricCase {
  std::string name;
  std::function<std::unique_ptr<MetricComputer>()> make;
  TargetSpec target;  ///< one the metric has a meaning for
  /// Relative; sums in another order differ by rounding.
  double tolerance = 1e-12;
  /// float32 predictions give the same up to this.
  double single_precision_tolerance = 1e-5;

  static TargetSpec numbers(std::int64_t width) {
    return {"price", TargetKind::kNumbers, width, {}};
  }
  static TargetSpec classes(std::int64_t count) {
    TargetSpec target{"species", TargetKind::kClasses, 1, {}};
    for (std::int64_t c = 0; c < count; ++c)
      target.class_names.push_back("class-" + std::to_string(c));
    return target;
  }
};

/// Some rows that have been predicted.
struct JudgedRows {
  Predictions predictions;
  Batch batch;

  JudgedRows part(std::int64_t begin, std::int64_t end) const {
    const auto cut = [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.slice(0, begin, end) : tensor;
    };
    return {
        {predictions.kind, cut(predictions.values)},
        {{}, cut(batch.targets), cut(batch.original_targets), cut(batch.weights), cut(batch.rows)}};
  }
};

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
      batch.targets = at::randint(target.class_count(), {kRows}, at::kLong);
    } else {
      batch.targets = at::randn({kRows, target.width}, at::kDouble);
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

  static void expect_equal(const MetricResult& got, const MetricResult& expected,
                           double tolerance) {
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

  double tolerance() const { return GetParam().tolerance; }
};

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

TEST_P(MetricContract, DoesNotDependOnBatchBoundaries) {
  for (const bool weighted : {false, true}) {
    const JudgedRows rows = random_rows(weighted);
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
    const JudgedRows rows = random_rows(weighted);
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
  const JudgedRows rows = random_rows();
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
    const JudgedRows rows = random_rows(weighted);
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
  const JudgedRows rows = random_rows();
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
  JudgedRows rows = random_rows();
  const auto plain = started();
  const auto weighted = started();

  update(*plain, rows);
  rows.batch.weights = at::ones({kRows}, at::kDouble);
  update(*weighted, rows);

  expect_equal(weighted->compute(), plain->compute(), tolerance());
}

TEST_P(MetricContract, WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow) {
  JudgedRows rows = random_rows();
  const auto twice = started();
  const auto weighted = started();

  update(*twice, rows.part(0, kRows - 1));
  update(*twice, rows.part(0, 1));
  rows.batch.weights = at::ones({kRows}, at::kDouble);
  rows.batch.weights[0] = 2;
  rows.batch.weights[kRows - 1] = 0;
  update(*weighted, rows);

  MetricResult expected = twice->compute();
  MetricResult got = weighted->compute();
  expected.tables.clear();  // a table may show rows as such
  got.tables.clear();
  expect_equal(got, expected, tolerance());
}

TEST_P(MetricContract, DoesNotKeepTheCallersTensors) {
  const JudgedRows rows = random_rows(true);
  const auto metric = started();
  update(*metric, rows);
  const MetricResult before = metric->compute();

  rows.predictions.values.zero_();
  rows.batch.original_targets.zero_();
  rows.batch.weights.zero_();
  rows.batch.rows.zero_();

  expect_equal(metric->compute(), before, 0);
}

TEST_P(MetricContract, JudgesByTheTargetsAsTheDataGaveThem) {
  JudgedRows rows = random_rows();
  const auto plain = started();
  const auto transformed = started();

  update(*plain, rows);
  rows.batch.targets = rows.batch.targets.mul(0);  // what a transform would leave for the loss
  update(*transformed, rows);

  expect_equal(transformed->compute(), plain->compute(), 0);
}

TEST_P(MetricContract, TakesSinglePrecision) {
  JudgedRows rows = random_rows(true);
  const auto wide = started();
  const auto narrow = started();

  update(*wide, rows);
  rows.predictions.values = rows.predictions.values.to(at::kFloat);
  if (GetParam().target.kind == TargetKind::kNumbers)
    rows.batch.original_targets = rows.batch.original_targets.to(at::kFloat);
  rows.batch.weights = rows.batch.weights.to(at::kFloat);
  update(*narrow, rows);

  expect_equal(narrow->compute(), wide->compute(), GetParam().single_precision_tolerance);
}

TEST_P(MetricContract, LeavesGradientModeAsItWas) {
  JudgedRows rows = random_rows();
  rows.predictions.values.requires_grad_(true);
  const auto metric = started();

  update(*metric, rows);

  EXPECT_TRUE(c10::GradMode::is_enabled());
  const StateDict state = metric->state();
  for (const auto& [name, tensor] : state.tensors())
    EXPECT_FALSE(tensor.requires_grad()) << name;
}

TEST_P(MetricContract, RefusesTheOtherKindOfTarget) {
  const bool classes = GetParam().target.kind == TargetKind::kClasses;

  EXPECT_THROW(GetParam().make()->start(classes ? MetricCase::numbers(1) : MetricCase::classes(3)),
               DataError);
}

}  // namespace treadle::testing
