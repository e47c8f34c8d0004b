#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/history/trend.h>

namespace treadle::callbacks {

/// What must be true of some numbers of the history: "when", or "until", of a configuration.
///
/// A window counts epochs, and must be full. All of several numbers must fulfil it, or any of them.
class Condition {
 public:
  /// Fails when the configuration asks for nothing, for two things of a number, or for a trend over
  /// less than two epochs.
  static Condition configured_by(const Config& config);

  /// The numbers it looks at; empty when it only waits.
  const std::vector<std::string>& names() const { return names_; }

  /// Before this it does not hold, whatever the numbers are.
  const std::optional<Duration>& after() const { return after_; }

  /// Whether the numbers fulfil it; `trend_of` gives the values of each.
  bool holds(const std::function<Trend(const std::string& name)>& trend_of) const;

  /// "train_loss stalled for 5 epochs"
  std::string text() const;

  /// Where "monitor" stands, for mistakes in the names.
  const Config& config() const { return config_; }

 private:
  enum class Kind { kNone, kStalled, kImproving, kNotImproving, kConverged, kAbove, kBelow };
  struct Word;
  static const Word kWords[];

  explicit Condition(const Config& config) : config_(config) {}
  bool holds_for(const Trend& trend) const;

  Config config_;
  std::vector<std::string> names_;
  bool any_ = false;
  Kind kind_ = Kind::kNone;
  std::int64_t window_ = 0;
  double bound_ = 0;                     // or the tolerance of a trend
  Direction better_ = Direction::kNone;  // kNone: as the number itself says
  std::optional<Duration> after_;
};

}  // namespace treadle::callbacks
