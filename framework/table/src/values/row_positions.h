#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace treadle::table {

/// The position in its source of each row that was kept: a line, a number of rows. Stores only the
/// rows that are not one position behind the row before: most tables have one such row.
class RowPositions {
 public:
  /// The next `count` rows are at `position`, position + 1, …
  void add(std::int64_t position, std::int64_t count = 1) {
    if (breaks_.empty() || position != breaks_.back().second + rows_ - breaks_.back().first)
      breaks_.emplace_back(rows_, position);
    rows_ += count;
  }

  /// Those of further rows.
  void add(const RowPositions& more) {
    for (std::size_t i = 0; i < more.breaks_.size(); ++i) {
      const auto& [row, position] = more.breaks_[i];
      const std::int64_t end = i + 1 < more.breaks_.size() ? more.breaks_[i + 1].first : more.rows_;
      add(position, end - row);
    }
  }

  std::int64_t rows() const { return rows_; }
  /// Rows that are not one position behind the one before, with their positions.
  const std::vector<std::pair<std::int64_t, std::int64_t>>& breaks() const { return breaks_; }

  /// Expects a row that was added.
  std::int64_t position_of(std::int64_t row) const {
    auto after =
        std::upper_bound(breaks_.begin(), breaks_.end(), row,
                         [](std::int64_t r, const auto& entry) { return r < entry.first; });
    const auto& [first_row, first_position] = *--after;
    return first_position + row - first_row;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> breaks_;  // row, position
  std::int64_t rows_ = 0;
};

}  // namespace treadle::table
