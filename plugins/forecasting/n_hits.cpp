#include "n_hits.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_linear1d.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/base/error.h>

#include "estimates.h"

namespace treadle::forecasting {
namespace {

using Sizes = std::vector<std::int64_t>;

/// [1, rows, knots] to [1, rows, steps].
using Interpolates = at::Tensor (*)(const at::Tensor& knots, std::int64_t steps);

Interpolates interpolation_called(const std::string& name) {
  struct Entry {
    std::string_view name;
    Interpolates interpolate;
  };
  static constexpr std::array kInterpolations = {
      Entry{"linear",
            [](const at::Tensor& knots, std::int64_t steps) {
              return at::upsample_linear1d(knots, Sizes{steps}, /*align_corners=*/false);
            }},
      Entry{"nearest",
            [](const at::Tensor& knots, std::int64_t steps) {
              return at::upsample_nearest1d(knots, Sizes{steps});
            }},
      // libtorch has it for images: ours have one row.
      Entry{"cubic", [](const at::Tensor& knots, std::int64_t steps) {
              return at::upsample_bicubic2d(knots.unsqueeze(2), Sizes{1, steps},
                                            /*align_corners=*/false)
                  .squeeze(2);
            }}};
  const auto* const found = std::find_if(kInterpolations.begin(), kInterpolations.end(),
                                         [&](const Entry& entry) { return entry.name == name; });
  TREADLE_EXPECTS(found != kInterpolations.end(), "the schema lists the interpolations");
  return found->interpolate;
}

/// What each knot adds to each step, [knots, horizon]; undefined with a knot for each step.
at::Tensor between_knots(const Config& config, std::int64_t horizon) {
  const std::int64_t knots =
      std::max<std::int64_t>(horizon / config.get<std::int64_t>("freq_downsample"), 1);
  if (knots == horizon)
    return {};
  return interpolation_called(config.get<std::string>("interpolation"))(
             at::eye(knots, at::kDouble).unsqueeze(0), horizon)
      .squeeze(0);
}

}  // namespace

NHitsStack::NHitsStack(const Config& config, const LayerSpec& spec)
    : BasisStack(spec, structure_of(config, spec)),
      horizon_(config.get<std::int64_t>("horizon")),
      estimates_(estimates_in(config)) {}

BasisStack::Structure NHitsStack::structure_of(const Config& config, const LayerSpec&) {
  const auto horizon = config.get<std::int64_t>("horizon");
  return {.horizon = horizon,
          .outputs = static_cast<std::int64_t>(estimates_in(config).size()),
          .blocks = config.get<std::int64_t>("blocks"),
          .num_layers = config.get<std::int64_t>("num_layers"),
          .width = config.get<std::int64_t>("width"),
          .basis = {{}, between_knots(config, horizon)},
          .pool_kernel_size = config.get<std::int64_t>("pool_kernel_size")};
}

at::Tensor NHitsStack::do_level(const at::Tensor& series) const {
  const at::Tensor last = series.narrow(-1, series.size(-1) - 1, 1).expand({-1, -1, horizon_});
  std::vector<at::Tensor> levels;
  for (const Estimate estimate : estimates_)
    levels.push_back(estimate == Estimate::kLocation ? last : at::zeros_like(last));
  return levels.size() == 1 ? levels.front() : at::cat(levels, -1);
}

// --- The network

NHits::NHits(const Config& config) : StackedForecaster(config) {
  const auto pools = config.get<std::vector<std::int64_t>>("pool_kernel_size");
  const auto downsample = config.get<std::vector<std::int64_t>>("freq_downsample");
  const auto blocks = config.find<std::vector<std::int64_t>>("blocks").value_or(
      std::vector<std::int64_t>(pools.size(), 1));
  const auto expect_one_each = [&](const char* key, std::size_t count) {
    if (count != pools.size()) {
      config.fail(key, "must have a number for each stack: pool_kernel_size has " +
                           std::to_string(pools.size()) + ", got " + std::to_string(count));
    }
  };
  expect_one_each("freq_downsample", downsample.size());
  expect_one_each("blocks", blocks.size());
  for (std::size_t i = 0; i < pools.size(); ++i) {
    stacks_.push_back({{"use", "n_hits_stack"},
                       {"pool_kernel_size", pools[i]},
                       {"freq_downsample", downsample[i]},
                       {"blocks", blocks[i]},
                       {"interpolation", config.get<std::string>("interpolation")},
                       {"num_layers", config.get<std::int64_t>("num_layers")},
                       {"width", config.get<std::int64_t>("width")}});
  }
}

std::vector<nlohmann::json> NHits::do_stacks(const Task& task) const {
  std::vector<nlohmann::json> stacks = stacks_;
  for (nlohmann::json& stack : stacks) {
    stack["horizon"] = task.horizon;
    stack["estimates"] = names_of(task.estimates);
  }
  return stacks;
}

}  // namespace treadle::forecasting
