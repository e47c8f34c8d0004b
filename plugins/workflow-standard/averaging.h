#pragma once

#include <cstdint>
#include <optional>

#include <treadle/base/config.h>
#include <treadle/base/duration.h>
#include <treadle/engine/weight_average.h>

namespace treadle {

/// Which average of its weights a training is judged by and ends with: "ema" or "swa" of its
/// configuration.
struct Averaging {
  std::optional<double> decay;  ///< absent: all weights count the same
  Duration start;
  Duration every{1, Duration::Unit::kSteps};

  /// Nothing when the configuration names neither; fails when it names both.
  static std::optional<Averaging> configured_by(const Config& config);

  engine::AveragingPlan plan(std::int64_t steps_per_epoch, std::int64_t total_steps) const;
};

}  // namespace treadle
