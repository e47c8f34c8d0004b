#include <treadle/testing/training/schedule_contract.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/testing/component/case_name.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class ScheduleClaims : public ::testing::WithParamInterface<ScheduleCase> {
 protected:
  static constexpr ScheduleSpan kSpan{.base_rate = 0.5, .total_steps = 120, .steps_per_epoch = 10};

  std::unique_ptr<LearningRateSchedule> schedule_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Schedule)

CLAIM(Schedule, GivesAUsableRateForEveryStep) {
  for (std::int64_t step = 0; step < 2 * kSpan.end(); ++step) {
    const double rate = schedule_->rate_at(step, kSpan);
    EXPECT_TRUE(std::isfinite(rate)) << step;
    EXPECT_GE(rate, 0) << step;
    if (GetParam().never_above_base) {
      EXPECT_LE(rate, kSpan.base_rate) << step;
    }
  }
}

CLAIM(Schedule, IsAFunctionOfTheStepAlone) {
  const auto other = GetParam().make();

  for (std::int64_t step = kSpan.end(); step-- > 0;) {
    other->rate_at(step, kSpan);
    other->rate_at(step, {.base_rate = 9, .total_steps = 7, .steps_per_epoch = 3});
  }

  for (std::int64_t step = 0; step < kSpan.end(); ++step)
    EXPECT_EQ(schedule_->rate_at(step, kSpan), other->rate_at(step, kSpan)) << step;
}

CLAIM(Schedule, KeepsItsLastRateAfterTheEnd) {
  const double end = schedule_->rate_at(kSpan.end(), kSpan);

  for (const std::int64_t more : {1, 10, 1000})
    EXPECT_EQ(schedule_->rate_at(kSpan.end() + more, kSpan), end);
}

CLAIM(Schedule, StartsAtTheOptimizersRate) {
  if (GetParam().starts_at_base) {
    EXPECT_EQ(schedule_->rate_at(0, kSpan), kSpan.base_rate);
  } else {
    EXPECT_NE(schedule_->rate_at(0, kSpan), kSpan.base_rate);
  }
}

CLAIM(Schedule, RisesOnlyIfItMay) {
  if (!GetParam().never_rises)
    return;  // it may
  for (std::int64_t step = 1; step < 2 * kSpan.end(); ++step)
    EXPECT_LE(schedule_->rate_at(step, kSpan), schedule_->rate_at(step - 1, kSpan)) << step;
}

CLAIM(Schedule, WorksForTrainingsOfAnyLength) {
  for (const std::int64_t total : {1, 2, 3, 1000000}) {
    for (const std::int64_t per_epoch : {1, 7, 1000000}) {
      const ScheduleSpan span{.base_rate = 0.5, .total_steps = total, .steps_per_epoch = per_epoch};
      for (const std::int64_t step : {std::int64_t{0}, total / 2, total - 1, total, 3 * total}) {
        const double rate = schedule_->rate_at(step, span);
        EXPECT_TRUE(std::isfinite(rate) && rate >= 0)
            << rate << " at step " << step << " of " << total << ", " << per_epoch << " an epoch";
      }
    }
  }
}

}  // namespace treadle::testing
