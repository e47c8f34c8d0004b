// Samples of distributions beside SciPy's moments, distribution functions and scores.
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/var.h>
#include <gmock/gmock.h>

#include <treadle/core/training/draws_samples.h>
#include <treadle/core/training/loss.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

std::unique_ptr<Loss> sampled_loss(const std::string& name, const nlohmann::json& parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<Loss>(name, parameters);
}

std::vector<std::uint64_t> seeds_from(std::uint64_t first, std::int64_t count) {
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(count));
  for (std::uint64_t& seed : seeds)
    seed = first++;
  return seeds;
}

/// Draws for as many rows of the same outputs: float64 [count].
at::Tensor draws_of(const Loss& loss, const std::vector<double>& parameters, std::int64_t count,
                    std::uint64_t first_seed = 1000) {
  const at::Tensor outputs = at::tensor(parameters, at::kDouble).unsqueeze(0).repeat({count, 1});
  return loss.ask<DrawsSamples>()->draw({outputs}, seeds_from(first_seed, count)).squeeze(1);
}

/// mean |x - y| - mean |x - x'| / 2 over pairs of different samples, which is unbiased.
double crps_of(const at::Tensor& samples, double observed) {
  const std::int64_t n = samples.numel();
  const at::Tensor sorted = std::get<0>(samples.sort(0));
  // Sum over pairs of sorted numbers: the i-th is added i times and taken away n - 1 - i times.
  const at::Tensor times = at::arange(n, at::kDouble).mul(2).sub(static_cast<double>(n - 1));
  const double pairs = static_cast<double>(n) * static_cast<double>(n - 1) / 2;
  return (samples - observed).abs().mean().item<double>() -
         (sorted * times).sum().item<double>() / pairs / 2;
}

struct SampleCase {
  std::string name;
  std::string loss;
  std::vector<double> parameters;  // as the network computes them
  double mean;
  double variance;
  double observed;
  double crps;
  std::vector<double> points;
  std::vector<double> below;  // the distribution function at the points
  /// Of the fourth moment, whose absence lets sample variances be anything.
  bool has_kurtosis = true;
};

class DistributionSamples : public ::testing::TestWithParam<SampleCase> {};

// /usr/bin/python3 plugins/losses/test/distribution_samples_reference.py (SciPy 1.10). Bounds are
// five standard errors of as many samples, so that a right program fails once in a million times;
// seeds are fixed.
TEST_P(DistributionSamples, HaveTheMomentsAndQuantilesOfSciPy) {
  constexpr std::int64_t kCount = 200'000;
  constexpr double kErrors = 5;
  const SampleCase& expected = GetParam();
  const auto loss = sampled_loss(expected.loss);

  const at::Tensor samples = draws_of(*loss, expected.parameters, kCount);

  const auto root = std::sqrt(static_cast<double>(kCount));
  EXPECT_NEAR(samples.mean().item<double>(), expected.mean,
              kErrors * std::sqrt(expected.variance) / root);
  if (expected.has_kurtosis) {
    const at::Tensor squares = samples.sub(expected.mean).square();
    EXPECT_NEAR(squares.mean().item<double>(), expected.variance,
                kErrors * std::sqrt(squares.var(false).item<double>()) / root);
  }
  for (std::size_t i = 0; i < expected.points.size(); ++i) {
    const double level = expected.below[i];
    EXPECT_NEAR(samples.le(expected.points[i]).to(at::kDouble).mean().item<double>(), level,
                kErrors * std::sqrt(level * (1 - level)) / root)
        << "at " << expected.points[i];
  }
  // The score is a mean of numbers that vary as the samples do.
  EXPECT_NEAR(crps_of(samples, expected.observed), expected.crps,
              kErrors * std::sqrt(expected.variance) / root);
}

INSTANTIATE_TEST_SUITE_P(
    Distributions, DistributionSamples,
    ::testing::Values(SampleCase{"Gaussian",
                                 "gaussian_nll",
                                 {1.5, 0.3},
                                 1.5,
                                 0.7299245924623659,
                                 2.0,
                                 0.31317526793401923,
                                 {-1.5, 0.5, 1.0, 2.0, 3.5},
                                 {0.00022286333361935633, 0.12090555248661372, 0.27919453304795905,
                                  0.720805466952041, 0.9903824702516709}},
                      SampleCase{"StudentT",
                                 "student_t_nll",
                                 {-1, 0.2, 6},
                                 -1,
                                 0.8492820534095692,
                                 0.25,
                                 0.8239738876832315,
                                 {-4, -2, -1, -0.5, 1},
                                 {0.002775609390315381, 0.1228037650889317, 0.5, 0.7257677107377816,
                                  0.9817002238046815}},
                      SampleCase{"HeavyStudentT",
                                 "student_t_nll",
                                 {-1, 0.2, 0.5},
                                 -1,
                                 1.9449866987841322,
                                 0.25,
                                 0.8048316422181816,
                                 {-4, -2, -1, -0.5, 1},
                                 {0.016707005252801006, 0.1498504487540794, 0.5, 0.7120997507124909,
                                  0.9560042684455912},
                                 false},
                      SampleCase{"Counts",
                                 "negative_binomial_nll",
                                 {2, 0.5},
                                 2.126929011042972,
                                 6.533489313531731,
                                 3,
                                 0.9385270559073439,
                                 {0, 1, 2, 4, 9},
                                 {0.31596385416935385, 0.5347391136998862, 0.6842570596239106,
                                  0.855069572476411, 0.9794846228277124}},
                      SampleCase{"RareCounts",
                                 "negative_binomial_nll",
                                 {-3, 3},
                                 0.04858835157374204,
                                 0.055785544036133485,
                                 1,
                                 0.9133800820991381,
                                 {0, 1, 2, 3, 4},
                                 {0.9557013542764425, 0.9961463560864527, 0.9996111797955901,
                                  0.9999580669069378, 0.9999953022733146}},
                      SampleCase{"LargeCounts",
                                 "negative_binomial_nll",
                                 {300, -4},
                                 300.00000099999994,
                                 1933.5835244934324,
                                 280,
                                 13.194375808043354,
                                 {220, 270, 300, 330, 390},
                                 {0.026515909164436833, 0.25886182740971025, 0.5225081017472916,
                                  0.7635568874869771, 0.9736517405466054}},
                      SampleCase{"GaussianMixture",
                                 "gaussian_mixture_nll",
                                 {0.5, -0.5, 1, -3, 0.5, 2, -1, 0, 0.5},
                                 0.15957771941494903,
                                 5.784415740294741,
                                 0.75,
                                 0.7035591379525103,
                                 {-3.5, -2.5, 0, 1.5, 3.5},
                                 {0.018309596483164436, 0.3131913359839031, 0.3711449541590429,
                                  0.6104379267772111, 0.9662276874333191}}),
    CaseName());

