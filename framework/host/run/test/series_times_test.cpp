#include "load/series_times.h"

#include <vector>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/core/matrix_rows.h>

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

TEST(SeriesTimes, OfEachSeriesAreItsOwn) {
  const MatrixRows two = rows_at({1, 2, 3, 10, 20, 30}, false, {4, 4, 4, 2, 2, 2});
  const SeriesTimes times(two);

  EXPECT_EQ(times.series_of_row(2), (RowRange{0, 3}));
  EXPECT_EQ(times.text(0, 3), "4");
  EXPECT_EQ(times.text(4, 7), "50");
}

}  // namespace
}  // namespace treadle::internal
