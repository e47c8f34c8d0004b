#include "n_beats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/linear.h>

#include "linear_weights.h"

namespace treadle::forecasting {
namespace {

/// Values of its functions, [functions, steps], float64; undefined for a generic one.
struct Basis {
  at::Tensor window;
  at::Tensor forecast;
};

at::Tensor powers(const at::Tensor& t, std::int64_t degree) {
  return t.unsqueeze(0).pow(at::arange(degree + 1, at::kDouble).unsqueeze(1));
}

at::Tensor waves(const at::Tensor& t, std::int64_t harmonics) {
  const at::Tensor angles =
      at::arange(harmonics + 1, at::kDouble).unsqueeze(1) * (2 * std::numbers::pi) * t;
  return at::cat({angles.cos(), angles.narrow(0, 1, harmonics).sin()});
}

/// Frequencies below half of the horizon's steps, as in the paper.
std::int64_t harmonics_of(const Config& config, std::int64_t horizon) {
  return config.find<std::int64_t>("harmonics")
      .value_or(std::max<std::int64_t>(horizon / 2 - 1, 1));
}

using MakesBasis = Basis (*)(const Config& config, std::int64_t steps, std::int64_t horizon);

MakesBasis basis_called(const std::string& name) {
  struct Entry {
    std::string_view name;
    MakesBasis make;
  };
  static constexpr std::array kBases = {
      Entry{"generic", [](const Config&, std::int64_t, std::int64_t) { return Basis(); }},
      Entry{"trend",
            [](const Config& config, std::int64_t steps, std::int64_t horizon) {
              const auto degree = config.get<std::int64_t>("degree");
              return Basis{powers(at::arange(steps, at::kDouble) / steps, degree),
                           powers(at::arange(horizon, at::kDouble) / horizon, degree)};
            }},
      Entry{"seasonality", [](const Config& config, std::int64_t steps, std::int64_t horizon) {
              const std::int64_t harmonics = harmonics_of(config, horizon);
              return Basis{waves(at::arange(-steps, 0, at::kDouble) / horizon, harmonics),
                           waves(at::arange(horizon, at::kDouble) / horizon, harmonics)};
            }}};
  const auto* const found = std::find_if(kBases.begin(), kBases.end(),
                                         [&](const Entry& entry) { return entry.name == name; });
  TREADLE_EXPECTS(found != kBases.end(), "the schema lists the bases");
  return found->make;
}

}  // namespace

NBeatsStack::NBeatsStack(const Config& config, const LayerSpec& spec)
    : horizon_(config.get<std::int64_t>("horizon")),
      outputs_(config.get<std::int64_t>("outputs")),
      blocks_(config.get<std::int64_t>("blocks")) {
  const TensorSpec& series = spec.inputs.at(0);
  if (series.sizes.size() != 3 || series.width() == TensorSpec::kVaries)
    throw DataError("takes series [B, channels, steps] of one length, got " + series.text());
  if (spec.inputs.size() > 2)
    throw DataError("takes one reference, the forecast of the stack before, got " +
                    std::to_string(spec.inputs.size() - 1));
  if (spec.inputs.size() == 2) {
    const TensorSpec expected({series.sizes[0], series.sizes[1], outputs_ * horizon_}, spec.dtype);
    if (spec.inputs[1].sizes != expected.sizes)
      throw DataError("adds to a forecast " + expected.text() + ", got " + spec.inputs[1].text());
  }
  const std::int64_t steps = series.width();
  const Basis basis = basis_called(config.get<std::string>("basis"))(config, steps, horizon_);
  window_thetas_ = basis.window.defined() ? basis.window.size(0) : steps;
  const std::int64_t forecast_thetas = basis.forecast.defined() ? basis.forecast.size(0) : horizon_;
  if (basis.window.defined()) {
    window_basis_ = register_buffer("window_basis", basis.window.to(spec.dtype));
    forecast_basis_ = register_buffer("forecast_basis", basis.forecast.to(spec.dtype));
  }
  const auto width = config.get<std::int64_t>("width");
  const auto layers = config.get<std::int64_t>("num_layers");
  const std::int64_t own = config.get<bool>("share_weights") ? 1 : blocks_;
  for (std::int64_t b = 0; b < own; ++b) {
    const std::string block = "block" + std::to_string(b);
    std::int64_t in = steps;
    own_.emplace_back();
    for (std::int64_t i = 0; i <= layers; ++i) {
      const bool is_last = i == layers;
      const std::string name = block + (is_last ? "_theta" : "_linear" + std::to_string(i));
      const std::int64_t out = is_last ? window_thetas_ + outputs_ * forecast_thetas : width;
      Linear linear;
      linear.weight = register_parameter(name + "_weight", linear_weight(out, in, spec.dtype));
      linear.bias = register_parameter(name + "_bias", linear_bias(out, in, spec.dtype));
      own_.back().push_back(std::move(linear));
      in = out;
    }
  }
}

at::Tensor NBeatsStack::forward(const Inputs& inputs, LayerContext& context) {
  at::Tensor left = inputs[0];
  at::Tensor forecast = inputs.size() == 2 ? inputs[1] : at::Tensor();
  for (std::int64_t b = 0; b < blocks_; ++b) {
    const Block& block = own_.size() == 1 ? own_.front() : own_[static_cast<std::size_t>(b)];
    at::Tensor hidden = left;
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

NBeats::NBeats(const Config& config)
    : Forecaster(config), scale_(config.find<std::string>("scale").value_or("")) {
  const auto layers = config.get<std::int64_t>("num_layers");
  const auto stack = [&](const char* basis, std::int64_t blocks, std::int64_t width,
                         bool share_weights) {
    return nlohmann::json{{"use", "n_beats_stack"},
                          {"basis", basis},
                          {"blocks", blocks},
                          {"width", width},
                          {"share_weights", share_weights},
                          {"num_layers", layers}};
  };
  if (config.get<std::string>("kind") == "generic") {
    stacks_.assign(config.get<std::size_t>("stacks"),
                   stack("generic", config.find<std::int64_t>("blocks").value_or(1),
                         config.get<std::int64_t>("width"), false));
    return;
  }
  const std::int64_t blocks = config.find<std::int64_t>("blocks").value_or(3);
  stacks_ = {stack("trend", blocks, config.get<std::int64_t>("trend_width"), true),
             stack("seasonality", blocks, config.get<std::int64_t>("seasonality_width"), true)};
  stacks_[0]["degree"] = config.get<std::int64_t>("degree");
  if (const auto harmonics = config.find<std::int64_t>("harmonics"))
    stacks_[1]["harmonics"] = *harmonics;
}

nlohmann::json NBeats::do_steps(const Task& task) const {
  nlohmann::json steps = nlohmann::json::array();
  if (!scale_.empty())
    steps.push_back({{"use", "window_scale"}, {"method", scale_}, {"tag", {{"scale", "window"}}}});
  steps.push_back("transpose");
  for (std::size_t i = 0; i < stacks_.size(); ++i) {
    nlohmann::json step = stacks_[i];
    step["name"] = "stacks." + std::to_string(i);
    step["horizon"] = task.horizon / task.outputs;
    step["outputs"] = task.outputs;
    if (i > 0)
      step["using"] = {"forecast" + std::to_string(i - 1)};
    step["tag"] = {{"forecast", "forecast" + std::to_string(i)}};
    steps.push_back(std::move(step));
  }
  steps.push_back({{"use", "at"}, {"tags", {"forecast" + std::to_string(stacks_.size() - 1)}}});
  steps.push_back("transpose");
  if (!scale_.empty())
    steps.push_back({{"use", "window_unscale"}, {"using", {"window"}}});
  return steps;
}

}  // namespace treadle::forecasting
