#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/core/model/layer.h>

#include "forecasters.h"

/// What N-BEATS and N-HiTS share: stacks of blocks that compute coefficients of a basis.
namespace treadle::forecasting {

/// The functions that coefficients multiply, [functions, steps], float64. Undefined: a function for
/// each step, 1 there and 0 elsewhere.
struct Basis {
  at::Tensor window;
  at::Tensor forecast;
};

/// A stack of blocks over series [B, channels, steps]; each channel by itself, with the same
/// weights. A block computes coefficients θ of a basis for the window and for the forecast:
///
///     h = relu(linear(…relu(linear(max_pool(x))))),   θ = linear(h)
///     x = x - θ_window · basis_window,      forecast = forecast + θ_forecast · basis_forecast
///
/// It gives what is left of the window; the further output "forecast", [B, channels, outputs ·
/// horizon], is the sum of the forecasts, and of the reference of that size where there is one.
///
/// Pools do not overlap, and the last one ends with the window: where their size does not divide
/// the window, the first has fewer steps.
///
/// Weights "block0_linear0_weight", …, "block0_theta_weight"; shared, all blocks use those of block
/// 0. They begin as those of torch.nn.Linear.
class BasisStack : public Layer, public NamesOutputs {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::vector<std::string> output_names() const override { return {"forecast"}; }

 protected:
  struct Structure {
    std::int64_t horizon;
    std::int64_t outputs;
    std::int64_t blocks;
    std::int64_t num_layers;
    std::int64_t width;
    Basis basis;
    std::int64_t pool_kernel_size = 1;
    bool shares_weights = false;
  };

  BasisStack(const LayerSpec& spec, const Structure& structure);

  /// Steps of the series. Throws a DataError for other inputs.
  static std::int64_t steps_in(const LayerSpec& spec);

 private:
  struct Linear {
    at::Tensor weight;
    at::Tensor bias;
  };
  /// The linear maps of a block; the last gives θ.
  using Block = std::vector<Linear>;

  /// The forecast in front of the first block of the first stack; undefined: 0.
  virtual at::Tensor do_level(const at::Tensor& series) const;
  at::Tensor pooled(const at::Tensor& series) const;

  std::int64_t outputs_;
  std::int64_t blocks_;
  std::int64_t pool_;
  std::int64_t window_thetas_;
  std::vector<Block> own_;     // one, where they are shared
  at::Tensor window_basis_;    // [θ, steps]
  at::Tensor forecast_basis_;  // [θ, horizon]
};

/// A network of such stacks, one behind the other. "scale": windows are scaled, and forecasts back;
/// "revin_affine": with learned weights.
class StackedForecaster : public Forecaster {
 protected:
  explicit StackedForecaster(const Config& config);

 private:
  nlohmann::json do_steps(const Task& task) const final;
  /// A step for each of the stacks, without its name, tags and references.
  virtual std::vector<nlohmann::json> do_stacks(const Task& task) const = 0;

  std::string scale_;
  bool revin_affine_;
};

}  // namespace treadle::forecasting
