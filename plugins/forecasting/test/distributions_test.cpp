// Networks under losses that estimate more of each number than its value: quantiles, distributions.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <torch/optim/adam.h>

#include <treadle/base/document.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/scale_parameter.h>

#include "test/filled_network.h"

namespace treadle::testing {
namespace {

constexpr std::int64_t kNoisySteps = 12;
constexpr std::int64_t kNoisyHorizon = 3;
constexpr std::int64_t kNoisyChannels = 2;

using Names = std::tuple<const char*, const char*>;

nlohmann::json small_network(const std::string& name) {
  static const nlohmann::json kNetworks = {
      {"dlinear", {{"kernel_size", 5}}},
      {"n_beats", {{"stacks", 2}, {"width", 16}, {"scale", "standard"}, {"revin_affine", true}}},
      {"n_hits", {{"width", 16}, {"scale", "robust"}, {"revin_affine", true}}},
      {"patch_tst",
       {{"patch_len", 4},
        {"stride", 2},
        {"d_model", 8},
        {"num_heads", 2},
        {"dim_feedforward", 8},
        {"num_layers", 1},
        {"dropout", 0}}}};
  nlohmann::json builder = kNetworks.at(name);
  builder["use"] = name;
  return builder;
}

std::unique_ptr<Loss> loss_called(const std::string& name) {
  const auto parameters = Document::from_json({{"quantiles", {0.1, 0.5, 0.9}}});
  return plugin().registry().make<Loss>(name, Config(parameters->value(), "", parameters));
}

const TargetSpec& both_channels() {
  static const TargetSpec target{"next", TargetKind::kNumbers, {kNoisyHorizon, kNoisyChannels}};
  return target;
}

/// Waves with noise.
struct Windows {
  at::Tensor inputs;   // [B, kNoisySteps, kNoisyChannels]
  at::Tensor targets;  // [B, kNoisyHorizon, kNoisyChannels]
};

Windows noisy_windows() {
  const TaskRandom random(11);
  const at::Tensor i = at::arange(120, at::kDouble).unsqueeze(1);
  const at::Tensor channels = at::tensor({0.5, 0.9}, at::kDouble);
  const at::Tensor series =
      (i * channels).sin() * 2 + at::randn({120, kNoisyChannels}, at::kDouble) / 4;
  const at::Tensor both = series.unfold(0, kNoisySteps + kNoisyHorizon, 1).transpose(1, 2);
  return {both.narrow(1, 0, kNoisySteps).contiguous(),
          both.narrow(1, kNoisySteps, kNoisyHorizon).contiguous()};
}

class Distributions : public ::testing::TestWithParam<Names> {
 protected:
  Distributions()
      : loss_(loss_called(std::get<1>(GetParam()))),
        network_(network_of(small_network(std::get<0>(GetParam())), kNoisySteps, kNoisyChannels,
                            loss_->outputs_for(both_channels()).front())) {}

  at::Tensor forecast(const at::Tensor& windows) const { return forecast_of(*network_, windows); }

  at::Tensor mean_loss(const Windows& windows) const {
    Batch batch;
    batch.targets = {windows.targets};
    batch.original_targets = batch.targets;
    batch.rows = at::arange(windows.targets.size(0));
    const auto target = TargetBatch::transformed(batch, 0, both_channels());
    const LossTerms terms = loss_->forward({forecast(windows.inputs)}, target);
    return terms.sum / loss_->weight(target);
  }

  /// The least loss on the way: at this rate it jumps now and then.
  double train(const Windows& windows, int steps) const {
    double least = std::numeric_limits<double>::infinity();
    torch::optim::Adam adam(network_->parameters(), torch::optim::AdamOptions(0.01));
    for (int step = 0; step < steps; ++step) {
      adam.zero_grad();
      const at::Tensor loss = mean_loss(windows);
      loss.backward();
      adam.step();
      least = std::min(least, loss.item<double>());
    }
    return least;
  }

