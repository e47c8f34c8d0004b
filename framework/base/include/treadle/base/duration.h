#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace treadle {

/// A length of training in the unit its author thinks in: "5%" of all steps, "10ep" epochs,
/// "500st" optimizer steps, "2h" / "30min" / "45s" wall time.
struct Duration {
  enum class Unit { kFraction, kEpochs, kSteps, kSeconds };

  double value = 0;
  Unit unit = Unit::kSteps;

  /// Reads the written form. Throws std::invalid_argument that lists what is allowed.
  static Duration parse(std::string_view text);

  /// The written form; parse(text()) gives the same duration back.
  std::string text() const;

  /// The number of optimizer steps it stands for, rounded to the nearest whole step.
  /// Expects a unit other than seconds, `steps_per_epoch` >= 1 and `total_steps` >= 0.
  std::int64_t steps(std::int64_t steps_per_epoch, std::int64_t total_steps) const;

  bool operator==(const Duration&) const = default;
};

}  // namespace treadle
