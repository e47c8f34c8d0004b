#pragma once

#include <vector>

#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/core/training/optimizer.h>

/// For a training that makes no steps: its document has neither optimizer nor schedule, and a
/// session expects both.
namespace treadle::internal {

class NoOptimizer final : public Optimizer {
  double do_learning_rate() const override { return 0; }
  std::vector<SlotSpec> do_slots() const override { return {}; }
  void do_update(ParameterView&) const override {}
};

class NoSchedule final : public LearningRateSchedule {
  double do_rate_at(std::int64_t, const ScheduleSpan&) const override { return 0; }
};

}  // namespace treadle::internal
