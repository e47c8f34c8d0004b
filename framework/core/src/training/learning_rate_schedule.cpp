#include <treadle/core/training/learning_rate_schedule.h>

#include <algorithm>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {

std::int64_t ScheduleSpan::steps(const Duration& duration) const {
  const auto needs = [&](Duration::Unit unit, const std::optional<std::int64_t>& length,
                         const char* what, const char* remedy) {
    if (duration.unit == unit && !length) {
      throw TrainingError("\"" + duration.text() + "\" cannot be counted in steps: " + what +
                          "; give it in steps, or set " + remedy);
    }
  };
  needs(Duration::Unit::kFraction, total_steps, "the training goes on until something stops it",
        "training.max_steps");
  needs(Duration::Unit::kEpochs, steps_per_epoch, "how many steps an epoch has is known at its end",
        "training.steps_per_epoch");
  return duration.steps(steps_per_epoch.value_or(1), total_steps.value_or(1));
}

std::int64_t ScheduleSpan::within(std::int64_t step) const {
  return total_steps ? std::min(step, *total_steps - 1) : step;
}

std::int64_t ScheduleSpan::end() const {
  if (!total_steps) {
    throw TrainingError(
        "the schedule is stretched over the whole training, and this one goes on until something "
        "stops it; set training.max_steps, or give the schedule a length");
  }
  return *total_steps;
}

LearningRateSchedule::~LearningRateSchedule() = default;

double LearningRateSchedule::rate_at(std::int64_t step, const ScheduleSpan& span) const {
  TREADLE_EXPECTS(step >= 0, "steps count from 0");
  TREADLE_EXPECTS(span.total_steps.value_or(1) >= 1 && span.steps_per_epoch.value_or(1) >= 1,
                  "a schedule is stretched over at least one step");
  return call_plugin(*this, "rate_at", [&] { return do_rate_at(step, span); });
}

WarmedUpSchedule::WarmedUpSchedule(std::unique_ptr<LearningRateSchedule> inner, Duration warmup,
                                   std::optional<double> start_factor)
    : inner_(std::move(inner)), warmup_(warmup), start_factor_(start_factor) {
  TREADLE_EXPECTS(inner_ != nullptr, "a warm-up leads to a schedule");
}

WarmedUpSchedule::~WarmedUpSchedule() = default;

double WarmedUpSchedule::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  const std::int64_t given = span.steps(warmup_);
  const std::int64_t warmup = span.total_steps ? std::min(given, *span.total_steps) : given;
  if (step < warmup && start_factor_) {
    const double progress = static_cast<double>(step) / static_cast<double>(warmup);
    return span.base_rate * (*start_factor_ + (1 - *start_factor_) * progress);
  }
  if (step < warmup) {
    return span.base_rate * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  ScheduleSpan rest = span;
  if (span.total_steps)
    rest.total_steps = std::max<std::int64_t>(1, *span.total_steps - warmup);
  return inner_->rate_at(step - warmup, rest);
}

}  // namespace treadle
