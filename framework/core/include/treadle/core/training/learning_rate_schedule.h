#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <treadle/base/component.h>
#include <treadle/base/duration.h>

namespace treadle {

/// The length of a training for a schedule, known before the first step as far as it can be known.
struct ScheduleSpan {
  double base_rate = 0;  ///< the optimizer's learning_rate
  /// Optimizer steps in the whole training; nothing: until something stops it.
  std::optional<std::int64_t> total_steps = 1;
  /// Nothing: not known before an epoch has ended, as of a stream.
  std::optional<std::int64_t> steps_per_epoch = 1;

  /// How many steps `duration` is. Throws TrainingError when it is a share of a training without
  /// end, or in epochs that have no known length. Expects one that is not wall time.
  std::int64_t steps(const Duration& duration) const;
  /// `step`, but no later than the last: steps past it keep the last rate.
  std::int64_t within(std::int64_t step) const;
  /// total_steps, for a schedule that cannot do without. Throws TrainingError.
  std::int64_t end() const;
};

/// The learning rate as a function of the step: no hidden state, so a resumed run needs none.
class LearningRateSchedule : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.schedule/0";

  ~LearningRateSchedule() override;

  /// The rate for update number `step` (from 0; steps past total_steps keep the last rate). Throws
  /// TrainingError if it requires the end of a training that has no known end.
  double rate_at(std::int64_t step, const ScheduleSpan& span) const;

 private:
  // 0 <= step; what is known of the span is >= 1.
  virtual double do_rate_at(std::int64_t step, const ScheduleSpan& span) const = 0;
};

/// Any schedule behind a linear warm-up: update number s < W gets base_rate * (s + 1) / W, so the
/// line starts from 0 just before training. With a start factor f it is the first update that gets
/// base_rate * f, and update number s base_rate * (f + (1 - f) * s / W), as of PyTorch's LinearLR.
/// Then `inner` runs as if training began there, over the steps that are left.
class WarmedUpSchedule : public LearningRateSchedule {
 public:
  WarmedUpSchedule(std::unique_ptr<LearningRateSchedule> inner, Duration warmup,
                   std::optional<double> start_factor = {});
  ~WarmedUpSchedule() override;

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;

  std::unique_ptr<LearningRateSchedule> inner_;
  Duration warmup_;
  std::optional<double> start_factor_;
};

}  // namespace treadle
