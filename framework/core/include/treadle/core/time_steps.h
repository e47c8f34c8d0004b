#pragma once

#include <cstdint>
#include <vector>

#include <treadle/core/cross_validator.h>

namespace treadle {

/// Rows on the axis of time: which come first, and how far apart they are in steps. A step is one
/// distinct time; rows of one time share it, so that a split in time never cuts through them.
///
/// The time of a row is its timestamp, and that of a sample the time of the first row it predicts.
/// Without timestamps rows are in their own order, each a step, and samples in that of the rows
/// they predict.
class TimeSteps {
 public:
  enum class Axis {
    kRows,  ///< steps are the times of the rows to split
    kData   ///< steps are the times of the data's own rows, which samples are made of
  };

  /// Throws DataError for samples of several series without timestamps: nobody knows which are
  /// earlier.
  TimeSteps(const SplitRequest& request, Axis axis);

  std::int64_t count() const { return count_; }
  /// The step at which the target of the row begins, and the last one it reaches.
  std::int64_t first(std::int64_t row) const { return first_[static_cast<std::size_t>(row)]; }
  std::int64_t last(std::int64_t row) const { return last_[static_cast<std::size_t>(row)]; }

  /// The rows whose target begins in [begin, end), in order of time; those of one step in their
  /// own.
  std::vector<std::int64_t> beginning_in(std::int64_t begin, std::int64_t end) const;
  /// Those whose whole target lies in [begin, end).
  std::vector<std::int64_t> within(std::int64_t begin, std::int64_t end) const;

 private:
  std::int64_t count_ = 0;
  std::vector<std::int64_t> first_;
  std::vector<std::int64_t> last_;
  std::vector<std::int64_t> order_;      // rows by first_
  std::vector<std::int64_t> beginning_;  // of each step in order_, and its end
};

}  // namespace treadle
