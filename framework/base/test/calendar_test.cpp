#include <treadle/base/calendar.h>

#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle {
namespace {

using ::testing::ElementsAre;

constexpr double kHour = 3600;
constexpr double kDay = 86400;

std::vector<double> numbers_at(std::string_view name, double time) {
  const CalendarFeature* const feature = find_calendar_feature(name);
  std::vector<double> numbers(feature->width());
  feature->write(time, numbers.data());
  return numbers;
}

// Hours 6 and 18 are opposite; Saturday 1970-01-03; 1972 is a leap year, its last day the 366th.
TEST(Calendar, HasThePlaceInEachCycle) {
  EXPECT_NEAR(numbers_at("hour", 6 * kHour)[0], 1, 1e-12);
  EXPECT_NEAR(numbers_at("hour", 18 * kHour)[0], -1, 1e-12);
  EXPECT_THAT(numbers_at("weekend", 2 * kDay), ElementsAre(1));
  EXPECT_THAT(numbers_at("weekend", 4 * kDay), ElementsAre(0));
  EXPECT_NEAR(numbers_at("day_of_week", 4 * kDay)[1], 1, 1e-12) << "Monday is 0";
  EXPECT_NEAR(numbers_at("month", 0)[1], 1, 1e-12);
  EXPECT_NEAR(numbers_at("day_of_month", 15.5 * kDay)[0], std::sin(2 * std::numbers::pi * 15 / 31),
              1e-12);
  EXPECT_NEAR(numbers_at("day_of_year", 1095 * kDay)[0], std::sin(2 * std::numbers::pi * 365 / 366),
              1e-12);
}

TEST(Calendar, NamesTheColumnsOfAFeature) {
  EXPECT_THAT(find_calendar_feature("minute")->column_names(),
              ElementsAre("minute_sin", "minute_cos"));
  EXPECT_THAT(find_calendar_feature("weekend")->column_names(), ElementsAre("weekend"));
  EXPECT_EQ(find_calendar_feature("decade"), nullptr);
}

}  // namespace
}  // namespace treadle
