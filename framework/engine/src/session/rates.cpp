#include "session/rates.h"

#include <algorithm>

namespace treadle::engine {

Rates::Rates(const SessionSetup& setup, const Progress& progress)
    : setup_(setup),
      span_{setup.optimizer->learning_rate(), progress.total_steps(),
            progress.limits().batches_per_epoch},
      has_group_schedules_(
          std::any_of(setup.groups.begin(), setup.groups.end(),
                      [](const auto& group) { return group.schedule != nullptr; })) {}

double Rates::scheduled(std::int64_t step) const {
  return setup_.schedule->rate_at(step, span_) * factor_;
}

std::span<const double> Rates::of_groups(std::int64_t step, double rate) {
  if (!has_group_schedules_)
    return {};
  // A loop may train at another rate than the schedule's.
  const double scheduled = setup_.schedule->rate_at(step, span_);
  const double factor = scheduled > 0 ? rate / scheduled : factor_;
  of_groups_.clear();
  for (const ParameterGroup& group : setup_.groups) {
    ScheduleSpan span = span_;
    span.base_rate = group.optimizer->learning_rate();
    of_groups_.push_back(group.schedule != nullptr ? group.schedule->rate_at(step, span) * factor
                                                   : rate * (span.base_rate / span_.base_rate));
  }
  return of_groups_;
}

std::vector<std::string> Rates::log_names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; has_group_schedules_ && i < setup_.groups.size(); ++i)
    names.push_back("learning_rate.groups." + std::to_string(i));
  return names;
}

void Rates::save_in(StateDict& state) const {
  state.put_number("learning_rate", last_);
  state.put_number("rate_factor", factor_);
}

void Rates::load_from(const StateDict& state) {
  last_ = state.number("learning_rate");
  factor_ = state.number("rate_factor");
}

}  // namespace treadle::engine
