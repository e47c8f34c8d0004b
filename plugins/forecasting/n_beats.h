#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/layer.h>

#include "forecasters.h"

/// N-BEATS: Oreshkin et al., "N-BEATS: Neural basis expansion analysis for interpretable time
/// series forecasting" (2020).
namespace treadle::forecasting {

/// A stack of blocks over series [B, channels, steps]; each channel by itself, with the same
/// weights. A block computes coefficients θ of a basis for the window and for the forecast:
///
///     h = relu(linear(…relu(linear(x)))),   θ = linear(h)
///     x = x - θ_window · basis_window,      forecast = forecast + θ_forecast · basis_forecast
///
/// It gives what is left of the window; the further output "forecast", [B, channels, outputs ·
/// horizon], is the sum of the forecasts, and of the reference of that size where there is one.
///
/// The rows of a basis, for a window of L steps and a horizon of H, at the time t of step s:
///
/// - generic: a row for each step, 1 there and 0 elsewhere.
/// - trend: t^0 … t^degree, with t = s / L in the window and s / H in the horizon.
/// - seasonality: cos 2πft for f = 0 … harmonics and sin 2πft for f = 1 … harmonics, with
///   t = (s - L) / H in the window and s / H in the horizon.
///
/// Weights "block0_linear0_weight", …, "block0_theta_weight"; shared, all blocks use those of block
/// 0. They begin as those of torch.nn.Linear.
class NBeatsStack final : public Layer, public NamesOutputs {
 public:
  NBeatsStack(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::vector<std::string> output_names() const override { return {"forecast"}; }

 private:
  struct Linear {
    at::Tensor weight;
    at::Tensor bias;
  };
  /// The linear maps of a block; the last gives θ.
  using Block = std::vector<Linear>;

  std::int64_t horizon_;
  std::int64_t outputs_;
  std::int64_t blocks_;
  std::int64_t window_thetas_;
  std::vector<Block> own_;     // one, where they are shared
  at::Tensor window_basis_;    // [θ, steps], undefined: generic
  at::Tensor forecast_basis_;  // [θ, horizon], likewise
};

/// `generic`: stacks of blocks without a structure. `interpretable`: a stack for the trend and one
/// for the seasonality, whose blocks share their weights.
class NBeats final : public Forecaster {
 public:
  explicit NBeats(const Config& config);

 private:
  nlohmann::json do_steps(const Task& task) const override;

  /// The stacks, but for what the task gives.
  std::vector<nlohmann::json> stacks_;
  std::string scale_;
};

}  // namespace treadle::forecasting
