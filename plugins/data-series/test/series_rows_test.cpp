#include "series_rows.h"

#include <functional>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "time_grid.h"

namespace treadle::series {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr double kHour = 3600;

/// Rows with one number, which is the target as well.
MatrixRows rows_of(const std::vector<double>& times, const std::vector<double>& values,
                   const std::vector<std::int64_t>& groups = {}, bool are_dates = true) {
  MatrixRows::Matrices rows;
  rows.spec.inputs = {{"features", {1}, {{"y"}}, Role::kFeatures, at::kDouble}};
  rows.spec.targets = {number_target("y")};
  rows.spec.has_dates = are_dates;
  rows.inputs = {at::tensor(values, at::kDouble).unsqueeze(1)};
  rows.targets = {rows.inputs[0].clone()};
  rows.timestamps = at::tensor(times, at::kDouble);
  if (!groups.empty())
    rows.groups = at::tensor(groups, at::kLong);
  return MatrixRows(std::move(rows));
}

MatrixRows::Matrices series_of(const MatrixRows& rows, const Json& parameters) {
  return series_rows(rows, SeriesOptions(Config(parameters)));
}

std::vector<double> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).reshape(-1).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

std::string complaint_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// 1970-01-01 was a Thursday; 2024-02-29 is day 19782.
TEST(TimeGrid, BeginsHoursDaysWeeksAndMonthsWhereACalendarDoes) {
  const double noon = 19782 * kDay + 12.5 * kHour;

  EXPECT_EQ(TimeGrid("15min").time_of(TimeGrid("15min").step_of(noon + 60)), noon);
  EXPECT_EQ(TimeGrid("1h").time_of(TimeGrid("1h").step_of(noon)), noon - 0.5 * kHour);
  EXPECT_EQ(TimeGrid("1d").time_of(TimeGrid("1d").step_of(noon)), 19782 * kDay);
  // Monday, 2024-02-26.
  EXPECT_EQ(TimeGrid("1w").time_of(TimeGrid("1w").step_of(noon)), 19779 * kDay);
  EXPECT_EQ(TimeGrid("1mo").time_of(TimeGrid("1mo").step_of(noon)), 19754 * kDay);
  EXPECT_EQ(TimeGrid("3mo").time_of(TimeGrid("3mo").step_of(noon) + 1), 19814 * kDay);
  EXPECT_EQ(TimeGrid("1mo").time_of(TimeGrid("1mo").step_of(-1.0)), -31 * kDay);
  EXPECT_EQ(TimeGrid(0.5).time_of(TimeGrid(0.5).step_of(1.7)), 1.5);
}

TEST(SeriesRows, AreSortedByTimeWithinEachSeries) {
  const MatrixRows rows = rows_of({30, 20, 10, 5}, {3, 2, 1, 9}, {7, 4, 7, 4});

  const MatrixRows::Matrices made = series_of(rows, Json::object());

  EXPECT_THAT(numbers(made.groups), ElementsAre(7, 7, 4, 4));
  EXPECT_THAT(numbers(made.timestamps), ElementsAre(10, 30, 5, 20));
  EXPECT_THAT(numbers(made.inputs[0]), ElementsAre(1, 3, 9, 2));
  EXPECT_THAT(numbers(made.targets[0]), ElementsAre(1, 3, 9, 2));
  EXPECT_EQ(made.describe_row(0), "row 2");
}

