#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/base/config.h>
#include <treadle/base/duration.h>
#include <treadle/core/training/learning_rate_schedule.h>

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

/// end + (base - end) * (1 - t / length)^power (torch.optim.lr_scheduler.PolynomialLR, end 0)
class Polynomial final : public Descent {
 public:
  explicit Polynomial(const Config& config);

 private:
  double rest_at(double progress) const override;

  double power_;
};

/// base * gamma^(t / decay), at every step. Where t is a multiple of decay that is
/// torch.optim.lr_scheduler.ExponentialLR, which is stepped once in that time.
class Exponential final : public LearningRateSchedule {
 public:
  explicit Exponential(const Config& config);

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;

  double gamma_;
  Duration decay_;
};

/// base * gamma^(milestones that are <= t) (torch.optim.lr_scheduler.MultiStepLR)
class MultiStep final : public LearningRateSchedule {
 public:
  explicit MultiStep(const Config& config);

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;

  std::vector<Duration> milestones_;
  double gamma_;
};

/// Half cosines from base to min, each starting anew at base; the first is `period` long, each
/// next `period_factor` times the one before it. Loshchilov & Hutter 2017;
/// torch.optim.lr_scheduler.CosineAnnealingWarmRestarts with T_0 and T_mult.
class CosineRestarts final : public LearningRateSchedule {
 public:
  explicit CosineRestarts(const Config& config);

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;

  Duration period_;
  std::int64_t period_factor_;
  double min_rate_;
};

/// From base / div_factor up to base and down to base / (div_factor * final_div_factor), over
/// `length` steps; in three phases by way of base / div_factor. Smith & Topin 2018;
/// torch.optim.lr_scheduler.OneCycleLR with max_lr = base, without its cycle of the momentum.
class OneCycle final : public LearningRateSchedule {
 public:
  explicit OneCycle(const Config& config);

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;

  std::optional<Duration> length_;
  double pct_start_;
  double div_factor_;
  double final_div_factor_;
  bool three_phase_;
  double (*anneal_)(double start, double end, double progress);
};

/// base * min((t + 1) / rise, sqrt(rise / (t + 1))): up along a line to base, at the rise-th
/// update, and down with the root of the number of updates. Vaswani et al. 2017, formula (3), times
/// base * sqrt(rise * d_model): there the base rate has no part, and the peak depends on the model.
class InverseSquareRoot final : public LearningRateSchedule {
 public:
  explicit InverseSquareRoot(const Config& config);

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;

  Duration rise_;
};

/// Schedules one after another: each begins at its milestone (the first at 0), as if training began
/// there and ended at the next one. torch.optim.lr_scheduler.SequentialLR.
class Sequential final : public LearningRateSchedule {
 public:
  Sequential(const Config& config, const ComponentContext& context);

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override;

  std::vector<std::unique_ptr<LearningRateSchedule>> schedules_;
  std::vector<Duration> milestones_;  ///< one fewer than schedules: where the second begins, ...
};

}  // namespace treadle::schedules
