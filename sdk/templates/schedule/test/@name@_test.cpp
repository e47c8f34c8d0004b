#include <treadle/sdk.h>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/training/schedule_contract.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::LearningRateSchedule> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::LearningRateSchedule>("@name@", std::move(parameters));
}

// What every schedule keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, ScheduleContract,
                         ::testing::Values(ScheduleCase{"Defaults", [] { return make(); }},
                                           ScheduleCase{"OneStep",
                                                        [] {
                                                          return make({{"hold", "1st"}});
                                                        }},
                                           ScheduleCase{"Epochs",
                                                        [] {
                                                          return make({{"hold", "2ep"}});
                                                        }}),
                         CaseName());

constexpr treadle::ScheduleSpan kSpan{.base_rate = 0.8, .total_steps = 100, .steps_per_epoch = 10};

// By hand: sqrt(4 / 16) is a half, sqrt(4 / 64) a quarter, sqrt(4 / 100) a fifth.
TEST(@Name@, FallsWithTheSquareRootOfTheStep) {
  const auto schedule = make({{"hold", "4st"}});

  EXPECT_DOUBLE_EQ(schedule->rate_at(16, kSpan), 0.4);
  EXPECT_DOUBLE_EQ(schedule->rate_at(64, kSpan), 0.2);
  // Steps past the end keep the rate of the last.
  EXPECT_EQ(schedule->rate_at(100, kSpan), schedule->rate_at(99, kSpan));
  EXPECT_EQ(schedule->rate_at(400, kSpan), schedule->rate_at(99, kSpan));
}

TEST(@Name@, HoldsTheRateFirst) {
  const auto schedule = make({{"hold", "20%"}});

  EXPECT_EQ(schedule->rate_at(0, kSpan), 0.8);
  EXPECT_EQ(schedule->rate_at(20, kSpan), 0.8);
  EXPECT_LT(schedule->rate_at(21, kSpan), 0.8);
}

TEST(@Name@, RefusesALengthOfNothing) {
  try {
    make({{"hold", "0ep"}});
    ADD_FAILURE() << "expected a DocumentError";
  } catch (const treadle::DocumentError& error) {
    EXPECT_STREQ(error.what(), "/hold: must be longer than 0, got \"0ep\"");
  }
}

TEST(@Name@, RefusesWallTime) {
  EXPECT_THROW(make({{"hold", "2h"}}), treadle::DocumentError);
}

}  // namespace
