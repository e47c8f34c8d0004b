#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every LearningRateSchedule must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Schedules, ScheduleContract, ::testing::Values(
///         ScheduleCase{"Cosine", [] { return plugin().make<LearningRateSchedule>("cosine"); }}),
///         CaseName());
namespace treadle::testing {

struct ScheduleCase {
  std::string name;
  std::function<std::unique_ptr<LearningRateSchedule>()> make;
  /// The first update has the optimizer's rate (a warm-up would not).
  bool starts_at_base = true;
  /// No rate is above the optimizer's.
  bool never_above_base = true;
  /// No rate is above the one before it.
  bool never_rises = false;
};

TREADLE_CONTRACT_SUITE(ScheduleContract, ScheduleCase);

}  // namespace treadle::testing
