#include "csv_data.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "csv_fixture.h"

namespace treadle::csv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvColumns : public CsvFixture {
 protected:
  static std::vector<std::string> names(const CsvData& data, std::size_t port = 0) {
    std::vector<std::string> names;
    for (const Column& column : data.spec().inputs[port].columns)
      names.push_back(column.name);
    return names;
  }
};

// date -u -d 2024-02-29 +%s is 1709164800, day 19782; a Thursday, the fourth of seven days from
// Monday; 1970-01-05 was a Monday, the first day of the cycle.
TEST_F(CsvColumns, ADateBecomesDaysAndPlacesInTheCalendar) {
  write("a,day,y\n1,2024-02-29T12:00,3\n2,1970-01-05,4\n");

  const auto data = open({{"dates", {"day"}}, {"calendar", {"day_of_week", "weekend"}}});

  EXPECT_THAT(names(*data), ElementsAre("a", "day.days", "day.day_of_week_sin",
                                        "day.day_of_week_cos", "day.weekend"));
  const std::vector<double> read = features(*data);
  EXPECT_EQ(read[1], 19782.5);
  EXPECT_NEAR(read[2], std::sin(2 * M_PI * 3 / 7), 1e-7);
  EXPECT_NEAR(read[3], std::cos(2 * M_PI * 3 / 7), 1e-7);
  EXPECT_EQ(read[4], 0);
  EXPECT_EQ(read[6], 4);
  EXPECT_NEAR(read[8], 1, 1e-7);
}

// From Saturday 2024-06-01 on: the date and the hour that stand there, wherever the clock is.
TEST_F(CsvColumns, TheCalendarIsThatOfTheClock) {
  const std::vector<double> weekends{1, 1, 0, 0, 0, 0, 0, 1, 1};
  for (const char* const zone : {"", "Z", "+02:00", "-11:30", "+14:00"}) {
    for (const char* const hour : {"00:00", "05:30", "23:59"}) {
      std::string text = "t,y\n";
      for (int day = 1; day <= 9; ++day) {
        text += "2024-06-0" + std::to_string(day) + "T" + hour + zone + "," + std::to_string(day) +
                "\n";
      }
      write(text);

      const auto data = open({{"dates", {"t"}}, {"calendar", {"weekend"}}});

      const std::vector<double> read = features(*data);
      std::vector<double> got;
      for (std::size_t row = 0; row < weekends.size(); ++row)
        got.push_back(read[2 * row + 1]);
      EXPECT_EQ(got, weekends) << hour << zone;
    }
  }
}

TEST_F(CsvColumns, TimesKnowTheirClocks) {
  write("x,t,y\n1,2024-06-01T00:00,1\n2,2024-06-01T12:00+02:00,2\n3,2024-06-01T12:00-01:30,3\n");
  const auto data = open({{"time", "t"}});
  write("x,t,y\n1,2024-06-01T00:00Z,1\n2,2024-06-01T12:00,2\n");
  const auto of_utc = open({{"time", "t"}});

  EXPECT_EQ(values(data->ask<LocalTimes>()->utc_offsets()), (std::vector<double>{0, 7200, -5400}));
  EXPECT_FALSE(of_utc->ask<LocalTimes>()->utc_offsets().defined());
}

TEST_F(CsvColumns, DatesOfALaterFileAreReadLikeThoseOfTheTraining) {
  write("day,a,y\n2020-01-01,1,2\n2020-01-02,3,4\n");
  const Json parameters{{"dates", {"day"}}};
  const auto training = open(parameters);

  const auto later = open_later(Purpose::kPredict, *training, "a,day\n5,1970-01-02\n", parameters);

  EXPECT_EQ(names(*later), names(*training));
  EXPECT_EQ(features(*later)[0], 1);
  EXPECT_EQ(features(*later).back(), 5);
}

TEST_F(CsvColumns, AMissingDateIsMissingInAllItBecomes) {
  write("day,y\n2020-01-01,2\n,4\n");

  const auto data = open({{"dates", {"day"}}, {"calendar", {"weekend"}}, {"missing", "nan"}});

  const std::vector<double> read = features(*data);
  EXPECT_TRUE(std::isnan(read[2]) && std::isnan(read[3]));
  EXPECT_TRUE(data->spec().inputs[0].columns[1].may_be_missing);
}

TEST_F(CsvColumns, WhatIsNoDateIsRefusedWithItsLine) {
  EXPECT_EQ(error("day,y\n2020-01-01,2\n31/12/2020,4\n", {{"dates", {"day"}}}),
            "x.csv:3: column \"day\": expected an ISO 8601 date or date and time, got "
            "\"31/12/2020\"; set \"date_format\", to \"%d/%m/%Y\" perhaps");
  EXPECT_EQ(error("day,y\n2020-01-01,2\nMonday,4\n", {{"dates", {"day"}}}),
            "x.csv:3: column \"day\": expected an ISO 8601 date or date and time, got "
            "\"Monday\"; list the column in \"categorical\" instead");
  EXPECT_THAT(error("day,y\n2020-01-01,2\n", {{"dates", {"day"}}, {"categorical", {"day"}}}),
              HasSubstr("in \"categorical\" and in \"dates\""));
  EXPECT_THAT(error("day,y\n2020-01-01,2\n", {{"dates", {"y"}}}),
              HasSubstr("\"y\" is in \"dates\", but not among the columns to predict from"));
  EXPECT_THAT(error("day,day.days,y\n2020-01-01,1,2\n", {{"dates", {"day"}}}),
              HasSubstr("two inputs are named \"day.days\""));
  EXPECT_THAT(error("day,y\n1,2\n", {{"calendar", {"hour"}}}),
              HasSubstr("has no effect without \"dates\""));
}

TEST_F(CsvColumns, UnknownCategoriesAndMissingValuesMayBeMissingValues) {
  const Json parameters{
      {"categorical", {"town"}}, {"missing", "nan"}, {"handle_unknown", "missing"}};
  write("town,size,y\nUlm,1,2\nBonn,3,4\n");
  const auto training = open(parameters);

  const auto later =
      open_later(Purpose::kPredict, *training, "town,size\nKiel,5\nUlm,\n", parameters);

  EXPECT_TRUE(training->spec().inputs[0].columns[0].may_be_missing);
  EXPECT_THAT(input(*later, "categories"), ElementsAre(-1, 1));
  EXPECT_TRUE(std::isnan(features(*later)[1]));
}

TEST_F(CsvColumns, ARowWithoutTargetCanBeLeftOutWhileFeaturesMayBeMissing) {
  const Json parameters{{"missing", "nan"}, {"missing_target", "drop_row"}};
  write("a,y\n1,2\n3,\n,4\n");

  const auto data = open(parameters);

  EXPECT_EQ(targets(*data), (std::vector<double>{2, 4}));
  EXPECT_TRUE(std::isnan(features(*data)[1]));
  EXPECT_EQ(error("a,y\n1,\n2,NA\n", parameters), "x.csv: none of the 2 rows has a target");
  EXPECT_EQ(error("a,y\n1,2\n3,\n", {{"missing", "nan"}}),
            "x.csv:3: column \"y\": the value is missing; \"missing\": \"nan\" is for columns to "
            "predict from only; \"missing_target\": \"drop_row\" leaves such rows out");
}

}  // namespace
}  // namespace treadle::csv
