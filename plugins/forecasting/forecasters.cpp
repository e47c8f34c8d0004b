#include "forecasters.h"

#include <utility>

#include <treadle/base/error.h>

namespace treadle::forecasting {
namespace {

using json = nlohmann::json;

/// Along the steps: channels last, before and after.
void add_map(json& steps, const std::string& name, std::int64_t horizon) {
  steps.push_back("transpose");
  steps.push_back({{"use", "dense"}, {"out_features", horizon}, {"name", name}});
  steps.push_back("transpose");
}

}  // namespace

Forecaster::Forecaster(const Config& config)
    : channel_(config.get<std::int64_t>("channel")),
      outputs_per_number_(config.find<std::int64_t>("outputs_per_number").value_or(1)) {}

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
  const std::vector<std::int64_t>& output = spec.outputs[0].shape;
  if (output.size() > 2 || output.front() == kVaries) {
    throw DataError(
        "computes [horizon, numbers] for each window, and the loss requires other "
        "dimensions: " +
        std::to_string(output.size()));
  }
  const std::int64_t horizon = output.size() == 2 ? output[0] : 1;
  const std::int64_t width = output.back();
  if (width % outputs_per_number_ != 0) {
    throw DataError("computes " + std::to_string(outputs_per_number_) +
                    " outputs for each number (\"outputs_per_number\"), and the loss requires " +
                    std::to_string(width) + " a step, which is no multiple");
  }
  const std::int64_t numbers = width / outputs_per_number_;
  const std::int64_t channels = windows.width();
  if (channel_ + numbers > channels) {
    throw DataError("forecasts channels of its input: the loss requires " +
                    std::to_string(numbers) + " numbers a step, and there are " +
                    std::to_string(channels) + " channels from 0, of which " +
                    "the first is channel " + std::to_string(channel_) +
                    "; make the targets' columns inputs as well, and choose a loss of as many "
                    "outputs per number "
                    "as the network has");
  }
  json steps = do_steps({windows.sizes[1], horizon * outputs_per_number_, outputs_per_number_});
  if (numbers != channels)
    steps.push_back({{"use", "narrow"}, {"dim", 2}, {"start", channel_}, {"length", numbers}});
  if (outputs_per_number_ > 1) {
    // [B, outputs, horizon, numbers] to [B, horizon, outputs · numbers].
    steps.push_back({{"use", "unflatten"}, {"shape", {outputs_per_number_, horizon, numbers}}});
    steps.push_back("transpose");
    steps.push_back({{"use", "flatten"}, {"start_dim", 2}});
  }
  if (output.size() == 1)
    steps.push_back({{"use", "unflatten"}, {"shape", {width}}});
  return steps;
}

json Repeat::do_steps(const Task& task) const {
  return json::array({{{"use", "repeat_period"}, {"period", 1}, {"horizon", task.horizon}}});
}

json Seasonal::do_steps(const Task& task) const {
  return json::array({{{"use", "repeat_period"}, {"period", period_}, {"horizon", task.horizon}}});
}

json Linear::do_steps(const Task& task) const {
  json steps = json::array();
  add_map(steps, "linear", task.horizon);
  return steps;
}

json NLinear::do_steps(const Task& task) const {
  json steps =
      json::array({{{"use", "window_scale"}, {"method", "last"}, {"tag", {{"scale", "window"}}}}});
  add_map(steps, "linear", task.horizon);
  steps.push_back({{"use", "window_unscale"}, {"using", {"window"}}});
  return steps;
}

json DLinear::do_steps(const Task& task) const {
  json steps = json::array(
      {{{"use", "series_decomposition"}, {"kernel_size", kernel_}, {"tag", {{"trend", "trend"}}}}});
  add_map(steps, "linear_seasonal", task.horizon);
  steps.back() = {{"use", "transpose"}, {"tag", "seasonal"}};
  steps.push_back({{"use", "at"}, {"tags", {"trend"}}});
  add_map(steps, "linear_trend", task.horizon);
  steps.back() = {{"use", "transpose"}, {"tag", "level"}};
  steps.push_back({{"use", "at"}, {"tags", {"seasonal", "level"}}});
  steps.push_back({{"use", "merge"}, {"with", "add"}});
  return steps;
}

}  // namespace treadle::forecasting
