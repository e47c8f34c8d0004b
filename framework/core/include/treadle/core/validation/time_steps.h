#pragma once

#include <cstdint>
#include <memory>

#include <treadle/core/validation/cross_validator.h>

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
    kRows,  ///< steps are the times of the rows to split; of samples, those of the data's own rows
            ///< from the first target to the last, however far apart samples begin
    kData   ///< steps are the times of all of the data's own rows, which samples are made of
  };

  /// Throws DataError for samples of several series without timestamps: nobody knows which are
  /// earlier. Where the rows are in order of time already, without timestamps or with rising ones,
  /// nothing is kept by the row, and last() with timestamps is a search; otherwise five numbers.
  TimeSteps(const SplitRequest& request, Axis axis);

  std::int64_t count() const;
  /// The step at which the target of the row begins, and the last one it reaches.
  std::int64_t first(std::int64_t row) const;
  std::int64_t last(std::int64_t row) const;
  /// Whether rows are in order of time as they are, so that nothing had to be sorted.
  bool are_in_order() const;

  /// The rows whose target begins in [begin, end), in order of time; those of one step in their
  /// own.
  RowList beginning_in(std::int64_t begin, std::int64_t end) const;
  /// Those whose whole target lies in [begin, end).
  RowList within(std::int64_t begin, std::int64_t end) const;

  class Order;  // how it is known

 private:
  std::shared_ptr<const Order> order_;
};

}  // namespace treadle
