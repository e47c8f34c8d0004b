#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/trend.h>

namespace treadle {

/// What must have happened to some numbers of a training: "when" of its configuration.
///
/// A window counts epochs, and must be full. Several trends must all fulfil it, or any of them.
class Condition {
 public:
  /// Fails when the configuration asks for nothing, for two things of a trend, or for less than two
  /// epochs.
  static Condition configured_by(const Config& config);

  /// The numbers it looks at; empty when it only waits.
  const std::vector<std::string>& names() const { return names_; }

  /// Whether it holds, `epochs` after the beginning; `trend_of` gives a number's trend.
  bool holds(std::int64_t epochs, std::int64_t steps_per_epoch, std::int64_t total_steps,
             const std::function<Trend(const std::string& name)>& trend_of) const;

  /// "loss stalled for 5 epochs"
  std::string text() const;

  /// Where "trend" stands, for mistakes in the names.
  const Config& config() const { return config_; }

 private:
  enum class Kind { kNone, kStalled, kImproving, kNotImproving, kConverged };
  struct Word;
  static const Word kWords[];

  explicit Condition(const Config& config) : config_(config) {}
  bool holds_for(const Trend& trend) const;

  Config config_;
  std::vector<std::string> names_;
  bool any_ = false;
  Kind kind_ = Kind::kNone;
  std::int64_t window_ = 0;
  double tolerance_ = 0;
  Direction better_ = Direction::kNone;  // kNone: as the number itself says
  std::optional<Duration> after_;
};

}  // namespace treadle
