// A schedule that works for a while.
#include <stdexcept>

#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/plugin.h>

namespace {

class Faltering : public treadle::LearningRateSchedule {
 public:
  explicit Faltering(const treadle::Config&) {}

 private:
  double do_rate_at(std::int64_t step, const treadle::ScheduleSpan& span) const override {
    if (step == 4)
      throw std::out_of_range("the table has four rows");
    return span.base_rate;
  }
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<Faltering>("faltering");
}
