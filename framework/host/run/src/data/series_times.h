#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <treadle/core/data/row_reader.h>
#include <treadle/core/data/sequence_provider.h>

namespace treadle::internal {

/// The times of rows of series, those after the last among them: a series goes on as its last rows
/// did. Rows of dates that are months apart (each on the same day of a month, or each on its last)
/// go on by months; daily ones that leave out some days of the week, as business days do, leave
/// them out again; others go on by the median of their distances. Holes change none of this.
class SeriesTimes {
 public:
  /// Borrows `rows`, the data's own. Throws DataError where times do not rise.
  explicit SeriesTimes(const RowReader& rows);

  bool has_times() const { return times_.defined(); }

  /// The series that a row belongs to.
  const RowRange& series_of_row(std::int64_t row) const;

  /// The rows before which others are missing: their times are not those that follow the row above.
  /// None of a series whose times are of no regular distance. Costs as much as reading the times.
  std::vector<std::int64_t> rows_behind_holes() const;

  /// The time `row` has in the series of `of`, as a text; a row beyond the end of the series is one
  /// that would follow it. Empty without times.
  std::string text(std::int64_t of, std::int64_t row) const;

 private:
  /// How a series goes on.
  struct Step {
    double seconds = 1;       // in the unit of the times
    std::int64_t months = 0;  // instead, where not 0
    bool is_last_day = false;
    std::array<bool, 7> left_out = {};  // days of the week, from 1970-01-01's on: of daily ones
  };
  Step step_of(const RowRange& series) const;
  /// The time so many steps behind another one. Expects that times are dates where a step has
  /// months or days.
  static double time_behind(double time, const Step& step, std::int64_t steps);
  bool goes_on_by_months(const RowRange& rows, Step& step) const;
  void find_days_left_out(const RowRange& rows, Step& step) const;

  std::vector<RowRange> series_;
  at::Tensor times_;  // float64 [N], contiguous
  bool are_dates_ = false;
};

}  // namespace treadle::internal
