#include <treadle/core/learning_rate_schedule.h>

#include <algorithm>

#include <treadle/base/error.h>
#include <treadle/core/plugin_call.h>

namespace treadle {

LearningRateSchedule::~LearningRateSchedule() = default;

double LearningRateSchedule::rate_at(std::int64_t step, const ScheduleSpan& span) const {
  TREADLE_EXPECTS(step >= 0, "steps count from 0");
  TREADLE_EXPECTS(span.total_steps >= 1 && span.steps_per_epoch >= 1,
                  "a schedule is stretched over at least one step");
  return call_plugin(*this, "rate_at", [&] { return do_rate_at(step, span); });
}

WarmedUpSchedule::WarmedUpSchedule(std::unique_ptr<LearningRateSchedule> inner, Duration warmup)
    : inner_(std::move(inner)), warmup_(warmup) {
  TREADLE_EXPECTS(inner_ != nullptr, "a warm-up leads to a schedule");
}

WarmedUpSchedule::~WarmedUpSchedule() = default;

double WarmedUpSchedule::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  const std::int64_t warmup =
      std::min(warmup_.steps(span.steps_per_epoch, span.total_steps), span.total_steps);
  if (step < warmup) {
    return span.base_rate * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  ScheduleSpan rest = span;
  rest.total_steps = std::max<std::int64_t>(1, span.total_steps - warmup);
  return inner_->rate_at(step - warmup, rest);
}

}  // namespace treadle
