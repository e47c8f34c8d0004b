#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <treadle/base/component.h>
#include <treadle/base/duration.h>

namespace treadle {

/// What a schedule is stretched over. Known before the first step.
struct ScheduleSpan {
  double base_rate = 0;          ///< the optimizer's learning_rate
  std::int64_t total_steps = 1;  ///< optimizer steps in the whole training
  std::int64_t steps_per_epoch = 1;
};

/// The learning rate as a function of the step: no hidden state, so a resumed run needs none.
class LearningRateSchedule : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.schedule/0";

  ~LearningRateSchedule() override;

  /// The rate for update number `step` (from 0; steps past total_steps keep the last rate).
  double rate_at(std::int64_t step, const ScheduleSpan& span) const;

 private:
  // 0 <= step; span.total_steps >= 1, span.steps_per_epoch >= 1.
  virtual double do_rate_at(std::int64_t step, const ScheduleSpan& span) const = 0;
};

/// Any schedule behind a linear warm-up: update number s < W gets base_rate * (s + 1) / W, so the
/// line starts from 0 just before training; then `inner` runs as if training began there, over the
/// steps that are left.
class WarmedUpSchedule : public LearningRateSchedule {
 public:
  WarmedUpSchedule(std::unique_ptr<LearningRateSchedule> inner, Duration warmup);
  ~WarmedUpSchedule() override;

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;

  std::unique_ptr<LearningRateSchedule> inner_;
  Duration warmup_;
};

}  // namespace treadle
