// A schedule through which a test stands beside the training thread: observers hear of a step when
// it is long done.
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/plugin.h>

#include "step_hook.h"

namespace {

StepHook hook;

class Watched final : public treadle::LearningRateSchedule {
 public:
  explicit Watched(const treadle::Config&) {}

 private:
  void* do_ask(std::string_view interface_id) override {
    return interface_id == StepHook::kInterface ? &hook : nullptr;
  }
  double do_rate_at(std::int64_t step, const treadle::ScheduleSpan& span) const override {
    if (hook.before_step)
      hook.before_step();
    return span.base_rate * (1 - 0.5 * static_cast<double>(step) /
                                     static_cast<double>(span.total_steps.value_or(1000)));
  }
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<Watched>("watched");
}
