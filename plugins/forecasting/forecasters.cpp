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
  const std::vector<std::int64_t>& output = spec.outputs[0].shape;
  if (output.size() > 2 || output.front() == kVaries) {
    throw DataError(
        "computes [horizon, numbers] for each window, and the loss requires other "
        "dimensions: " +
        std::to_string(output.size()));
  }
  const std::int64_t horizon = output.size() == 2 ? output[0] : 1;
  const std::int64_t width = output.back();
  const std::int64_t channels = windows.width();
  if (channel_ + width > channels) {
    throw DataError(
        "forecasts channels of its input: the loss requires " + std::to_string(width) +
        " numbers a step, and there are " + std::to_string(channels) +
        " channels from 0, of which " + "the first is channel " + std::to_string(channel_) +
        "; make the targets' columns inputs as well, and choose a loss of one number per number");
  }
  json steps = do_steps(horizon);
  if (width != channels)
    steps.push_back({{"use", "narrow"}, {"dim", 2}, {"start", channel_}, {"length", width}});
  if (output.size() == 1)
    steps.push_back({{"use", "unflatten"}, {"shape", {width}}});
  return steps;
}

json Repeat::do_steps(std::int64_t horizon) const {
  return json::array({{{"use", "repeat_period"}, {"period", 1}, {"horizon", horizon}}});
}

json Seasonal::do_steps(std::int64_t horizon) const {
  return json::array({{{"use", "repeat_period"}, {"period", period_}, {"horizon", horizon}}});
}

json Linear::do_steps(std::int64_t horizon) const {
  json steps = json::array();
  add_map(steps, "linear", horizon);
  return steps;
}

json NLinear::do_steps(std::int64_t horizon) const {
  json steps =
      json::array({{{"use", "window_scale"}, {"method", "last"}, {"tag", {{"scale", "window"}}}}});
  add_map(steps, "linear", horizon);
  steps.push_back({{"use", "window_unscale"}, {"using", {"window"}}});
  return steps;
}

json DLinear::do_steps(std::int64_t horizon) const {
  json steps = json::array(
      {{{"use", "series_decomposition"}, {"kernel_size", kernel_}, {"tag", {{"trend", "trend"}}}}});
  add_map(steps, "linear_seasonal", horizon);
  steps.back() = {{"use", "transpose"}, {"tag", "seasonal"}};
  steps.push_back({{"use", "at"}, {"tags", {"trend"}}});
  add_map(steps, "linear_trend", horizon);
  steps.back() = {{"use", "transpose"}, {"tag", "level"}};
  steps.push_back({{"use", "at"}, {"tags", {"seasonal", "level"}}});
  steps.push_back({{"use", "merge"}, {"with", "add"}});
  return steps;
}

}  // namespace treadle::forecasting
