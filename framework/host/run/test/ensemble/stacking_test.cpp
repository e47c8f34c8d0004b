#include "ensemble/stacking.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lcg_numbers.h"

namespace treadle::internal {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr std::int64_t kRows = 40;

std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

at::Tensor row_weights() {
  return 0.5 + lcg_numbers(99, kRows);
}

struct Numbers {
  at::Tensor targets = lcg_numbers(1, kRows).unsqueeze(1);
  std::vector<at::Tensor> predictions;

  Numbers() {
    for (std::int64_t m = 0; m < 4; ++m) {
      const at::Tensor noise = lcg_numbers(10 + m, kRows).unsqueeze(1) - 0.7;
      predictions.push_back(targets + (0.3 + 0.2 * static_cast<double>(m)) * noise);
    }
  }
};

struct Classes {
  at::Tensor targets = (lcg_numbers(2, kRows) * 3).to(at::kLong);
  std::vector<at::Tensor> predictions;

  Classes() {
    const at::Tensor right = at::one_hot(targets, 3).to(at::kDouble);
    for (std::int64_t m = 0; m < 4; ++m) {
      const double skill = std::vector<double>{1.5, 0.75, 0.5, -1.0}[static_cast<std::size_t>(m)];
      const at::Tensor noise = 2 * lcg_numbers(20 + m, 3 * kRows).reshape({kRows, 3});
      predictions.push_back(at::softmax(skill * right + noise, 1));
    }
  }
};

struct Labels {
  at::Tensor targets = lcg_numbers(3, 2 * kRows).reshape({kRows, 2}).lt(0.4).to(at::kDouble);
  std::vector<at::Tensor> predictions;