  std::unique_ptr<Loss> loss_;
  std::shared_ptr<graph::Graph> network_;
};

// The noise is a quarter: it bounds what can be known. Of a normal distribution with that deviation
// -log p is 0.03 on average, of the standard normal 1.5 or more; half of that is learned quickly.
TEST_P(Distributions, AreLearned) {
  const Windows windows = noisy_windows();
  const double before = mean_loss(windows).item<double>();

  const double least = train(windows, 150);

  const double bound = std::string(std::get<1>(GetParam())) == "quantile" ? 0.12 : 0.5;
  EXPECT_LT(least, bound) << "from " << before;
  EXPECT_GT(before, 2 * bound);
}

TEST_P(Distributions, FollowTheScaleOfTheSeries) {
  if (std::string(std::get<0>(GetParam())) == "dlinear")
    return;  // does not scale
  const Windows windows = noisy_windows();
  train(windows, 20);
  network_->eval();
  const c10::NoGradGuard no_gradients;
  const auto predicted = [&](double scale, double shift) {
    return loss_->prediction({forecast(windows.inputs * scale + shift)});
  };

  const Prediction here = predicted(1, 0);
  const Prediction there = predicted(1000, 5000);

  // But for "eps", which keeps the scale of a window from being 0.
  const auto expect_moved = [](const at::Tensor& moved, const at::Tensor& from,
                               const std::string& name) {
    EXPECT_TRUE(at::allclose(moved, from * 1000 + 5000, 1e-3, 1)) << name;
  };
  expect_moved(there.values, here.values, "values");
  ASSERT_GE(here.extras.size(), 2U);
  for (std::size_t i = 0; i < here.extras.size(); ++i) {
    expect_moved(there.extras[i].values, here.extras[i].values, here.extras[i].name);
    EXPECT_FALSE(at::allclose(here.extras[i].values, here.extras[(i + 1) % 2].values));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forecasting, Distributions,
    ::testing::Combine(::testing::Values("dlinear", "n_beats", "n_hits", "patch_tst"),
                       ::testing::Values("quantile", "gaussian_nll", "student_t_nll",
                                         "gaussian_mixture_nll")),
    [](const auto& info) {
      return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
    });

// By hand, for a window of shift 5 and scale -2, as affine weights may make it: -2 · 3 + 5, and a
// deviation twice as large.
TEST(WindowUnscale, KeepsDeviationsPositiveAndLogitsAsTheyAre) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 3, 1}, at::kDouble),
                 TensorSpec({TensorSpec::kVaries, 2, 1}, at::kDouble)};
  const auto layer =
      plugin()
          .make<LayerFactory>("window_unscale",
                              {{"estimates", {"dimensionless", "location", "scale"}}})
          ->create(spec);
  const std::vector<at::Tensor> inputs{at::tensor({0.7, 3.0, 0.4}, at::kDouble).view({1, 3, 1}),
                                       at::tensor({5.0, -2.0}, at::kDouble).view({1, 2, 1})};
  LayerContext context;

  const at::Tensor result = layer->forward(inputs, context).flatten();

  EXPECT_DOUBLE_EQ(result[0].item<double>(), 0.7);
  EXPECT_DOUBLE_EQ(result[1].item<double>(), -1);
  EXPECT_NEAR(scale_of(result[2]).item<double>(),
              2 * scale_of(at::tensor(0.4, at::kDouble)).item<double>(), 1e-12);
}

TEST(WindowUnscale, TakesAllStepsOfEachEstimate) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 5, 1}, at::kDouble),
                 TensorSpec({TensorSpec::kVaries, 2, 1}, at::kDouble)};
  try {
    plugin()
        .make<LayerFactory>("window_unscale", {{"estimates", {"location", "scale"}}})
        ->create(spec);
    ADD_FAILURE() << "five steps are not of two estimates";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("all steps of each of 2 estimates"));
  }
}

// Of the steps 0 … 8 a period of 3 repeats 6, 7, 8; as every quantile.
TEST(Seasonal, RepeatsTheSameAsEveryQuantile) {
  const at::Tensor x = at::arange(9, at::kDouble).view({1, 9, 1});
  const auto network =
      network_of({{"use", "seasonal"}, {"period", 3}}, 9, 1,
                 {"quantiles", {4, 2}, {Estimate::kLocation, Estimate::kLocation}});

  EXPECT_TRUE(forecast_of(*network, x)
                  .equal(at::tensor({6, 6, 7, 7, 8, 8, 6, 6}, at::kDouble).view({1, 4, 2})));
  try {
    network_of({{"use", "repeat"}}, 9, 1,
               {"parameters", {4, 2}, {Estimate::kLocation, Estimate::kScale}});
    ADD_FAILURE() << "nothing is known of deviations";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(::testing::HasSubstr("other estimates, too: \"scale\""),
                                    ::testing::HasSubstr("choose a loss of values or quantiles")));
  }
}

}  // namespace
}  // namespace treadle::testing
