#include <treadle/sdk.h>

#include <algorithm>
#include <cmath>

namespace {

/// The inverse square root schedule (Raffel et al., "Exploring the Limits of Transfer Learning with
/// a Unified Text-to-Text Transformer", 2020, section 3.1.2), with the step t counted from 0:
///
///     rate = base * sqrt(hold / max(t, hold))
///
/// A pure function of the step: a resumed run needs no memory. Called from the training thread.
class @Name@ final : public treadle::LearningRateSchedule {
 public:
  explicit @Name@(const treadle::Config& config) : hold_(config.get<treadle::Duration>("hold")) {
    if (hold_.value <= 0)
      config.fail("hold", "must be longer than 0, got \"" + hold_.text() + "\"");
  }

 private:
  double do_rate_at(std::int64_t step, const treadle::ScheduleSpan& span) const override {
    const std::int64_t hold = std::max<std::int64_t>(1, span.steps(hold_));
    // Steps past the end keep the last rate.
    const std::int64_t t = std::max(hold, span.within(step));
    return span.base_rate * std::sqrt(static_cast<double>(hold) / static_cast<double>(t));
  }

  treadle::Duration hold_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