  Labels() {
    for (std::int64_t m = 0; m < 3; ++m) {
      const at::Tensor noise = 2 * lcg_numbers(30 + m, 2 * kRows).reshape({kRows, 2});
      predictions.push_back(at::sigmoid(2 * targets - 1 + noise));
    }
  }
};

// python3 stacking_reference.py
TEST(Stacking, OfNumbersIsTheBoundedLeastSquares) {
  const Numbers numbers;
  const PredictionPool equal =
      fit_stacking(TargetKind::kNumbers, numbers.predictions, numbers.targets, {});
  const PredictionPool weighted =
      fit_stacking(TargetKind::kNumbers, numbers.predictions, numbers.targets, row_weights());

  EXPECT_EQ(equal.kind, PredictionPool::Kind::kLinear);
  EXPECT_THAT(values_of(equal.weights),
              Pointwise(DoubleNear(2e-6), {1.02188, 0.05729, 0.0, 0.024502}));
  EXPECT_THAT(values_of(weighted.weights),
              Pointwise(DoubleNear(2e-6), {1.016903, 0.056657, 0.0, 0.034555}));
}

TEST(Stacking, OfVectorsHasWeightsForEachNumber) {
  const Numbers numbers;
  const at::Tensor other = lcg_numbers(50, kRows).unsqueeze(1);
  std::vector<at::Tensor> both;
  for (const at::Tensor& values : numbers.predictions)
    both.push_back(at::cat({other - values, values}, 1));
  const PredictionPool pool =
      fit_stacking(TargetKind::kNumbers, both, at::cat({other, numbers.targets}, 1), {});

  EXPECT_EQ(pool.weights.sizes(), (std::vector<std::int64_t>{4, 2}));
  EXPECT_THAT(values_of(pool.weights.select(1, 1)),
              Pointwise(DoubleNear(2e-6), {1.02188, 0.05729, 0.0, 0.024502}));
}

TEST(Stacking, OfClassesIsTheBoundedLeastCrossEntropy) {
  const Classes classes;
  const PredictionPool pool =
      fit_stacking(TargetKind::kClasses, classes.predictions, classes.targets, row_weights());

  EXPECT_EQ(pool.kind, PredictionPool::Kind::kLogarithmic);
  EXPECT_THAT(values_of(pool.weights),
              Pointwise(DoubleNear(2e-5), {2.31804, 0.84218, 0.68427, 0.0}));
  EXPECT_THAT(values_of(pool.intercept), Pointwise(DoubleNear(2e-5), {-0.0145, -0.00905, 0.02355}));
}

TEST(Stacking, OfDistributionsThatAreSureIsThatOfClasses) {
  const Classes classes;
  const at::Tensor sure = at::one_hot(classes.targets, 3).to(at::kFloat);
  const PredictionPool pool =
      fit_stacking(TargetKind::kDistribution, classes.predictions, sure, row_weights());

  EXPECT_TRUE(pool.weights.equal(
      fit_stacking(TargetKind::kClasses, classes.predictions, classes.targets, row_weights())
          .weights));
}

TEST(Stacking, OfLabelsIsThatOfTwoClassesEach) {
  const Labels labels;
  const PredictionPool pool =
      fit_stacking(TargetKind::kLabels, labels.predictions, labels.targets, {});

  EXPECT_THAT(values_of(pool.weights.select(1, 0)),
              Pointwise(DoubleNear(2e-5), {0.97062, 1.06397, 1.02394}));
  EXPECT_THAT(values_of(pool.weights.select(1, 1)),
              Pointwise(DoubleNear(2e-5), {1.19783, 0.88946, 1.01991}));
  EXPECT_THAT(values_of(pool.intercept), Pointwise(DoubleNear(5e-5), {-2.52348, -2.65024}));
}

TEST(Stacking, PutsTheProbabilitiesOfMembersTogetherAsFitted) {
  const Classes classes;
  const PredictionPool pool =
      fit_stacking(TargetKind::kClasses, classes.predictions, classes.targets, {});
  at::Tensor logits = pool.intercept.clone();
  for (std::int64_t m = 0; m < 4; ++m)
    logits = logits + pool.weights[m] * classes.predictions[static_cast<std::size_t>(m)].log();

  const at::Tensor pooled = pool(TargetKind::kClasses, classes.predictions);

  EXPECT_TRUE(at::allclose(pooled, at::softmax(logits, 1), 1e-12));
  const auto entropy = [&](const at::Tensor& p) {
    return -p.gather(1, classes.targets.unsqueeze(1)).log().sum().item<double>();
  };
  for (const at::Tensor& alone : classes.predictions)
    EXPECT_LT(entropy(pooled), entropy(alone));
}

TEST(Stacking, DoesNotLookAtPositionsWithoutWeight) {
  Numbers numbers;
  const PredictionPool expected =
      fit_stacking(TargetKind::kNumbers,
                   std::vector<at::Tensor>{numbers.predictions[0].narrow(0, 0, 30),
                                           numbers.predictions[1].narrow(0, 0, 30)},
                   numbers.targets.narrow(0, 0, 30), {});
  at::Tensor weights = at::full({kRows}, 1.0, at::kFloat);
  weights.narrow(0, 30, 10).zero_();
  numbers.targets.narrow(0, 30, 10).fill_(NAN);

  const PredictionPool pool = fit_stacking(
      TargetKind::kNumbers, std::vector<at::Tensor>{numbers.predictions[0], numbers.predictions[1]},
      numbers.targets, weights);

  EXPECT_TRUE(at::allclose(pool.weights, expected.weights));
}

TEST(Stacking, GivesMembersThatPredictTheSameTheSameWeight) {
  const Numbers numbers;
  const std::vector<at::Tensor> twice{numbers.predictions[0], numbers.predictions[0]};

  const std::vector<double> weights =
      values_of(fit_stacking(TargetKind::kNumbers, twice, numbers.targets, {}).weights);

  EXPECT_NEAR(weights[0], weights[1], 1e-6);
  EXPECT_GT(weights[0], 0.4);
}

TEST(Stacking, PredictsEachRowByAPoolThatHasNotSeenIt) {
  Classes classes;
  const at::Tensor before =
      cross_fitted(TargetKind::kClasses, classes.predictions, classes.targets, {});
  const std::int64_t row = 7;
  classes.targets[row] = (classes.targets[row] + 1).remainder(3);
  const at::Tensor after =
      cross_fitted(TargetKind::kClasses, classes.predictions, classes.targets, {});

  EXPECT_TRUE(before[row].equal(after[row]));
  EXPECT_TRUE(before[row + 5].equal(after[row + 5]));  // left out with it
  EXPECT_FALSE(before[row + 1].equal(after[row + 1]));
}

}  // namespace
}  // namespace treadle::internal
