#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/testing/model/metric_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

std::unique_ptr<MetricComputer> forecast_metric(const std::string& name, std::int64_t width = 1,
                                                const nlohmann::json& parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  std::unique_ptr<MetricComputer> metric = plugin.make<MetricComputer>(name, parameters);
  metric->start(MetricCase::numbers(width));
  metric->reset();
  return metric;
}

MetricCase forecast_case(std::string name, const std::string& component, TargetSpec target,
                         std::vector<std::string> extras = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  MetricCase one{std::move(name), [=] { return plugin.make<MetricComputer>(component); },
                 std::move(target)};
  one.extras = std::move(extras);
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Forecasts, MetricContract,
    ::testing::Values(forecast_case("Smape", "smape", MetricCase::numbers(1)),
                      forecast_case("SmapeOfSteps", "smape", MetricCase::numbers(2, {kVaries})),
                      forecast_case("Wape", "wape", MetricCase::numbers(2)),
                      forecast_case("WapeOfSteps", "wape", MetricCase::numbers(1, {kVaries})),
                      forecast_case("Mase", "mase", MetricCase::numbers(2)),
                      forecast_case("MaseOfSteps", "mase", MetricCase::numbers(1, {kVaries})),
                      forecast_case("Rmsse", "rmsse", MetricCase::numbers(1)),
                      forecast_case("RmsseOfSteps", "rmsse", MetricCase::numbers(2, {kVaries})),
                      forecast_case("Crps", "crps", MetricCase::numbers(1), {"q0.1", "q0.9"}),
                      forecast_case("IntervalScore", "interval_score", MetricCase::numbers(1),
                                    {"q0.1", "q0.9"}),
                      forecast_case("IntervalScoreOfSteps", "interval_score",
                                    MetricCase::numbers(2, {kVaries}), {"q0.1", "q0.9"})),
    CaseName());

at::Tensor column(std::vector<double> values) {
  return at::tensor(values, at::kDouble).unsqueeze(1);
}

void add(MetricComputer& metric, const Prediction& prediction, const at::Tensor& targets,
         const at::Tensor& weights = {}) {
  Batch batch;
  batch.rows = at::arange(targets.size(0));
  batch.targets = batch.original_targets = {targets};
  batch.weights = weights;
  const TargetSpec spec = MetricCase::numbers(targets.size(1));
  metric.update(prediction, TargetBatch::original(batch, 0, spec));
}

Number value_of(const MetricComputer& metric, const std::string& name) {
  for (const MetricValue& value : metric.compute().values) {
    if (value.name == name)
      return value.value;
  }
  return std::nan("");
}

// By hand: 200 (1/3 + 0/4 + 0 + 4/4) / 4 = 66.67; weights 3, 1, 0, 0: 200 (1/3 * 3) / 4 = 50.
TEST(Smape, EqualsACalculationByHandWithZerosAndWeights) {
  const Prediction prediction{TargetKind::kNumbers, column({1, 2, 0, 4})};
  const at::Tensor targets = column({2, 2, 0, 0});
  const auto plain = forecast_metric("smape");
  const auto weighted = forecast_metric("smape");

  add(*plain, prediction, targets);
  add(*weighted, prediction, targets, at::tensor({3., 1., 0., 0.}, at::kDouble));

  EXPECT_NEAR(value_of(*plain, "smape"), 200 * (1.0 / 3 + 1) / 4, 1e-12);
  EXPECT_NEAR(value_of(*weighted, "smape"), 50, 1e-12);
}

// By hand: (1 + 0 + 4) / (2 + 2 + 0) = 1.25; all targets 0: undefined.
TEST(Wape, EqualsACalculationByHand) {
  const auto metric = forecast_metric("wape");
  add(*metric, {TargetKind::kNumbers, column({1, 2, 4})}, column({2, -2 + 4, 0}));
  EXPECT_NEAR(value_of(*metric, "wape"), 1.25, 1e-12);

  const auto undefined = forecast_metric("wape");
  add(*undefined, {TargetKind::kNumbers, column({1, 2})}, column({0, 0}));
  EXPECT_EQ(value_of(*undefined, "wape").why(), "no target is other than 0");
}

// By hand, a = 0.2: inside 2; below by 1: 2 + 10; above by 0.5: 2 + 5. Their mean is 7.
TEST(IntervalScore, EqualsACalculationByHand) {
  const auto metric = forecast_metric("interval_score");
  Prediction prediction{TargetKind::kNumbers, column({0, 0, 0})};
  prediction.extras = {{"q0.1", column({-1, -1, -1})}, {"q0.9", column({1, 1, 1})}};

  add(*metric, prediction, column({0.5, -2, 1.5}));

  EXPECT_NEAR(value_of(*metric, "interval_score"), 7, 1e-12);
  EXPECT_NEAR(value_of(*metric, "interval_coverage"), 1.0 / 3, 1e-12);
  EXPECT_NEAR(value_of(*metric, "interval_width"), 2, 1e-12);
}

// The closed form for a standard normal distribution (Gneiting & Raftery 2007, equation 21):
// z (2 F(z) - 1) + 2 f(z) - 1 / sqrt(pi). By 199 quantiles to 0.01: the tails are left out.
TEST(Crps, ByManyQuantilesEqualsTheClosedFormOfAGaussian) {
  nlohmann::json levels = nlohmann::json::array();
  Prediction prediction{TargetKind::kNumbers, column({0})};
  std::vector<double> all;
  for (int i = 1; i < 200; ++i)
    all.push_back(i / 200.0);
  const at::Tensor z = at::tensor(all, at::kDouble).mul(2).sub(1).erfinv().mul(std::sqrt(2.0));
  for (std::size_t i = 0; i < all.size(); ++i) {
    levels.push_back(all[i]);
    prediction.extras.push_back(
        {"q" + nlohmann::json(all[i]).dump(), z[static_cast<std::int64_t>(i)].view({1, 1})});
  }
  for (const double y : {0.0, 0.7, -2.5}) {
    const auto metric = forecast_metric("crps", 1, {{"quantiles", levels}});

    add(*metric, prediction, column({y}));

    const double pi = std::acos(-1);
    const double within = std::erf(y / std::sqrt(2.0));  // 2 F(y) - 1
    const double closed =
        y * within + 2 * std::exp(-y * y / 2) / std::sqrt(2 * pi) - 1 / std::sqrt(pi);
    EXPECT_NEAR(value_of(*metric, "crps"), closed, 1e-2) << y;
  }
}

TEST(ForecastMetrics, NameTheQuantileThatIsMissing) {
  const auto metric = forecast_metric("interval_score", 1, {{"lower", 0.05}});
  Prediction prediction{TargetKind::kNumbers, column({0})};
  prediction.extras = {{"q0.1", column({-1})}, {"q0.9", column({1})}};
  try {
    add(*metric, prediction, column({0}));
    ADD_FAILURE() << "there is no such quantile";
  } catch (const DataError& error) {
    EXPECT_STREQ(
        error.what(),
        "metric \"interval_score\" needs the quantile q0.05, but the loss predicts q0.1, "
        "q0.9; state it in the \"quantiles\" of the loss, which is \"quantile\" or that of "
        "a distribution");
  }
}

}  // namespace
}  // namespace treadle::testing
