// Likelihoods, predictions and expected improvements: plugins/tuners/test/reference.py. Bounds of
// regrets: the best of scikit-optimize's benchmark after 200 calls, with a margin for the half of
// them.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/testing/search/tuner_contract.h>

#include "functions.h"
#include "gaussian_process.h"
#include "made.h"

namespace treadle::tuners {
namespace {

using testing::CaseName;
using testing::TunerCase;
using testing::TunerContract;

TunerCase gp_case(const std::string& name, const nlohmann::json& parameters = {}) {
  TunerCase one{name, [parameters] { return make("gp", parameters); }};
  one.trials = 24;
  return one;
}

INSTANTIATE_TEST_SUITE_P(Gp, TunerContract,
                         ::testing::Values(gp_case("Gp"),
                                           gp_case("GpExact", {{"deterministic_objective", true}})),
                         CaseName());

GaussianProcess three_points(double weight_of_x = 4) {
  return GaussianProcess({{0.1, 0}, {0.5, 1}, {0.9, 1}}, {0.5, -1, 0.3}, {false, true},
                         {{weight_of_x, 0.5}, 1.5, 0.01});
}

TEST(GaussianProcess, IsThatOfTheReference) {
  const GaussianProcess process = three_points();
  const auto predictions = process.predict({{0.5, 1}, {0.3, 0}});

  EXPECT_NEAR(process.log_likelihood(), -4.386547926784148, 1e-9);
  EXPECT_NEAR(predictions[0].first, -0.9804461199979544, 1e-9);
  EXPECT_NEAR(predictions[0].second, 0.009855675387779428, 1e-9);
  EXPECT_NEAR(predictions[1].first, 0.10278340467390257, 1e-9);
  EXPECT_NEAR(predictions[1].second, 0.25075739982083145, 1e-9);
}

TEST(GaussianProcess, GradientsAreSlopes) {
  const auto likelihood = [](std::vector<double> logs) {
    return GaussianProcess(
               {{0.1, 0}, {0.5, 1}, {0.9, 1}}, {0.5, -1, 0.3}, {false, true},
               {{std::exp(logs[0]), std::exp(logs[1])}, std::exp(logs[2]), std::exp(logs[3])})
        .log_likelihood();
  };
  const std::vector<double> at = {std::log(4), std::log(0.5), std::log(1.5), std::log(0.01)};
  const std::vector<double> gradient = three_points().gradient();

  ASSERT_EQ(gradient.size(), at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    constexpr double kStep = 1e-5;
    std::vector<double> above = at;
    above[i] += kStep;
    std::vector<double> below = at;
    below[i] -= kStep;
    EXPECT_NEAR(gradient[i], (likelihood(above) - likelihood(below)) / (2 * kStep), 1e-6) << i;
  }
}

// f depends on the first of two dimensions alone.
TEST(GaussianProcess, FitsALengthScaleForEachDimension) {
  std::vector<std::vector<double>> x;
  std::vector<double> y;
  RandomBits bits(4);
  for (int i = 0; i < 40; ++i) {
    x.push_back({bits.uniform(), bits.uniform()});
    y.push_back(std::sin(6 * x.back()[0]));
  }
  const auto parameters = GaussianProcess::fit(x, y, {false, false}, 1e-6, false);

  EXPECT_GT(parameters.weights[0], 1);
  EXPECT_LT(parameters.weights[1], 0.02);
  EXPECT_GT(GaussianProcess(x, y, {false, false}, parameters).log_likelihood(),
            GaussianProcess(x, y, {false, false}, {{4, 4}, 1, 1e-6}).log_likelihood() + 10);
}

TEST(ExpectedImprovement, IsThatOfTheReference) {
  EXPECT_NEAR(log_expected_improvement(0.5, 0.04, 0.6), -1.969265596179164, 1e-9);
  EXPECT_NEAR(log_expected_improvement(1, 0.01, 0), -57.85570712911729, 1e-6);
  // Far below, the series goes on where the formula ends.
  const double here = log_expected_improvement(2.4999, 0.01, 0);
  const double there = log_expected_improvement(2.5001, 0.01, 0);
  EXPECT_NEAR((there - here) / 0.0002, -250.8, 1);
  EXPECT_TRUE(std::isfinite(log_expected_improvement(1000, 0.01, 0)));
}

TEST(Gp, ReachesSmallRegrets) {
  const auto gp = make("gp", {{"deterministic_objective", true}});
  EXPECT_LE(quantile(regrets(*gp, branin(), 50, 3), 0.5), 0.01);
  EXPECT_LE(quantile(regrets(*gp, hartmann6(), 60, 3), 0.5), 0.2);
}

}  // namespace
}  // namespace treadle::tuners