// Hours 0 (two rows), 1 and 4; the hours 2 and 3 have none.
TEST(SeriesRows, BecomeOneAStep) {
  const MatrixRows rows = rows_of({60, 1800, kHour, 4 * kHour + 5}, {1, 3, 8, 20});
  const auto made = [&](const char* aggregate, const char* fill) {
    return numbers(
        series_of(rows, {{"frequency", "1h"}, {"aggregate", aggregate}, {"fill", fill}}).inputs[0]);
  };

  EXPECT_THAT(made("mean", "forward"), ElementsAre(2, 8, 8, 8, 20));
  EXPECT_THAT(made("sum", "linear"), ElementsAre(4, 8, 12, 16, 20));
  EXPECT_THAT(made("max", "zero"), ElementsAre(3, 8, 0, 0, 20));
  EXPECT_THAT(made("first", "zero"), ElementsAre(1, 8, 0, 0, 20));
  EXPECT_THAT(made("last", "zero"), ElementsAre(3, 8, 0, 0, 20));
  EXPECT_THAT(made("min", "zero"), ElementsAre(1, 8, 0, 0, 20));
  const auto filled = series_of(rows, {{"frequency", "1h"}, {"fill", "zero"}});
  EXPECT_EQ(filled.describe_row(3), "filled after row 2");
  EXPECT_THAT(numbers(filled.timestamps), ElementsAre(0, kHour, 2 * kHour, 3 * kHour, 4 * kHour));
}

// The hours 2 and 3 have no rows.
TEST(SeriesRows, GuessesCountNowhereAndZerosAreObservations) {
  MatrixRows::Matrices weighted = rows_of({0, kHour, 4 * kHour}, {4, 8, 20}).matrices();
  weighted.spec.has_weights = true;
  weighted.weights = at::tensor({3.0, 2.0, 5.0}, at::kDouble);
  const MatrixRows with_weights(std::move(weighted));
  const MatrixRows without = rows_of({0, kHour, 4 * kHour}, {4, 8, 20});
  const auto filled = [](const MatrixRows& rows, const char* fill) {
    return series_of(rows, {{"frequency", "1h"}, {"fill", fill}});
  };

  for (const char* const guess : {"forward", "linear"}) {
    EXPECT_THAT(numbers(filled(without, guess).weights), ElementsAre(1, 1, 0, 0, 1));
    EXPECT_THAT(numbers(filled(with_weights, guess).weights), ElementsAre(3, 2, 0, 0, 5));
  }
  EXPECT_FALSE(filled(without, "zero").weights.defined());
  EXPECT_THAT(numbers(filled(with_weights, "zero").weights), ElementsAre(3, 2, 2, 2, 5));
}

TEST(SeriesRows, ALineIsKnownFromTheRowThatItEndsWith) {
  const MatrixRows rows = rows_of({0, kHour, 4 * kHour, 5 * kHour}, {4, 8, 20, 21});
  const auto filled = [&](const char* fill) {
    return series_of(
        rows, {{"frequency", "1h"}, {"fill", fill}, {"lags", {{{"column", "y"}, {"steps", {1}}}}}});
  };

  const MatrixRows::Matrices line = filled("linear");
  // The first step has no lag.
  EXPECT_THAT(numbers(line.known_from),
              ElementsAre(kHour, 4 * kHour, 4 * kHour, 4 * kHour, 5 * kHour));
  EXPECT_THAT(numbers(line.inputs[0].select(1, 0)), ElementsAre(8, 12, 16, 20, 21));
  EXPECT_THAT(numbers(line.inputs[0].select(1, 1)), ElementsAre(4, 8, 8, 8, 20)) << "as known then";
  EXPECT_FALSE(filled("forward").known_from.defined());
}

