// CV+: intervals by the models of all folds. References: cv_plus_reference.py.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_lstsq.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/core/validation/output_stage.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/evaluated_rows.h>
#include <treadle/testing/support/targets.h>

#include "../fold_residuals.h"

namespace treadle::outputs {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::HasSubstr;

std::unique_ptr<OutputStage> cv_plus(json parameters = json::object()) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  parameters["method"] = "cv+";
  return plugin.make<OutputStage>("conformal", parameters);
}

/// A started stage that has learned from rows, float64 [N, ...], and the folds that predicted them.
std::unique_ptr<OutputStage> learned_from(const json& parameters, const TargetSpec& target,
                                          const at::Tensor& predicted, const at::Tensor& actual,
                                          const at::Tensor& folds) {
  EvaluatedRows rows = evaluated_rows(TargetKind::kNumbers, predicted, actual);
  rows.prediction.fold_numbers = folds;
  auto stage = cv_plus(parameters);
  stage->start(target);
  stage->fit(rows.prediction, TargetBatch::original(rows.batch, 0, target));
  return stage;
}

struct Interval {
  at::Tensor lower;
  at::Tensor upper;
};

/// Of rows that the models of the folds predict so: [K, B, ...].
Interval interval_of(const OutputStage& stage, const at::Tensor& folds) {
  Prediction prediction{TargetKind::kNumbers, folds.mean(0)};
  prediction.folds = folds;
  const Prediction after = stage.apply(prediction, {});
  return {after.extras.at(0).values, after.extras.at(1).values};
}

/// By sorting all sums.
at::Tensor sorted_sum(const at::Tensor& residuals, const at::Tensor& folds,
                      const at::Tensor& predictions, std::int64_t place) {
  const at::Tensor sums = predictions.index_select(0, folds) + residuals.unsqueeze(1);
  return std::get<0>(sums.sort(0)).select(0, place - 1);
}

TEST(FoldResiduals, GiveTheNumberThatSortingAllSumsGives) {
  const TaskRandom random(3);
  for (const std::int64_t count : {1, 2, 3, 7}) {
    for (const std::int64_t rows : {5, 61, 400}) {
      // Few values, so that many sums are equal; of column 1 some rows do not count.
      at::Tensor residuals = at::randint(0, 40, {rows, 2}, at::kDouble) * 0.1;
      const at::Tensor folds = at::randint(0, count, {rows}, at::kLong);
      const at::Tensor is_out = at::arange(rows).remainder(5).eq(3);
      residuals.select(1, 1).masked_fill_(is_out, std::nan(""));
      const std::int64_t last = folds.max().item<std::int64_t>() + 1;
      const at::Tensor predictions = at::randn({last, 30, 2}, at::kDouble);
      const FoldResiduals all(residuals, folds);
      const at::Tensor counts = all.counts();
      ASSERT_EQ(counts[1].item<std::int64_t>(), rows - is_out.sum().item<std::int64_t>());

      for (const double share : {0.0, 0.1, 0.5, 0.9, 1.0}) {
        const at::Tensor places = (counts * share).to(at::kLong).clamp_min(1);
        const at::Tensor got = all.nth_sum(predictions, places);
        for (std::int64_t column = 0; column < 2; ++column) {
          // NaN comes last.
          const at::Tensor expected =
              sorted_sum(residuals.select(1, column), folds, predictions.select(2, column),
                         places[column].item<std::int64_t>());
          EXPECT_TRUE(got.select(1, column).equal(expected))
              << count << " folds, " << rows << " rows, " << share;
        }
      }
    }
  }
}

TEST(FoldResiduals, GiveNothingForWhatIsNoNumber) {
  const FoldResiduals all(at::ones({4, 1}, at::kDouble), at::tensor({0, 0, 1, 1}, at::kLong));
  const at::Tensor predictions =
      at::tensor({1.0, 2.0, std::nan(""), 3.0}, at::kDouble).view({2, 2, 1});
  const at::Tensor sums = all.nth_sum(predictions, at::tensor({4}, at::kLong));

  EXPECT_TRUE(std::isnan(sums[0].item<double>()));
  EXPECT_DOUBLE_EQ(sums[1].item<double>(), 4);
}

