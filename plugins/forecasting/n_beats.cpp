#include "n_beats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <treadle/base/error.h>

namespace treadle::forecasting {
namespace {

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

BasisStack::Structure NBeatsStack::structure_of(const Config& config, const LayerSpec& spec) {
  Structure structure{.horizon = config.get<std::int64_t>("horizon"),
                      .outputs = config.get<std::int64_t>("outputs"),
                      .blocks = config.get<std::int64_t>("blocks"),
                      .num_layers = config.get<std::int64_t>("num_layers"),
                      .width = config.get<std::int64_t>("width"),
                      .basis = {},
                      .shares_weights = config.get<bool>("share_weights")};
  structure.basis =
      basis_called(config.get<std::string>("basis"))(config, steps_in(spec), structure.horizon);
  return structure;
}

// --- The network

NBeats::NBeats(const Config& config) : StackedForecaster(config) {
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

std::vector<nlohmann::json> NBeats::do_stacks(const Task& task) const {
  std::vector<nlohmann::json> stacks = stacks_;
  for (nlohmann::json& stack : stacks) {
    stack["horizon"] = task.horizon;
    stack["outputs"] = task.estimates.size();
  }
  return stacks;
}

}  // namespace treadle::forecasting
