#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>

#include "basis_stack.h"

/// N-BEATS: Oreshkin et al., "N-BEATS: Neural basis expansion analysis for interpretable time
/// series forecasting" (2020).
namespace treadle::forecasting {

/// A BasisStack of one of these bases. Their rows, for a window of L steps and a horizon of H, at
/// the time t of step s:
///
/// - generic: a row for each step, 1 there and 0 elsewhere.
/// - trend: t^0 … t^degree, with t = s / L in the window and s / H in the horizon.
/// - seasonality: cos 2πft for f = 0 … harmonics and sin 2πft for f = 1 … harmonics, with
///   t = (s - L) / H in the window and s / H in the horizon.
class NBeatsStack final : public BasisStack {
 public:
  NBeatsStack(const Config& config, const LayerSpec& spec)
      : BasisStack(spec, structure_of(config, spec)) {}

 private:
  static Structure structure_of(const Config& config, const LayerSpec& spec);
};

/// `generic`: stacks of blocks without a structure. `interpretable`: a stack for the trend and one
/// for the seasonality, whose blocks share their weights.
class NBeats final : public StackedForecaster {
 public:
  explicit NBeats(const Config& config);

 private:
  std::vector<nlohmann::json> do_stacks(const Task& task) const override;

  /// The stacks, but for what the task gives.
  std::vector<nlohmann::json> stacks_;
};

}  // namespace treadle::forecasting
