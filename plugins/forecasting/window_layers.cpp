#include "window_layers.h"

#include <algorithm>
#include <array>

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/quantile.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/var.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/core/training/scale_parameter.h>

#include "estimates.h"

namespace treadle::forecasting {
namespace {

/// The stream, which is windows.
const TensorSpec& windows_in(const LayerSpec& spec) {
  const TensorSpec& windows = spec.inputs.at(0);
  if (windows.sizes.size() != 3)
    throw DataError("takes windows [B, steps, channels], got " + windows.text());
  return windows;
}

void expect_only_windows(const LayerSpec& spec) {
  windows_in(spec);
  if (spec.inputs.size() != 1)
    throw DataError("takes one input, got " + std::to_string(spec.inputs.size()));
}

/// A forecast in the units of its window.
at::Tensor unscaled(Estimate estimate, const at::Tensor& x, const at::Tensor& shift,
                    const at::Tensor& scale) {
  switch (estimate) {
    case Estimate::kLocation:
      return x * scale + shift;
    case Estimate::kScale:
      return output_for_scale(scale_of(x) * scale.abs());
    case Estimate::kDimensionless:
      return x;
    case Estimate::kCount:
      break;  // the schema does not have it
  }
  return x;
}

}  // namespace

WindowScale::Method WindowScale::method_called(const std::string& name) {
  struct Entry {
    std::string_view name;
    Method method;
  };
  static constexpr std::array kMethods = {
      Entry{"last",
            [](const at::Tensor& windows, double) {
              return Numbers{windows.narrow(1, windows.size(1) - 1, 1), {}};
            }},
      Entry{"standard",
            [](const at::Tensor& windows, double eps) {
              return Numbers{windows.mean({1}, true),
                             (at::var(windows, {1}, /*unbiased=*/false, true) + eps).sqrt()};
            }},
      Entry{"robust",
            [](const at::Tensor& windows, double eps) {
              const at::Tensor quartiles =
                  at::quantile(windows, at::tensor({0.25, 0.5, 0.75}, windows.options()), 1, true);
              return Numbers{quartiles[1], quartiles[2] - quartiles[0] + eps};
            }},
      Entry{"min_max", [](const at::Tensor& windows, double eps) {
              const at::Tensor least = windows.amin({1}, true);
              return Numbers{least, windows.amax({1}, true) - least + eps};
            }}};
  const auto* const found = std::find_if(kMethods.begin(), kMethods.end(),
                                         [&](const Entry& entry) { return entry.name == name; });
  TREADLE_EXPECTS(found != kMethods.end(), "the schema lists the methods");
  return found->method;
}

WindowScale::WindowScale(const Config& config, const LayerSpec& spec)
    : method_(method_called(config.get<std::string>("method"))), eps_(config.get<double>("eps")) {
  expect_only_windows(spec);
  if (!config.get<bool>("affine"))
    return;
  const std::int64_t channels = windows_in(spec).sizes[2];
  if (channels == TensorSpec::kVaries)
    throw DataError(
        "has a weight for each channel (\"affine\"), so their number must be known, got " +
        windows_in(spec).text());
  weight_ = register_parameter("weight", at::ones({channels}, spec.dtype));
  bias_ = register_parameter("bias", at::zeros({channels}, spec.dtype));
}

at::Tensor WindowScale::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& windows = inputs[0];
  const Numbers numbers = method_(windows, eps_);
  if (context.is_requested("scale")) {
    at::Tensor shift = numbers.shift;
    at::Tensor scale = numbers.scale.defined() ? numbers.scale : at::ones_like(shift);
    if (weight_.defined()) {
      scale = scale / (weight_ + eps_ * eps_);
      shift = shift - bias_ * scale;
    }
    context.set_output("scale", at::cat({shift, scale}, 1));
  }
  const at::Tensor centred = windows - numbers.shift;
  const at::Tensor scaled = numbers.scale.defined() ? centred / numbers.scale : centred;
  return weight_.defined() ? scaled * weight_ + bias_ : scaled;
}

