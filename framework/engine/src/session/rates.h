#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "session/session_parts.h"

namespace treadle::engine {

/// The learning rates of a training: the schedule's, those of groups with a schedule of their own,
/// and what callbacks make of them.
class Rates {
 public:
  /// The setup outlives it.
  Rates(const SessionSetup& setup, const Progress& progress);

  const ScheduleSpan& span() const { return span_; }
  /// Of step `step`, counted from 0.
  double scheduled(std::int64_t step) const;
  /// Of the last update; 0 before the first.
  double last() const { return last_; }
  void set_last(double rate) { last_ = rate; }
  double factor() const { return factor_; }
  void multiply(double factor) { factor_ *= factor; }

  /// By group, where the rest has `rate` in step `step`: see Update::learning_rate. Empty where no
  /// group has a schedule of its own. Valid until the next call.
  std::span<const double> of_groups(std::int64_t step, double rate);
  /// In the order of the document; empty where no group has a schedule of its own.
  std::vector<std::string> log_names() const;

  void save_in(StateDict& state) const;
  void load_from(const StateDict& state);

 private:
  const SessionSetup& setup_;
  const ScheduleSpan span_;
  const bool has_group_schedules_;
  double last_ = 0;
  double factor_ = 1;
  std::vector<double> of_groups_;
};

}  // namespace treadle::engine