TEST(CvPlus, HasTheIntervalsOfItsDefinition) {
  const at::Tensor i = at::arange(43, at::kDouble);
  const at::Tensor actual = (i * 1.3).sin() * 5 + i * 0.1;
  const at::Tensor predicted = (i * 1.3 + 0.2).sin() * 5 + i.remainder(5) * 0.1;
  const at::Tensor folds = at::arange(43, at::kLong).mul(7).remainder(4);
  const auto stage = learned_from({{"coverage", 0.8}}, number_target(1), predicted.unsqueeze(1),
                                  actual.unsqueeze(1), folds);
  const at::Tensor k = at::arange(4, at::kDouble).view({4, 1, 1});
  const at::Tensor row = at::arange(5, at::kDouble).view({1, 5, 1});
  const Interval got = interval_of(*stage, (row * 0.7 + k * 0.3).cos() * 3 + k * k * 0.05);

  const at::Tensor lower = at::tensor({-0.63080174686195, -2.1142386338387027, -3.994639488670415,
                                       -5.708992360862504, -6.2466835273590515},
                                      at::kDouble);
  const at::Tensor upper = at::tensor({6.288794473955564, 4.970184994143631, 2.9627445936526384,
                                       1.3846300676150323, 0.5994057634189289},
                                      at::kDouble);
  EXPECT_TRUE(at::allclose(got.lower.squeeze(1), lower, 1e-13, 1e-13)) << got.lower;
  EXPECT_TRUE(at::allclose(got.upper.squeeze(1), upper, 1e-13, 1e-13)) << got.upper;
}

// By hand: two folds of 2 rows, coverage 0.6 and 4 rows: floor(0.4 * 5) = 2nd and ceil(0.6 * 5) =
// 3rd. Number 0 is off by 1, 2 | 3, 4; number 1 ten times as far.
TEST(CvPlus, HasResidualsOfItsOwnForEachNumberOfATarget) {
  const at::Tensor off = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble);
  const auto stage =
      learned_from({{"coverage", 0.6}}, number_target(2), at::zeros({4, 2}, at::kDouble),
                   at::stack({off, off * 10}, 1), at::tensor({0, 0, 1, 1}, at::kLong));
  const at::Tensor folds = at::tensor({0.0, 0.0, 1.0, 100.0}, at::kDouble).view({2, 1, 2});
  const Interval got = interval_of(*stage, folds);

  // Sums 1, 2 | 4, 5 and 10, 20 | 130, 140; differences -1, -2 | -2, -3 and -10, -20 | 70, 60.
  EXPECT_TRUE(got.upper.equal(at::tensor({4.0, 130.0}, at::kDouble).view({1, 2}))) << got.upper;
  EXPECT_TRUE(got.lower.equal(at::tensor({-2.0, -10.0}, at::kDouble).view({1, 2}))) << got.lower;
}

TEST(CvPlus, LeavesRowsOfItsFoldsAsTheyAre) {
  const auto stage =
      learned_from({{"coverage", 0.6}}, number_target(1), at::zeros({8, 1}, at::kDouble),
                   at::ones({8, 1}, at::kDouble), at::arange(8, at::kLong).remainder(2));
  const Prediction after = stage->apply({TargetKind::kNumbers, at::zeros({3, 1}, at::kDouble)}, {});

  EXPECT_THAT(after.extras, ::testing::IsEmpty());
}

TEST(CvPlus, RefusesModelsOfOtherFolds) {
  const auto stage =
      learned_from({{"coverage", 0.6}}, number_target(1), at::zeros({8, 1}, at::kDouble),
                   at::ones({8, 1}, at::kDouble), at::arange(8, at::kLong).remainder(2));
  try {
    interval_of(*stage, at::zeros({3, 1, 1}, at::kDouble));
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("learned from 2 folds, and there are models of 3"));
  }
}