// 2024-06-01, a Saturday, is day 19875. Midnights of a clock two hours ahead are 22:00 of UTC.
TEST(SeriesRows, DaysAndCalendarAreThoseOfTheClock) {
  constexpr double kAhead = 2 * kHour;
  std::vector<double> times;
  std::vector<double> values;
  for (int day = 0; day < 9; ++day) {
    if (day == 4)
      continue;
    times.push_back((19875 + day) * kDay - kAhead);
    times.push_back((19875 + day) * kDay - kAhead + 23 * kHour);
    values.push_back(day);
    values.push_back(day + 10);
  }
  const MatrixRows rows = rows_of(times, values);
  const at::Tensor clocks = at::tensor(std::vector<double>(times.size(), kAhead), at::kDouble);
  const auto made = [&](const at::Tensor& utc_offsets) {
    return series_rows(rows,
                       SeriesOptions(Config({{"frequency", "1d"},
                                             {"aggregate", "last"},
                                             {"fill", "forward"},
                                             {"calendar", {"weekend"}}})),
                       utc_offsets);
  };

  const auto [here, elsewhere] = std::pair(made(clocks), made({}));

  EXPECT_THAT(numbers(here.inputs[0].select(1, 0)),
              ElementsAre(10, 11, 12, 13, 13, 15, 16, 17, 18));
  EXPECT_THAT(numbers(here.inputs[0].select(1, 1)), ElementsAre(1, 1, 0, 0, 0, 0, 0, 1, 1));
  EXPECT_EQ(here.timestamps[0].item<double>(), 19875 * kDay - kAhead);
  EXPECT_EQ(elsewhere.timestamps[0].item<double>(), 19874 * kDay);
}

TEST(SeriesRows, HaveLagsAndDifferencesOfTheirOwnSeries) {
  const MatrixRows rows =
      rows_of({0, 1, 2, 0, 1, 2}, {1, 4, 9, 10, 40, 90}, {0, 0, 0, 1, 1, 1}, false);

  const MatrixRows::Matrices made =
      series_of(rows, {{"lags", {{{"column", "y"}, {"steps", {1, 2}}}}},
                       {"differences", {{{"column", "y"}, {"steps", {1}}}}}});

  std::vector<std::string> names;
  for (const Column& column : made.spec.inputs[0].columns)
    names.push_back(column.name);
  EXPECT_THAT(names, ElementsAre("y", "y_lag_1", "y_lag_2", "y_diff_1"));
  EXPECT_THAT(numbers(made.inputs[0]), ElementsAre(9, 4, 1, 5, 90, 40, 10, 50));
  EXPECT_THAT(numbers(made.targets[0]), ElementsAre(9, 90));
}

TEST(SeriesRows, SayWhichRowsDoNotFit) {
  const MatrixRows twice = rows_of({0, kHour, kHour}, {1, 2, 3});
  const MatrixRows gap = rows_of({0, 3 * kHour}, {1, 2});
  const MatrixRows no_dates = rows_of({0, 1}, {1, 2}, {}, false);

  EXPECT_THAT(complaint_of([&] { series_of(twice, Json::object()); }),
              AllOf(HasSubstr("row 2"), HasSubstr("1970-01-01 01:00"), HasSubstr("\"frequency\"")));
  EXPECT_THAT(complaint_of([&] {
                series_of(twice, {{"frequency", "1h"}, {"aggregate", "error"}});
              }),
              AllOf(HasSubstr("row 2"), HasSubstr("\"aggregate\"")));
  EXPECT_THAT(complaint_of([&] {
                series_of(gap, {{"frequency", "1h"}});
              }),
              AllOf(HasSubstr("row 1"), HasSubstr("1970-01-01 01:00"), HasSubstr("\"fill\"")));
  EXPECT_THAT(complaint_of([&] {
                series_of(no_dates, {{"frequency", "1h"}});
              }),
              HasSubstr("\"frequency\" is a number"));
  EXPECT_THAT(complaint_of([&] {
                series_of(no_dates, {{"calendar", {"hour"}}});
              }),
              HasSubstr("needs dates"));
  EXPECT_THAT(complaint_of([&] {
                series_of(gap, {{"lags", {{{"column", "z"}, {"steps", {1}}}}}});
              }),
              AllOf(HasSubstr("no column \"z\""), HasSubstr("\"y\"")));
  EXPECT_THAT(complaint_of([&] {
                series_of(gap, {{"lags", {{{"column", "y"}, {"steps", {2}}}}}});
              }),
              HasSubstr("2 steps that the longest lag leaves out"));
}

}  // namespace
}  // namespace treadle::series
