#include <treadle/core/training/learning_rate_schedule.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

/// The rate falls from base to 0 along the steps: easy to read in a test.
class Falling : public LearningRateSchedule {
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    return span.base_rate * (1 - static_cast<double>(step) / static_cast<double>(span.end()));
  }
};

TEST(WarmedUpSchedule, RisesLinearlyToTheBaseRate) {
  const WarmedUpSchedule schedule(std::make_unique<Falling>(), Duration{4, Duration::Unit::kSteps});
  const ScheduleSpan span{0.8, 10, 5};

  EXPECT_DOUBLE_EQ(schedule.rate_at(0, span), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate_at(1, span), 0.4);
  EXPECT_DOUBLE_EQ(schedule.rate_at(3, span), 0.8);
}

// LinearLR(start_factor=0.1, total_iters=5); plugins/schedules/test/reference.py prints it as
// "warm-up".
TEST(WarmedUpSchedule, RisesFromItsStartFactorAsPyTorchsLinearLr) {
  const WarmedUpSchedule schedule(std::make_unique<Falling>(), Duration{5, Duration::Unit::kSteps},
                                  0.1);
  const ScheduleSpan span{0.8, 15, 5};

  std::int64_t step = 0;
  for (const double rate : {0.08, 0.224, 0.368, 0.512, 0.656, 0.8})
    EXPECT_NEAR(schedule.rate_at(step++, span), rate, 1e-15) << step - 1;
  EXPECT_NEAR(schedule.rate_at(10, span), 0.4, 1e-15);
}

TEST(WarmedUpSchedule, StartsTheInnerClockAtZeroOverTheRemainingSteps) {
  const WarmedUpSchedule schedule(std::make_unique<Falling>(), Duration{4, Duration::Unit::kSteps});
  const ScheduleSpan span{0.6, 10, 5};

  EXPECT_DOUBLE_EQ(schedule.rate_at(4, span), 0.6);
  EXPECT_DOUBLE_EQ(schedule.rate_at(7, span), 0.3);  // 3 of the 6 steps that are left
}

TEST(WarmedUpSchedule, CountsAFractionOfAllSteps) {
  const WarmedUpSchedule schedule(std::make_unique<Falling>(),
                                  Duration{0.5, Duration::Unit::kFraction});

  EXPECT_DOUBLE_EQ(schedule.rate_at(4, {1.0, 10, 5}), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate_at(5, {1.0, 10, 5}), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate_at(6, {1.0, 10, 5}), 0.8);
}

TEST(ScheduleSpan, WithoutAnEndTellsWhatToSet) {
  const ScheduleSpan span{0.6, std::nullopt, std::nullopt};

  EXPECT_EQ(span.within(1000000), 1000000);
  EXPECT_EQ(span.steps({500, Duration::Unit::kSteps}), 500);
  const auto message = [&](auto&& call) -> std::string {
    try {
      call();
    } catch (const TrainingError& error) {
      return error.what();
    }
    return "no error";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(message([&] { span.end(); }), HasSubstr("training.max_steps"));
  EXPECT_THAT(message([&] {
                span.steps({0.1, Duration::Unit::kFraction});
              }),
              ::testing::AllOf(HasSubstr("10%"), HasSubstr("training.max_steps")));
  EXPECT_THAT(message([&] {
                span.steps({2, Duration::Unit::kEpochs});
              }),
              ::testing::AllOf(HasSubstr("2ep"), HasSubstr("training.steps_per_epoch")));
}

TEST(ScheduleSpan, StepsPastTheEndAreTheLast) {
  const ScheduleSpan span{0.6, 10, 5};
  EXPECT_EQ(span.within(3), 3);
  EXPECT_EQ(span.within(9), 9);
  EXPECT_EQ(span.within(10), 9);
}

TEST(WarmedUpSchedule, InStepsNeedsNoEnd) {
  class Flat : public LearningRateSchedule {
    double do_rate_at(std::int64_t, const ScheduleSpan& span) const override {
      return span.base_rate;
    }
  };
  const WarmedUpSchedule schedule(std::make_unique<Flat>(), Duration{4, Duration::Unit::kSteps});
  const ScheduleSpan span{0.8, std::nullopt, std::nullopt};

  EXPECT_DOUBLE_EQ(schedule.rate_at(0, span), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate_at(4, span), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate_at(4000000, span), 0.8);
}

TEST(LearningRateSchedule, ExpectsStepsFromZero) {
  EXPECT_THROW(Falling().rate_at(-1, {1, 10, 5}), ContractViolation);
}

}  // namespace
}  // namespace treadle
