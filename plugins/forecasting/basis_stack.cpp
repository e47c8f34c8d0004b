#include "basis_stack.h"

#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/relu.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>

#include "linear_weights.h"

namespace treadle::forecasting {

BasisStack::BasisStack(const LayerSpec& spec, const Structure& structure)
    : outputs_(structure.outputs), blocks_(structure.blocks), pool_(structure.pool_kernel_size) {
  const std::int64_t steps = steps_in(spec);
  if (spec.inputs.size() > 2)
    throw DataError("takes one reference, the forecast of the stack before, got " +
                    std::to_string(spec.inputs.size() - 1));
  if (spec.inputs.size() == 2) {
    const std::vector<std::int64_t>& series = spec.inputs[0].sizes;
    const TensorSpec expected({series[0], series[1], outputs_ * structure.horizon}, spec.dtype);
    if (spec.inputs[1].sizes != expected.sizes)
      throw DataError("adds to a forecast " + expected.text() + ", got " + spec.inputs[1].text());
  }
  const Basis& basis = structure.basis;
  window_thetas_ = basis.window.defined() ? basis.window.size(0) : steps;
  const std::int64_t forecast_thetas =
      basis.forecast.defined() ? basis.forecast.size(0) : structure.horizon;
  if (basis.window.defined())
    window_basis_ = register_buffer("window_basis", basis.window.to(spec.dtype));
  if (basis.forecast.defined())
    forecast_basis_ = register_buffer("forecast_basis", basis.forecast.to(spec.dtype));
  const std::int64_t own = structure.shares_weights ? 1 : blocks_;
  for (std::int64_t b = 0; b < own; ++b) {
    const std::string block = "block" + std::to_string(b);
    std::int64_t in = (steps + pool_ - 1) / pool_;
    own_.emplace_back();
    for (std::int64_t i = 0; i <= structure.num_layers; ++i) {
      const bool is_last = i == structure.num_layers;
      const std::string name = block + (is_last ? "_theta" : "_linear" + std::to_string(i));
      const std::int64_t out =
          is_last ? window_thetas_ + outputs_ * forecast_thetas : structure.width;
      Linear linear;
      linear.weight = register_parameter(name + "_weight", linear_weight(out, in, spec.dtype));
      linear.bias = register_parameter(name + "_bias", linear_bias(out, in, spec.dtype));
      own_.back().push_back(std::move(linear));
      in = out;
    }
  }
}

std::int64_t BasisStack::steps_in(const LayerSpec& spec) {
  const TensorSpec& series = spec.inputs.at(0);
  if (series.sizes.size() != 3 || series.sizes[2] == TensorSpec::kVaries)
    throw DataError("takes series [B, channels, steps] of one length, got " + series.text());
  return series.sizes[2];
}

at::Tensor BasisStack::do_level(const at::Tensor&) const {
  return {};
}

// As if the series were reversed and pooled with ceil_mode.
at::Tensor BasisStack::pooled(const at::Tensor& series) const {
  if (pool_ == 1)
    return series;
  const std::int64_t missing = (pool_ - series.size(-1) % pool_) % pool_;
  return at::max_pool1d(
      missing == 0
          ? series
          : at::constant_pad_nd(series, {missing, 0}, -std::numeric_limits<double>::infinity()),
      {pool_});
}

at::Tensor BasisStack::forward(const Inputs& inputs, LayerContext& context) {
  at::Tensor left = inputs[0];
  at::Tensor forecast = inputs.size() == 2 ? inputs[1] : do_level(left);
  for (std::int64_t b = 0; b < blocks_; ++b) {
    const Block& block = own_.size() == 1 ? own_.front() : own_[static_cast<std::size_t>(b)];
    at::Tensor hidden = pooled(left);
    for (std::size_t i = 0; i + 1 < block.size(); ++i)
      hidden = at::relu(linear_in_precision(hidden, block[i].weight, block[i].bias));
    const at::Tensor thetas = linear_in_precision(hidden, block.back().weight, block.back().bias);
    const at::Tensor of_window = thetas.narrow(-1, 0, window_thetas_);
    left = left - (window_basis_.defined() ? at::matmul(of_window, window_basis_) : of_window);
    at::Tensor part = thetas.narrow(-1, window_thetas_, thetas.size(-1) - window_thetas_);
    if (forecast_basis_.defined()) {
      part = at::matmul(part.unflatten(-1, {outputs_, forecast_basis_.size(0)}), forecast_basis_)
                 .flatten(-2);
    }
    forecast = forecast.defined() ? forecast + part : part;
  }
  if (context.is_requested("forecast"))
    context.set_output("forecast", forecast.contiguous());
  return left;
}

// --- The network

StackedForecaster::StackedForecaster(const Config& config)
    : Forecaster(config),
      scale_(config.find<std::string>("scale").value_or("")),
      revin_affine_(config.get<bool>("revin_affine")) {
  if (revin_affine_ && scale_.empty()) {
    config.fail("revin_affine",
                "weighs windows that are scaled, and these are not; set \"scale\": \"standard\"");
  }
}

nlohmann::json StackedForecaster::do_steps(const Task& task) const {
  nlohmann::json steps = nlohmann::json::array();
  if (!scale_.empty())
    steps.push_back(window_scale(scale_, revin_affine_));
  steps.push_back("transpose");
  std::string forecast;
  int number = 0;
  for (nlohmann::json& step : do_stacks(task)) {
    step["name"] = "stacks." + std::to_string(number);
    if (number > 0)
      step["using"] = {forecast};
    forecast = "forecast" + std::to_string(number++);
    step["tag"] = {{"forecast", forecast}};
    steps.push_back(std::move(step));
  }
  steps.push_back({{"use", "at"}, {"tags", {forecast}}});
  steps.push_back("transpose");
  if (!scale_.empty())
    steps.push_back(window_unscale(task));
  return steps;
}

}  // namespace treadle::forecasting
