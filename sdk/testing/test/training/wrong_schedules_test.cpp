#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/testing/training/schedule_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_schedules {
namespace {

class Formula final : public LearningRateSchedule {
 public:
  using Rate = std::function<double(std::int64_t step, const ScheduleSpan& span)>;
  explicit Formula(Rate rate) : rate_(std::move(rate)) {}

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    return rate_(step, span);
  }
  Rate rate_;
};

/// Half the rate every 50 steps, until the end.
double halving(std::int64_t step, const ScheduleSpan& span) {
  const std::int64_t halvings = std::min(step, span.end()) / 50;
  return span.base_rate * std::exp2(-static_cast<double>(halvings));
}

/// Never above what it gave before.
class Falling final : public LearningRateSchedule {
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    lowest_ = std::min(lowest_, halving(step, span));
    return lowest_;
  }
  mutable double lowest_ = std::numeric_limits<double>::infinity();
};

ScheduleCase formula(std::string name, const Formula::Rate& rate, bool never_rises = false) {
  return {.name = std::move(name),
          .make = [rate] { return std::make_unique<Formula>(rate); },
          .never_rises = never_rises};
}

std::vector<Wrong<ScheduleCase>> all() {
  using Span = const ScheduleSpan&;
  return {
      {{"HasAMemory", [] { return std::make_unique<Falling>(); }}, {"IsAFunctionOfTheStepAlone"}},
      {formula("GoesOnAfterTheEnd",
               [](std::int64_t step, Span span) {
                 return span.base_rate / (1 + static_cast<double>(step));
               }),
       {"KeepsItsLastRateAfterTheEnd"}},
      {formula("IsNegativeOnce",
               [](std::int64_t step, Span span) { return step == 61 ? -1 : halving(step, span); }),
       {"GivesAUsableRateForEveryStep"}},
      {formula("StartsLow",
               [](std::int64_t step, Span span) {
                 return step == 0 ? span.base_rate / 2 : halving(step, span);
               }),
       {"StartsAtTheOptimizersRate"}},
      {formula("DividesByTheEpochs",
               [](std::int64_t step, Span span) {
                 const std::int64_t epoch = std::min(step, span.end()) / *span.steps_per_epoch;
                 const std::int64_t epochs = span.end() / *span.steps_per_epoch;
                 return span.base_rate *
                        (1 - static_cast<double>(epoch) / static_cast<double>(epochs));
               }),
       {"WorksForTrainingsOfAnyLength"}},
      {formula(
           "RisesUndeclared",
           [](std::int64_t step, Span span) {
             return span.base_rate * (std::min(step, span.end()) % 2 == 0 ? 1 : 0.5);
           },
           true),
       {"RisesOnlyIfItMay"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, ScheduleContract,
                         ::testing::Values(formula("Halving", halving, true)), CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, ScheduleContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_schedules

std::vector<Defect> schedule_defects() {
  return defects_of("ScheduleContract", wrong_schedules::all());
}

}  // namespace treadle::testing
