#include "data/series_times.h"

#include <vector>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/base/random.h>
#include <treadle/core/data/matrix_rows.h>

namespace treadle::internal {
namespace {

constexpr double kDay = 86400;

MatrixRows rows_at(const std::vector<double>& times, bool are_dates,
                   const std::vector<std::int64_t>& groups = {}) {
  MatrixRows::Matrices rows;
  const auto count = static_cast<std::int64_t>(times.size());
  rows.spec.inputs = {{"features", {1}, {{"x"}}}};
  rows.spec.has_dates = are_dates;
  rows.inputs = {at::zeros({count, 1})};
  rows.timestamps = at::tensor(times, at::kDouble);
  if (!groups.empty())
    rows.groups = at::tensor(groups, at::kLong);
  return MatrixRows(std::move(rows));
}

// Days since 1970: 2023-12-31 is 19722.
TEST(SeriesTimes, GoOnByTheDistanceOfTheRows) {
  const MatrixRows hours = rows_at({19722 * kDay, 19722 * kDay + 3600, 19722 * kDay + 7200}, true);
  const MatrixRows numbers = rows_at({1, 3, 5, 8}, false);

  EXPECT_EQ(SeriesTimes(hours).text(0, 1), "2023-12-31 01:00");
  EXPECT_EQ(SeriesTimes(hours).text(0, 26), "2024-01-01 02:00");
  EXPECT_EQ(SeriesTimes(numbers).text(0, 4), "10") << "the median distance is 2";
}

// 2023-11-30, 2023-12-31, 2024-01-31: each the last day of its month.
TEST(SeriesTimes, GoOnByMonths) {
  const MatrixRows ends = rows_at({19691 * kDay, 19722 * kDay, 19753 * kDay}, true);
  const SeriesTimes times(ends);

  EXPECT_EQ(times.text(0, 3), "2024-02-29 00:00");
  EXPECT_EQ(times.text(0, 5), "2024-04-30 00:00");
  // 2023-10-15, 2024-01-15: quarters.
  const MatrixRows quarters = rows_at({19645 * kDay, 19737 * kDay}, true);
  EXPECT_EQ(SeriesTimes(quarters).text(0, 2), "2024-04-15 00:00");
}

// 2024-01-01, a Monday, is day 19723.
TEST(SeriesTimes, GoOnByTheDaysOfTheWeekThatHaveRows) {
  RandomBits bits(2);
  for (int round = 0; round < 200; ++round) {
    // Two days off one behind the other, or one, or none; at any time of the day, so that a Monday
    // of some place is a Sunday here.
    const std::uint64_t off = bits.below(7);
    const std::uint64_t count = bits.below(3);
    const double time_of_day = static_cast<double>(bits.below(24)) * 3600;
    const auto is_off = [&](std::int64_t day) {
      const auto behind = static_cast<std::uint64_t>(day + 70 - static_cast<std::int64_t>(off)) % 7;
      return behind < count;
    };
    std::vector<double> days;
    for (std::int64_t day = 19723; day < 19723 + 40; ++day) {
      if (!is_off(day) && bits.below(12) != 0)
        days.push_back(static_cast<double>(day) * kDay + time_of_day);
    }
    const auto rows = static_cast<std::int64_t>(days.size());
    const MatrixRows series = rows_at(days, true);
    const SeriesTimes times(series);

    auto expected = static_cast<std::int64_t>((days.back() - time_of_day) / kDay);
    for (std::int64_t further = 0; further < 9; ++further) {
      do {
        ++expected;
      } while (is_off(expected));
      const MatrixRows alone = rows_at({static_cast<double>(expected) * kDay + time_of_day}, true);
      EXPECT_EQ(times.text(0, rows + further), SeriesTimes(alone).text(0, 0));
    }
  }
}

TEST(SeriesTimes, GoOnByMonthsBehindAHole) {
  // 2023-08-31, 2023-09-30, 2023-11-30 (not October), 2023-12-31.
  const MatrixRows ends = rows_at({19600 * kDay, 19630 * kDay, 19691 * kDay, 19722 * kDay}, true);

  EXPECT_EQ(SeriesTimes(ends).text(0, 4), "2024-01-31 00:00");
  EXPECT_EQ(SeriesTimes(ends).text(0, 5), "2024-02-29 00:00");
}

TEST(SeriesTimes, KnowTheRowsBehindHoles) {
  RandomBits bits(6);
  for (int round = 0; round < 200; ++round) {
    // Hours, days without weekends, or days; some rows are missing.
    const std::uint64_t kind = bits.below(3);
    std::vector<double> times;
    std::vector<std::int64_t> behind;
    bool is_behind = false;
    for (std::int64_t place = 0; place < 120; ++place) {
      const std::int64_t day = 19723 + place;
      const bool is_day_off = kind == 1 && (day - 19723) % 7 >= 5;
      if (is_day_off)
        continue;
      if (place > 20 && place < 115 && bits.below(30) == 0) {
        is_behind = true;
        continue;
      }
      if (is_behind)
        behind.push_back(static_cast<std::int64_t>(times.size()));
      is_behind = false;
      times.push_back(kind == 0 ? 19723 * kDay + static_cast<double>(place) * 3600
                                : static_cast<double>(day) * kDay);
    }
    const MatrixRows rows = rows_at(times, true);

    EXPECT_EQ(SeriesTimes(rows).rows_behind_holes(), behind) << "kind " << kind;
  }
  // Events at any time have no holes.
  std::vector<double> events{0};
  while (events.size() < 100)
    events.push_back(events.back() + 1 + static_cast<double>(bits.below(1000)));
  const MatrixRows irregular = rows_at(events, true);
  EXPECT_TRUE(SeriesTimes(irregular).rows_behind_holes().empty());
}

TEST(SeriesTimes, OfEachSeriesAreItsOwn) {
  const MatrixRows two = rows_at({1, 2, 3, 10, 20, 30}, false, {4, 4, 4, 2, 2, 2});
  const SeriesTimes times(two);

  EXPECT_EQ(times.series_of_row(2), (RowRange{0, 3}));
  EXPECT_EQ(times.text(0, 3), "4");
  EXPECT_EQ(times.text(4, 7), "50");
}

}  // namespace
}  // namespace treadle::internal
