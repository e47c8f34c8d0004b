#include <treadle/testing/model/metric_contract.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/fits_training_rows.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/evaluated_rows.h>
#include <treadle/testing/support/targets.h>

#include "claim.h"

namespace treadle::testing {

namespace {

/// What the claims share.
class MetricClaims : public ::testing::WithParamInterface<MetricCase> {
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

}  // namespace

LINKS_CLAIMS_OF(Metric)

CLAIM(Metric, GivesAValueOrATable) {
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

CLAIM(Metric, IsUndefinedBeforeTheFirstBatch) {
  for (const MetricValue& value : started()->compute().values)
    EXPECT_TRUE(value.value.is_undefined()) << value.name << " " << value.value;
}

/// What a few validation rows leave undefined before the first step is looked for in more of them.
CLAIM(Metric, MoreRowsNeverMakeAValueUndefined) {
  const EvaluatedRows rows = random_rows();
  const auto metric = started();
  std::vector<MetricValue> before = metric->compute().values;
  for (std::int64_t row = 0; row < kRows; ++row) {
    update(*metric, rows.part(row, row + 1));
    const std::vector<MetricValue> now = metric->compute().values;
    for (std::size_t i = 0; i < now.size(); ++i) {
      EXPECT_FALSE(now[i].value.is_undefined() && !before[i].value.is_undefined())
          << now[i].name << " after row " << row << ": " << now[i].value.why();
    }
    before = now;
  }
}

CLAIM(Metric, ItsNamesAreTheSameFromTheFirstBatchToTheLast) {
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

CLAIM(Metric, ABatchWithoutRowsChangesNothing) {
  const EvaluatedRows rows = random_rows();
  const auto metric = started();
  update(*metric, rows);
  const MetricResult before = metric->compute();

  update(*metric, rows.part(0, 0));
  expect_equal(metric->compute(), before, 0);

  const auto empty = started();
  update(*empty, rows.part(0, 0));
  for (const MetricValue& value : empty->compute().values)
    EXPECT_TRUE(value.value.is_undefined()) << value.name << " " << value.value;
}

CLAIM(Metric, RowsOfWeightZeroAreNoRows) {
  EvaluatedRows rows = random_rows();
  rows.batch.weights = at::zeros({kRows}, at::kDouble);
  const auto metric = started();

  update(*metric, rows);

  for (const MetricValue& value : metric->compute().values)
    EXPECT_TRUE(value.value.is_undefined()) << value.name << " " << value.value;
}

CLAIM(Metric, DoesNotDependOnTheOrderOfRowsUnlessItSaysSo) {
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

CLAIM(Metric, TwoObjectsKnowNothingOfEachOther) {
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

CLAIM(Metric, DoesNotDependOnBatchBoundaries) {
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

CLAIM(Metric, MergingTwoWorkersEqualsOneSeeingBoth) {
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

CLAIM(Metric, MergingManyWorkersInAnyGroupingIsTheSame) {
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

CLAIM(Metric, MergingWithAWorkerThatSawNothingChangesNothing) {
  const auto metric = started();
  const auto idle = started();
  update(*metric, random_rows());
  const MetricResult before = metric->compute();

  metric->merge(*idle);
  expect_equal(metric->compute(), before, 0);
  idle->merge(*metric);
  expect_equal(idle->compute(), before, 0);
}

CLAIM(Metric, ForgetsEverythingOnReset) {
  const EvaluatedRows rows = random_rows();
  const auto used = started();
  const auto fresh = started();

  update(*used, rows.part(0, 25));
  used->reset();
  update(*used, rows.part(25, kRows));
  update(*fresh, rows.part(25, kRows));

  expect_equal(used->compute(), fresh->compute(), 0);
}

CLAIM(Metric, StateRoundTripContinuesBitwise) {
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

CLAIM(Metric, ComputingInBetweenChangesNothing) {
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

CLAIM(Metric, WeightsOfOneChangeNothing) {
  EvaluatedRows rows = random_rows();
  const auto plain = started();
  const auto weighted = started();

  update(*plain, rows);
  rows.batch.weights = at::ones({kRows}, at::kDouble);
  update(*weighted, rows);

  expect_equal(weighted->compute(), plain->compute(), tolerance());
}

CLAIM(Metric, WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow) {
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

CLAIM(Metric, PaddingChangesNothing) {
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

CLAIM(Metric, NaNInPaddingChangesNothing) {
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

CLAIM(Metric, APaddedBatchEqualsItsRowsOneByOne) {
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

CLAIM(Metric, DoesNotKeepTheCallersTensors) {
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

CLAIM(Metric, UsesTheTargetsAsTheDataGaveThem) {
  EvaluatedRows rows = random_rows();
  const auto plain = started();
  const auto transformed = started();

  update(*plain, rows);
  rows.batch.targets = {rows.batch.targets[0].mul(0)};  // what a transform would leave for the loss
  update(*transformed, rows);

  expect_equal(transformed->compute(), plain->compute(), 0);
}

CLAIM(Metric, TakesSinglePrecision) {
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

CLAIM(Metric, LeavesGradientModeAsItWas) {
  EvaluatedRows rows = random_rows();
  rows.prediction.values.requires_grad_(true);
  const auto metric = started();

  update(*metric, rows);

  EXPECT_TRUE(c10::GradMode::is_enabled());
  const StateDict state = metric->state();
  for (const auto& [name, tensor] : state.tensors())
    EXPECT_FALSE(tensor.requires_grad()) << name;
}

CLAIM(Metric, RefusesTheOtherKindOfTarget) {
  EXPECT_THROW(GetParam().make()->start(other_kind_of(target())), DataError);
}

}  // namespace treadle::testing