WindowUnscale::WindowUnscale(const Config& config, const LayerSpec& spec)
    : estimates_(estimates_in(config)) {
  const TensorSpec& windows = windows_in(spec);
  if (spec.inputs.size() != 2) {
    throw DataError(
        "takes the output \"scale\" of a window_scale beside its input: tag it there, {\"scale\": "
        "\"window\"}, and name it here, \"using\": [\"window\"]");
  }
  const TensorSpec& scale = spec.inputs[1];
  if (scale.sizes.size() != 3 || scale.sizes[1] != 2 || scale.sizes[2] != windows.sizes[2]) {
    throw DataError("takes a scale [B, 2, " + std::to_string(windows.sizes[2]) + "] for " +
                    windows.text() + ", got " + scale.text() +
                    "; take channels out behind window_unscale");
  }
  const auto estimates = static_cast<std::int64_t>(estimates_.size());
  if (windows.sizes[1] != TensorSpec::kVaries && windows.sizes[1] % estimates != 0) {
    throw DataError("takes all steps of each of " + std::to_string(estimates) +
                    " estimates (\"estimates\"), got " + windows.text());
  }
}

at::Tensor WindowUnscale::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor shift = inputs[1].narrow(1, 0, 1);
  const at::Tensor scale = inputs[1].narrow(1, 1, 1);
  const std::int64_t steps = inputs[0].size(1) / static_cast<std::int64_t>(estimates_.size());
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (auto first = estimates_.begin(); first != estimates_.end();) {
    const auto end = std::find_if(first, estimates_.end(),
                                  [&](Estimate estimate) { return estimate != *first; });
    const std::int64_t length = steps * (end - first);
    parts.push_back(unscaled(*first, inputs[0].narrow(1, begin, length), shift, scale));
    begin += length;
    first = end;
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 1);
}

SeriesDecomposition::SeriesDecomposition(const Config& config, const LayerSpec& spec)
    : kernel_(config.get<std::int64_t>("kernel_size")) {
  expect_only_windows(spec);
  if (kernel_ % 2 == 0)
    config.fail("kernel_size", "must be odd: the average is centred");
}

at::Tensor SeriesDecomposition::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& windows = inputs[0];
  const std::int64_t beyond = (kernel_ - 1) / 2;
  const at::Tensor first = windows.narrow(1, 0, 1).expand({-1, beyond, -1});
  const at::Tensor last = windows.narrow(1, windows.size(1) - 1, 1).expand({-1, beyond, -1});
  const at::Tensor padded = beyond > 0 ? at::cat({first, windows, last}, 1) : windows;
  const at::Tensor trend = at::avg_pool1d(padded.transpose(1, 2), {kernel_}, {1}).transpose(1, 2);
  if (context.is_requested("trend"))
    context.set_output("trend", trend.contiguous());
  return windows - trend;
}

RepeatPeriod::RepeatPeriod(const Config& config, const LayerSpec& spec)
    : period_(config.get<std::int64_t>("period")), horizon_(config.get<std::int64_t>("horizon")) {
  expect_only_windows(spec);
  const std::int64_t steps = windows_in(spec).sizes[1];
  if (steps != TensorSpec::kVaries && steps < period_) {
    throw DataError("repeats the last " + std::to_string(period_) +
                    " steps (\"period\") of windows that have " + std::to_string(steps) +
                    "; make the lookback longer");
  }
}

at::Tensor RepeatPeriod::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& windows = inputs[0];
  const at::Tensor last = windows.narrow(1, windows.size(1) - period_, period_);
  const std::int64_t times = (horizon_ + period_ - 1) / period_;
  return last.repeat({1, times, 1}).narrow(1, 0, horizon_).contiguous();
}

}  // namespace treadle::forecasting
