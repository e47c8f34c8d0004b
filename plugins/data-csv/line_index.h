#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace treadle::csv {

/// The line in which each row starts. Keeps only the rows that are not one line below the row
/// before: most files have one such row.
class LineIndex {
 public:
  /// The next row starts in `line`.
  void add(std::int64_t line) {
    if (breaks_.empty() || line != breaks_.back().second + rows_ - breaks_.back().first)
      breaks_.emplace_back(rows_, line);
    ++rows_;
  }

  std::int64_t rows() const { return rows_; }
  /// Rows that do not begin one line below the one before, with their lines: what all follows from.
  const std::vector<std::pair<std::int64_t, std::int64_t>>& breaks() const { return breaks_; }

  /// Expects a row that was added.
  std::int64_t line_of(std::int64_t row) const {
    auto after =
        std::upper_bound(breaks_.begin(), breaks_.end(), row,
                         [](std::int64_t r, const auto& entry) { return r < entry.first; });
    const auto& [first_row, first_line] = *--after;
    return first_line + row - first_row;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> breaks_;  // row, line
  std::int64_t rows_ = 0;
};

}  // namespace treadle::csv
