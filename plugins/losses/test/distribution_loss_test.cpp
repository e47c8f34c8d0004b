#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/core/training/predicts_uncertainty.h>
#include <treadle/testing/model/loss_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

std::unique_ptr<Loss> distribution(const std::string& name, const nlohmann::json& parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<Loss>(name, parameters);
}

LossCase distribution_case(std::string name, const std::string& component, TargetSpec target,
                           const nlohmann::json& parameters = {}) {
  return {std::move(name), [=] { return distribution(component, parameters); }, std::move(target)};
}

INSTANTIATE_TEST_SUITE_P(
    Distributions, LossContract,
    ::testing::Values(
        distribution_case("Gaussian", "gaussian_nll", LossCase::numbers(1)),
        distribution_case("GaussianOfSteps", "gaussian_nll", LossCase::numbers(2, {kVaries})),
        distribution_case("StudentT", "student_t_nll", LossCase::numbers(2)),
        distribution_case("StudentTOfPixels", "student_t_nll", LossCase::numbers(1, {2, 3})),
        distribution_case("GaussianMixture", "gaussian_mixture_nll", LossCase::numbers(2)),
        distribution_case("GaussianMixtureOfSteps", "gaussian_mixture_nll",
                          LossCase::numbers(1, {kVaries}), {{"components", 2}})),
    CaseName());

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kWidth = 2;

/// As raw() in distribution_reference.py, in one output.
at::Tensor raw_parameters(std::int64_t count) {
  return at::arange(kRows * count * kWidth, at::kDouble)
      .mul(1.3)
      .sin()
      .mul(2)
      .view({kRows, count * kWidth});
}

/// What SciPy has: the mean of -log p, of the mean, of the standard deviation, and of the quantiles
/// 0.1, 0.5 and 0.95.
struct Expected {
  std::string name;
  std::int64_t parameters;
  double nll;
  double mean;
  double deviation;
  std::vector<double> quantiles;
};

class DistributionReference : public ::testing::TestWithParam<Expected> {};

// /usr/bin/python3 plugins/losses/test/distribution_reference.py (SciPy 1.10)
TEST_P(DistributionReference, EqualsSciPy) {
  const Expected& expected = GetParam();
  const auto loss = distribution(expected.name, {{"quantiles", {0.1, 0.5, 0.95}}});
  const at::Tensor counted = at::arange(kRows * kWidth, at::kDouble);
  const at::Tensor targets =
      (expected.name == "negative_binomial_nll" ? counted.mul(7).remainder(11)
                                                : counted.mul(0.4).sin())
          .view({kRows, kWidth});
  const TargetSpec spec = LossCase::numbers(kWidth);
  const at::Tensor outputs = raw_parameters(expected.parameters);
  const Batch batch = batch_of_target(targets);

  const LossTerms terms = loss->forward({outputs}, TargetBatch::transformed(batch, 0, spec));
  const Prediction prediction = loss->prediction({outputs});

  EXPECT_NEAR((terms.sum / terms.weight).item<double>(), expected.nll, 1e-10);
  EXPECT_NEAR(prediction.values.mean().item<double>(), expected.mean, 1e-12);
  const Prediction::Uncertainty uncertainty =
      loss->ask<PredictsUncertainty>()->uncertainty({outputs});
  EXPECT_NEAR(uncertainty.aleatoric.mean().item<double>(), expected.deviation, 1e-12);
  EXPECT_FALSE(uncertainty.epistemic.defined());
  ASSERT_EQ(prediction.extras.size(), 3U);
  EXPECT_EQ(prediction.extras[2].name, "q0.95");
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(prediction.extras[i].values.mean().item<double>(), expected.quantiles[i], 1e-9);
}

INSTANTIATE_TEST_SUITE_P(
    Distributions, DistributionReference,
    ::testing::Values(Expected{"gaussian_nll",
                               2,
                               14.423877704714958,
                               -0.25915965140031944,
                               1.027298112988555,
                               {-1.5756951563818156, -0.25915965140031944, 1.4305953757093086}},
                      Expected{"student_t_nll",
                               3,
                               2.9263452930482647,
                               0.14463418835245773,
                               2.7893549823817403,
                               {-1.46850148620474, 0.14463418835245773, 2.5602629334377394}},
                      Expected{"negative_binomial_nll",
                               2,
                               6.633909191025751,
                               0.7761602679568252,
                               0.9543848289591168,
                               {0.0, 0.5, 2.6}},
                      Expected{"gaussian_mixture_nll",
                               9,
                               3.224137983456199,
                               0.17132334604289573,
                               1.1191337445390916,
                               {-1.1144143336273624, 0.3207200455767708, 1.5860308606714717}}),
    [](const auto& info) { return info.param.name; });

// Counts are no numbers of the contract, so what it asks of a gradient is asked here.
TEST(NegativeBinomial, GradientsEqualFiniteDifferences) {
  const auto loss = distribution("negative_binomial_nll");
  const Batch batch = batch_of_target(at::tensor({0., 3., 1., 12.}, at::kDouble).view({2, 2}));
  const TargetSpec spec = LossCase::numbers(2);
  const auto sum = [&](const at::Tensor& outputs) {
    return loss->forward({outputs}, TargetBatch::transformed(batch, 0, spec)).sum;
  };
  at::Tensor outputs = raw_parameters(2).slice(0, 0, 2).clone().requires_grad_();

  sum(outputs).backward();

  constexpr double kStep = 1e-6;
  const at::Tensor plain = outputs.detach();
  for (std::int64_t i = 0; i < plain.numel(); ++i) {
    at::Tensor above = plain.clone();
    at::Tensor below = plain.clone();
    above.view({-1})[i] += kStep;
    below.view({-1})[i] -= kStep;
    const double difference = (sum(above).item<double>() - sum(below).item<double>()) / (2 * kStep);
    EXPECT_NEAR(outputs.grad().view({-1})[i].item<double>(), difference, 1e-7);
  }
}

TEST(Distributions, AskForEachParameterOfEachNumber) {
  const TargetSpec target = LossCase::numbers(2, {kVaries});

  EXPECT_EQ(distribution("student_t_nll")->outputs_for(target),
            (std::vector<OutputSpec>{
                {"parameters",
                 {kVaries, 6},
                 {Estimate::kLocation, Estimate::kScale, Estimate::kDimensionless}}}));
  EXPECT_EQ(distribution("gaussian_mixture_nll", {{"components", 2}})->outputs_for(target),
            (std::vector<OutputSpec>{
                {"parameters",
                 {kVaries, 12},
                 {Estimate::kDimensionless, Estimate::kDimensionless, Estimate::kLocation,
                  Estimate::kLocation, Estimate::kScale, Estimate::kScale}}}));
  EXPECT_EQ(distribution("negative_binomial_nll")->outputs_for(target)[0].estimates,
            (std::vector<Estimate>{Estimate::kCount, Estimate::kCount}));
}

TEST(Distributions, OfWhatIsNoNumberHaveNoQuantiles) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* const name : {"student_t_nll", "negative_binomial_nll"}) {
    const Prediction prediction =
        distribution(name)->prediction({at::tensor({nan, nan, nan, nan, nan, nan}, at::kDouble)
                                            .slice(0, 0, name[0] == 's' ? 3 : 2)
                                            .view({1, -1})});
    EXPECT_TRUE(prediction.extras[0].values.isnan().all().item<bool>()) << name;
  }
}

}  // namespace
}  // namespace treadle::testing
