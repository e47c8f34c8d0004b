#include <treadle/core/validation/mean_of_members.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace treadle {
namespace {

constexpr std::int64_t kMembers = 3;
constexpr std::int64_t kRows = 4;
constexpr std::int64_t kWidth = 3;

at::Tensor vector(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble);
}

/// As numbers() in mean_of_members_reference.py: [members, rows, width].
at::Tensor numbers() {
  return at::arange(kMembers * kRows * kWidth, at::kDouble)
      .mul(1.7)
      .sin()
      .mul(2)
      .view({kMembers, kRows, kWidth});
}

/// [members, 1].
at::Tensor weights() {
  return vector({0.5, 0.2, 0.3}).unsqueeze(1);
}

/// Of each label or number; those of the last do not sum to 1, and its first is 0: [members,
/// width].
at::Tensor weights_of_each() {
  return vector({0.5, 0.1, 0, 0.2, 0.6, 1, 0.3, 0.3, 2}).view({kMembers, kWidth});
}

/// `values`: [members, ...]; `deviations` likewise, or undefined.
Prediction mean_of(TargetKind kind, const at::Tensor& values, const at::Tensor& weights,
                   const at::Tensor& deviations = {}) {
  MeanOfMembers mean;
  for (std::int64_t m = 0; m < values.size(0); ++m) {
    Prediction member{kind, values[m]};
    if (deviations.defined())
      member.uncertainty.aleatoric = deviations[m];
    mean.add(member, weights[m]);
  }
  return mean.mean();
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected, double within = 1e-12) {
  EXPECT_TRUE(at::allclose(actual, expected, /*rtol=*/0, within)) << actual << expected;
}

// /usr/bin/python3 framework/core/test/validation/mean_of_members_reference.py (NumPy 1.24), here
// and below.
TEST(MeanOfMembers, HasTheEntropiesOfNumPyForClasses) {
  const Prediction mean = mean_of(TargetKind::kClasses, at::softmax(numbers(), -1), weights());

  expect_close(mean.uncertainty.total, vector({1.0526580956797753, 1.0986007328486183,
                                               0.9975503610348099, 1.0894173248853565}));
  expect_close(mean.uncertainty.aleatoric, vector({0.6285907061108272, 0.6114506026620306,
                                                   0.5720328249297051, 0.6271685127948847}));
  expect_close(mean.uncertainty.epistemic, vector({0.42406738956894807, 0.48715013018658776,
                                                   0.42551753610510484, 0.46224881209047186}));
}

TEST(MeanOfMembers, HasTheEntropiesOfNumPyForEachLabel) {
  const Prediction mean = mean_of(TargetKind::kLabels, at::sigmoid(numbers()), weights_of_each());

  expect_close(mean.uncertainty.total.mean(0),
               vector({0.6803234041836828, 0.6388243331795247, 0.6095900961765545}));
  expect_close(mean.uncertainty.aleatoric.mean(0),
               vector({0.5353832472204937, 0.5202084610838318, 0.5262867595758545}));
  expect_close(mean.uncertainty.epistemic, mean.uncertainty.total - mean.uncertainty.aleatoric);
}

TEST(MeanOfMembers, HasTheDeviationsOfNumPyForNumbers) {
  const at::Tensor deviations = at::arange(kMembers * kRows * kWidth, at::kDouble)
                                    .cos()
                                    .abs()
                                    .add(0.5)
                                    .view({kMembers, kRows, kWidth});

  const Prediction mean = mean_of(TargetKind::kNumbers, numbers(), weights_of_each(), deviations);

  expect_close(mean.values.mean(0),
               vector({-0.15251693947300943, 0.3917907188757391, -0.4254084370483874}));
  expect_close(mean.uncertainty.total.mean(0),
               vector({1.7398019011418147, 1.8184936343144826, 1.475441402641485}));
  expect_close(mean.uncertainty.aleatoric.mean(0),
               vector({1.2346441799253332, 1.4295711562402693, 1.1549867630141688}));
  expect_close(mean.uncertainty.epistemic.mean(0),
               vector({1.2017962379760907, 1.1141759911397104, 0.8456213472638101}));
}

TEST(MeanOfMembers, OfNumbersWithoutADistributionHasNoAleatoricPart) {
  const Prediction mean = mean_of(TargetKind::kNumbers, numbers(), weights());

  EXPECT_FALSE(mean.uncertainty.aleatoric.defined());
  EXPECT_FALSE(mean.uncertainty.total.defined());
  EXPECT_TRUE(mean.uncertainty.epistemic.defined());
}

TEST(MeanOfMembers, ThatAreEqualHasNoEpistemicPart) {
  const at::Tensor equal = at::softmax(numbers()[0], -1).expand({kMembers, kRows, kWidth});

  for (const TargetKind kind : {TargetKind::kClasses, TargetKind::kNumbers}) {
    const Prediction mean = mean_of(kind, equal, weights());
    EXPECT_LT(mean.uncertainty.epistemic.abs().max().item<double>(), 1e-14);
    EXPECT_GE(mean.uncertainty.epistemic.min().item<double>(), 0);
    expect_close(mean.values, equal[0]);
  }
}

TEST(MeanOfMembers, KeepsTheDigitsOfNumbersFarFromZero) {
  const at::Tensor far = at::tensor({1e9 + 1, 1e9 + 2, 1e9 + 3}, at::kDouble).view({3, 1, 1});

  const Prediction mean = mean_of(TargetKind::kNumbers, far, at::ones({3, 1}, at::kDouble));

  EXPECT_NEAR(mean.uncertainty.epistemic.item<double>(), std::sqrt(2.0 / 3), 1e-7);
}

TEST(MeanOfMembers, OfCertainMembersThatDisagreeIsEpistemicAlone) {
  const at::Tensor certain = vector({1, 0, 0, 1}).view({2, 1, 2});

  const Prediction mean = mean_of(TargetKind::kClasses, certain, at::ones({2, 1}, at::kDouble));

  EXPECT_NEAR(mean.uncertainty.epistemic.item<double>(), std::log(2.0), 1e-15);
  EXPECT_EQ(mean.uncertainty.aleatoric.item<double>(), 0);
}

TEST(MeanOfMembers, AveragesExtrasAndKeepsTheirLevels) {
  MeanOfMembers mean;
  for (const double value : {1.0, 4.0}) {
    Prediction member{TargetKind::kNumbers, at::tensor({value}).view({1, 1})};
    member.extras = {{"q0.9", at::tensor({value + 1}).view({1, 1}), 0.9}};
    mean.add(member, at::ones({}, at::kDouble));
  }

  const Prediction result = mean.mean();

  ASSERT_EQ(result.extras.size(), 1U);
  EXPECT_EQ(result.extras[0].level, 0.9);
  EXPECT_EQ(result.extras[0].values.item<double>(), 3.5);
}

}  // namespace
}  // namespace treadle
