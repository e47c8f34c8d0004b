// A plugin that defines a kind of component of its own, and uses what others make of it.
#include <memory>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/plugin.h>

#include "../curve.h"

namespace treadle::testing {
namespace {

class Curved final : public LearningRateSchedule {
 public:
  Curved(const Config& config, const ComponentContext& context)
      : curve_(make_nested<Curve>(context, config, "curve")) {}

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    const double progress =
        static_cast<double>(step) / static_cast<double>(span.total_steps.value_or(1000));
    return span.base_rate * curve_->at(progress);
  }

  std::unique_ptr<Curve> curve_;
};

}  // namespace
}  // namespace treadle::testing

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::testing::Curved>("curved");
}