TEST(DistributionSamples, OfCountsAreWholeNumbers) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto loss = sampled_loss("negative_binomial_nll");
    const at::Tensor outputs = at::tensor({3., 0.5, 100., -2., -5., 4.}, dtype).view({3, 2});

    const at::Tensor counts = loss->ask<DrawsSamples>()->draw({outputs}, seeds_from(1, 3));

    EXPECT_EQ(counts.scalar_type(), dtype);
    EXPECT_TRUE(at::equal(counts, counts.floor()));
    EXPECT_GE(counts.min().item<double>(), 0);
  }
}

TEST(DistributionSamples, OfOneRowAreIndependentOfEachOther) {
  constexpr std::int64_t kRows = 50'000;
  const auto loss = sampled_loss("gaussian_nll");
  // Two numbers at two positions: locations 0, and scales of softplus(0.5413...) = 1.
  const at::Tensor outputs =
      at::tensor({0., 0., 0.54132485, 0.54132485}, at::kDouble).repeat({kRows, 2, 1});

  const at::Tensor z =
      loss->ask<DrawsSamples>()->draw({outputs}, seeds_from(7, kRows)).reshape({kRows, 4});

  const at::Tensor correlation = z.t().mm(z).div(static_cast<double>(kRows));
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t k = 0; k < 4; ++k) {
      EXPECT_NEAR(correlation[i][k].item<double>(), i == k ? 1 : 0, 5 * std::sqrt(2.0 / kRows))
          << i << ", " << k;
    }
  }
}

// Neighbouring seeds are the usual ones: a row and the next.
TEST(DistributionSamples, OfNeighbouringSeedsAreIndependent) {
  constexpr std::int64_t kRows = 100'000;
  const auto loss = sampled_loss("student_t_nll");
  const at::Tensor samples = draws_of(*loss, {0, 0.5, 8}, kRows);
  const at::Tensor z = samples.sub(samples.mean()).div(samples.std());

  for (const std::int64_t lag : {1, 2, 64}) {
    const double correlation =
        z.slice(0, lag).mul(z.slice(0, 0, kRows - lag)).mean().item<double>();
    EXPECT_NEAR(correlation, 0, 5 / std::sqrt(static_cast<double>(kRows))) << lag;
  }
}

TEST(DistributionSamples, OfWhatIsNoNumberAreNone) {
  const double nan = std::nan("");
  for (const char* const name :
       {"gaussian_nll", "student_t_nll", "negative_binomial_nll", "gaussian_mixture_nll"}) {
    const auto loss = sampled_loss(name);
    const std::int64_t width =
        loss->outputs_for({"y", TargetKind::kNumbers, {1}}).front().shape.back();
    const std::vector<double> parameters(static_cast<std::size_t>(width), nan);

    EXPECT_TRUE(draws_of(*loss, parameters, 3).isnan().all().item<bool>()) << name;
  }
}

TEST(DistributionSamples, OfAnEnsembleAreThoseOfItsMembers) {
  constexpr std::int64_t kRows = 20'000;
  const auto loss = sampled_loss("ensemble", {{"members", 2}, {"loss", "gaussian_nll"}});
  // Far apart, so that each draw shows its member.
  const at::Tensor outputs =
      at::tensor({-50., 0., 50., 1.}, at::kDouble).repeat({kRows, 1}).view({kRows, 2, 2});

  const at::Tensor samples =
      loss->ask<DrawsSamples>()->draw({outputs}, seeds_from(3, kRows)).squeeze(1);

  const at::Tensor of_first = samples.lt(0);
  EXPECT_NEAR(of_first.to(at::kDouble).mean().item<double>(), 0.5, 5 * 0.5 / std::sqrt(kRows));
  EXPECT_NEAR(samples.masked_select(of_first).std().item<double>(), std::log(2), 0.02);
  EXPECT_NEAR(samples.masked_select(of_first.logical_not()).std().item<double>(),
              std::log1p(std::exp(1)), 0.04);
  EXPECT_EQ(sampled_loss("ensemble", {{"members", 2}, {"loss", "mse"}})->ask<DrawsSamples>(),
            nullptr);
}

TEST(DistributionSamples, AreOfDistributionsAlone) {
  const std::vector<std::pair<const char*, nlohmann::json>> losses{
      {"mse", {}},
      {"l1", {}},
      {"cross_entropy", {}},
      {"quantile", {{"quantiles", {0.1, 0.5, 0.9}}}}};
  for (const auto& [name, parameters] : losses)
    EXPECT_EQ(sampled_loss(name, parameters)->ask<DrawsSamples>(), nullptr) << name;
}

}  // namespace
}  // namespace treadle::testing