std::string refusal_of(const json& parameters, const TargetSpec& target) {
  try {
    cv_plus(parameters)->start(target);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CvPlus, RefusesWhatItHasNoMeaningFor) {
  EXPECT_THAT(refusal_of({{"by", "group"}}, number_target(1)), HasSubstr("over all rows"));
  EXPECT_THAT(refusal_of({{"score", "quantiles"}}, number_target(1)),
              HasSubstr("expected \"residual\", got \"quantiles\""));
  EXPECT_THAT(refusal_of({{"coverage", 0.5}}, number_target(1)), HasSubstr("above 0.5, got 0.5"));
  EXPECT_THAT(refusal_of({}, testing::class_target(3)), HasSubstr("set \"method\" to \"split\""));
  EXPECT_EQ(refusal_of({{"score", "residual"}}, number_target(1)), "");
}

/// Least squares on rows of 8 columns, and what it predicts for others.
at::Tensor least_squares(const at::Tensor& x, const at::Tensor& y, const at::Tensor& others) {
  return at::matmul(others, std::get<0>(at::linalg_lstsq(x, y)));
}

struct Found {
  double coverage = 0;
  double width = 0;
};

/// On 2000 new rows, on average over `sets` data sets of `count` rows: CV+ with 5 folds, or split
/// conformal with half of the rows.
Found simulated(std::int64_t count, int sets, bool is_split) {
  Found sum;
  for (int set = 0; set < sets; ++set) {
    const TaskRandom random(500 + static_cast<std::uint64_t>(set));
    const auto rows_of = [](std::int64_t rows) {
      const at::Tensor x = at::randn({rows, 8}, at::kDouble);
      return std::pair{x, x.sum(1, true) + at::randn({rows, 1}, at::kDouble)};
    };
    const auto [x, y] = rows_of(count);
    const auto [others, truth] = rows_of(2000);
    Interval interval;
    if (is_split) {
      const std::int64_t half = count / 2;
      const at::Tensor rest = at::cat({x.slice(0, half), others});
      const at::Tensor predicted = least_squares(x.slice(0, 0, half), y.slice(0, 0, half), rest);
      const auto stage = learned_from({}, number_target(1), predicted.slice(0, 0, count - half),
                                      y.slice(0, half), at::zeros({count - half}, at::kLong));
      interval = interval_of(*stage, predicted.slice(0, count - half).unsqueeze(0));
    } else {
      const at::Tensor folds = at::arange(count, at::kLong).remainder(5);
      at::Tensor held_out = at::zeros_like(y);
      std::vector<at::Tensor> of_folds;
      for (std::int64_t fold = 0; fold < 5; ++fold) {
        const at::Tensor out = folds.eq(fold);
        const at::Tensor in = out.logical_not();
        const at::Tensor predicted =
            least_squares(x.index({in}), y.index({in}), at::cat({x.index({out}), others}));
        const auto size = out.sum().item<std::int64_t>();
        held_out.index_put_({out}, predicted.slice(0, 0, size));
        of_folds.push_back(predicted.slice(0, size));
      }
      const auto stage = learned_from({}, number_target(1), held_out, y, folds);
      interval = interval_of(*stage, at::stack(of_folds));
    }
    const at::Tensor is_inside = truth.ge(interval.lower).logical_and(truth.le(interval.upper));
    sum.coverage += is_inside.to(at::kDouble).mean().item<double>() / sets;
    sum.width += (interval.upper - interval.lower).mean().item<double>() / sets;
  }
  return sum;
}

TEST(CvPlus, CoversAsOftenAsItSays) {
  EXPECT_NEAR(simulated(200, 20, false).coverage, 0.9, 0.02);
}

// With one fold, CV+ is split conformal. On few rows CV+ covers a little more than asked for: each
// model of a fold is off in its own way.
TEST(CvPlus, HasNarrowerIntervalsThanSplitConformalOnFewRows) {
  const Found folds = simulated(60, 40, false);
  const Found split = simulated(60, 40, true);

  EXPECT_GT(folds.coverage, 0.88);
  EXPECT_LT(folds.coverage, 0.95);
  EXPECT_LT(folds.width, 0.97 * split.width) << folds.width << " and " << split.width;
}

}  // namespace
}  // namespace treadle::outputs
