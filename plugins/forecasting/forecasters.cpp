#include "forecasters.h"

#include <algorithm>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/data/data_spec.h>

#include "estimates.h"

namespace treadle::forecasting {
namespace {

using json = nlohmann::json;

/// Along the steps: channels last, before and after.
void add_map(json& steps, const std::string& name, std::int64_t rows) {
  steps.push_back("transpose");
  steps.push_back({{"use", "dense"}, {"out_features", rows}, {"name", name}});
  steps.push_back("transpose");
}

/// The same for all quantiles.
json repeated(std::int64_t horizon, const std::vector<Estimate>& estimates, std::int64_t period) {
  for (const Estimate estimate : estimates) {
    if (estimate != Estimate::kLocation) {
      throw DataError(
          "repeats values of the window, and the loss requires other estimates, too: \"" +
          name_of(estimate) + "\"; choose a loss of values or quantiles: mse, quantile");
    }
  }
  json steps = json::array({{{"use", "repeat_period"}, {"period", period}, {"horizon", horizon}}});
  if (estimates.size() > 1) {
    const auto count = static_cast<std::int64_t>(estimates.size());
    steps.push_back({{"use", "repeat_period"}, {"period", horizon}, {"horizon", count * horizon}});
  }
  return steps;
}

}  // namespace

Forecaster::Forecaster(const Config& config) : channel_(config.get<std::int64_t>("channel")) {}

Forecaster::~Forecaster() = default;

json Forecaster::do_build(const LayerSpec& spec) const {
  const TensorSpec& windows = spec.inputs.front();
  if (spec.inputs.size() != 1 || windows.sizes.size() != 3 ||
      windows.sizes[1] == TensorSpec::kVaries)
    throw DataError("takes windows [B, steps, channels] of one length, got " + windows.text());
  if (spec.outputs.size() != 1) {
    throw DataError("computes one output, and the losses require " +
                    std::to_string(spec.outputs.size()));
  }
  const OutputSpec& required = spec.outputs[0];
  const std::vector<std::int64_t>& output = required.shape;
  if (output.size() > 2 || output.front() == kVaries) {
    throw DataError(
        "computes [horizon, numbers] for each window, and the loss requires other "
        "dimensions: " +
        std::to_string(output.size()));
  }
  if (required.estimates.empty()) {
    throw DataError("forecasts numbers, and the loss's output \"" + required.name +
                    "\" has no estimates of numbers; choose a loss of numbers: mse, quantile or "
                    "gaussian_nll");
  }
  const std::int64_t horizon = output.size() == 2 ? output[0] : 1;
  const std::int64_t width = output.back();
  const auto estimates = static_cast<std::int64_t>(required.estimates.size());
  if (width % estimates != 0) {
    throw DataError("computes " + std::to_string(estimates) +
                    " estimates of each number, and the loss's output \"" + required.name +
                    "\" has " + std::to_string(width) + " a step, which is no multiple");
  }
  const std::int64_t numbers = width / estimates;
  const std::int64_t channels = windows.width();
  if (channel_ + numbers > channels) {
    throw DataError("forecasts channels of its input: the target has " + std::to_string(numbers) +
                    " numbers a step, and there are " + std::to_string(channels) +
                    " channels from 0, of which the first is channel " + std::to_string(channel_) +
                    "; make the targets' columns inputs as well");
  }
  json steps = do_steps({windows.sizes[1], horizon, required.estimates});
  if (numbers != channels)
    steps.push_back({{"use", "narrow"}, {"dim", 2}, {"start", channel_}, {"length", numbers}});
  if (estimates > 1) {
    // [B, estimates, horizon, numbers] to [B, horizon, estimates · numbers].
    steps.push_back({{"use", "unflatten"}, {"shape", {estimates, horizon, numbers}}});
    steps.push_back("transpose");
    steps.push_back({{"use", "flatten"}, {"start_dim", 2}});
  }
  if (output.size() == 1)
    steps.push_back({{"use", "unflatten"}, {"shape", {width}}});
  return steps;
}

json Forecaster::window_scale(const std::string& method, bool affine) {
  json step = {{"use", "window_scale"}, {"method", method}, {"tag", {{"scale", "window"}}}};
  if (affine)
    step.update({{"affine", true}, {"name", "revin"}});
  return step;
}

json Forecaster::window_unscale(const Task& task) {
  const std::vector<Estimate>& all = task.estimates;
  if (std::find(all.begin(), all.end(), Estimate::kCount) != all.end()) {
    throw DataError(
        "scales windows, and the loss is of counts, whose distribution cannot be scaled back; "
        "choose gaussian_nll or quantile, or a network that does not scale: dlinear, "
        "gru_forecaster, n_beats or n_hits without \"scale\"");
  }
  json step = {{"use", "window_unscale"}, {"using", {"window"}}};
  if (all.size() > 1 || all.front() != Estimate::kLocation)
    step["estimates"] = names_of(all);
  return step;
}

json Repeat::do_steps(const Task& task) const {
  return repeated(task.horizon, task.estimates, 1);
}

json Seasonal::do_steps(const Task& task) const {
  return repeated(task.horizon, task.estimates, period_);
}

json Linear::do_steps(const Task& task) const {
  json steps = json::array();
  add_map(steps, "linear", task.rows());
  return steps;
}

json NLinear::do_steps(const Task& task) const {
  json steps = json::array({window_scale("last")});
  add_map(steps, "linear", task.rows());
  steps.push_back(window_unscale(task));
  return steps;
}

json DLinear::do_steps(const Task& task) const {
  json steps = json::array(
      {{{"use", "series_decomposition"}, {"kernel_size", kernel_}, {"tag", {{"trend", "trend"}}}}});
  add_map(steps, "linear_seasonal", task.rows());
  steps.back() = {{"use", "transpose"}, {"tag", "seasonal"}};
  steps.push_back({{"use", "at"}, {"tags", {"trend"}}});
  add_map(steps, "linear_trend", task.rows());
  steps.back() = {{"use", "transpose"}, {"tag", "level"}};
  steps.push_back({{"use", "at"}, {"tags", {"seasonal", "level"}}});
  steps.push_back({{"use", "merge"}, {"with", "add"}});
  return steps;
}

}  // namespace treadle::forecasting
