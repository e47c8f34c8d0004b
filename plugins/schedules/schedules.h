#pragma once

#include <optional>

#include <treadle/base/config.h>
#include <treadle/core/learning_rate_schedule.h>

/// Learning rates as functions of the step t, which counts updates from 0, and of the base rate.
namespace treadle::schedules {

/// base
class Constant final : public LearningRateSchedule {
 public:
  explicit Constant(const Config& config);

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;
};

/// base * gamma^floor(t / size)
class StepDecay final : public LearningRateSchedule {
 public:
  explicit StepDecay(const Config& config);

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;

  Duration size_;
  double gamma_;
};

/// What leads from the base rate at t = 0 to an end rate at t = length, exactly at both, and stays
/// there. Without a length that is the end of training: the last update, t = total_steps - 1, is
/// one step short of the end rate.
class Descent : public LearningRateSchedule {
 protected:
  Descent(const Config& config, double end_rate);

 private:
  /// From 1 at `progress` 0 to 0 at `progress` 1: the share of (base - end) that is left.
  virtual double rest_at(double progress) const = 0;

  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const final;

  double end_rate_;
  std::optional<Duration> length_;
};

/// min + (base - min) * (1 + cos(pi t / length)) / 2 (Loshchilov & Hutter 2017, without restarts).
class Cosine final : public Descent {
 public:
  explicit Cosine(const Config& config);

 private:
  double rest_at(double progress) const override;
};

/// base + (end - base) * t / length
class Linear final : public Descent {
 public:
  explicit Linear(const Config& config);

 private:
  double rest_at(double progress) const override;
};

}  // namespace treadle::schedules
