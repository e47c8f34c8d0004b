#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/core/data/row_reader.h>

namespace treadle {

/// A value that a column is made of: that of a column of the source, so many steps before its own
/// row; 0 is the row itself.
struct ColumnOrigin {
  std::string column;
  std::int64_t steps_before = 0;

  bool operator==(const ColumnOrigin&) const = default;
};

/// What the columns of data are made of, by the names of the source's columns: themselves, lags,
/// differences.
///
/// An optional ability of a DataProvider (`provider.ask<ColumnOrigins>()`), after open(). Const
/// functions are thread-safe.
class ColumnOrigins {
 public:
  static constexpr std::string_view kInterface = "treadle.column-origins/0";

  virtual ~ColumnOrigins();

  /// Of a column of an input: of each source column the newest value. Empty: of no values, as a
  /// feature of the calendar, or not known.
  std::vector<ColumnOrigin> of_input(const std::string& column) const {
    return do_of_input(column);
  }
  /// The source columns whose values the target has; empty: not known.
  std::vector<std::string> of_target(const std::string& target) const {
    return do_of_target(target);
  }

 private:
  virtual std::vector<ColumnOrigin> do_of_input(const std::string& column) const = 0;
  virtual std::vector<std::string> do_of_target(const std::string& target) const = 0;
};

/// Refuses rows, or samples of rows, in which an input holds what is to be predicted: the value of
/// a target at a time when it is not known yet. A column that is made of a target's value k steps
/// before its row is known in time where k >= SampleReader::steps_ahead(); for rows that are no
/// samples, where k >= 1.
///
/// Inputs that are nothing but the targets are the task itself, as of an autoencoder, and are
/// taken. Throws a DataError that names column, step and sample. Costs nothing per row.
void expect_no_answers(const RowReader& rows, const ColumnOrigins& origins);

}  // namespace treadle
