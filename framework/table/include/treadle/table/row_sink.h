#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace treadle::table {

/// A point in time: nanoseconds count up from `seconds`, those since 1970-01-01T00:00:00Z.
struct Timestamp {
  std::int64_t seconds = 0;
  std::int32_t nanoseconds = 0;  ///< 0 to 999 999 999
  std::int32_t utc_offset = 0;   ///< seconds that the clock it was read from is ahead of UTC
};

/// Points in time as columnar formats have them: counts of 1/per_second seconds since 1970, UTC.
struct Timestamps {
  std::span<const std::int64_t> counts;
  std::int64_t per_second = 1'000'000;
};

/// The values of one column in some rows. Everything is borrowed for a call.
struct ColumnChunk {
  /// std::monostate: not read, which is allowed for a column that the sink has no use for.
  using Values = std::variant<std::monostate, std::span<const double>, std::span<const float>,
                              std::span<const std::int64_t>, std::span<const std::int32_t>,
                              std::span<const std::string_view>, Timestamps>;
  Values values;
  /// One byte a row, 0 where the value is missing; empty: none is. A missing value has a place in
  /// `values` all the same.
  std::span<const std::uint8_t> valid;
};

/// Takes the rows of a table, in order, from a TableSource: row by row,
///
///     sink.begin_row(line);
///     for (std::size_t column = 0; column < sink.columns(); ++column)
///       sink.text(column, fields[column]);
///     sink.end_row();
///
/// or many rows at once, column by column, with add(). Each column whose wants() is not kNothing is
/// given one value in each row, or missing(). begin_row() again, without end_row(), forgets the row
/// begun before.
///
/// A text is what a field of a CSV file is: it may be a number, a date, or one of the
/// `missing_values`. Numbers are compared with those, too; NaN is missing always. As a category, a
/// class or a group, 3.0 is the text "3". A value that the table cannot use makes its row a bad
/// one, which is reported when all rows have been read.
///
/// One user, one thread.
class RowSink {
 public:
  /// The values that a column is used for. A hint: every column takes values of every type.
  enum class Wants : std::uint8_t {
    kNothing,  ///< whatever is given is ignored
    kNumber,
    kTime,
    kText  ///< a category, a class, a group, or text as it is
  };

  RowSink(const RowSink&) = delete;
  RowSink& operator=(const RowSink&) = delete;
  virtual ~RowSink();

  std::size_t columns() const { return wants_.size(); }
  Wants wants(std::size_t column) const { return wants_[column]; }

  /// Whether put() is worth trying.
  bool is_plain(std::size_t column) const { return places_[column].is_plain; }

  /// `position` is the row's place in the source, rising from row to row: a line, a number of rows.
  /// TableSource::place_of() makes words of it.
  void begin_row(std::int64_t position) {
    position_ = position;
    do_begin_row();
  }

  /// Puts down a number where that takes no rule. False, and nothing is done, where it does: the
  /// value then comes by text() or number().
  bool put(std::size_t column, double value) {
    const Place place = places_[column];
    if (!place.is_plain || !(std::abs(value) <= std::numeric_limits<double>::max()) ||
        (!missing_numbers_.empty() && is_missing_number(value))) [[unlikely]] {
      return false;
    }
    rows_[place.part][place.slot] = value;
    return true;
  }

  void number(std::size_t column, double value) {
    if (!put(column, value))
      do_number(column, value);
  }
  /// Exact where the column is one of texts; else a double.
  void integer(std::size_t column, std::int64_t value) { do_integer(column, value); }
  void text(std::size_t column, std::string_view value) { do_text(column, value); }
  void time(std::size_t column, const Timestamp& value) { do_time(column, value); }
  void missing(std::size_t column) { do_missing(column); }

  void end_row() { do_end_row(); }
  /// Instead of end_row(): the source cannot read the row. The sentence follows the row's place.
  void bad_row(const std::string& sentence) { do_bad_row(sentence); }

  /// `rows` rows at positions `first`, first + 1, …; a chunk for each column. Numbers without
  /// missing values are copied column by column.
  void add(std::span<const ColumnChunk> chunks, std::size_t rows, std::int64_t first) {
    do_add(chunks, rows, first);
  }

 protected:
  /// A number that goes to rows_[part][slot] as it is.
  struct Place {
    bool is_plain = false;
    std::uint32_t part = 0;
    std::uint32_t slot = 0;
  };

  explicit RowSink(std::size_t columns) : wants_(columns, Wants::kNothing), places_(columns) {}

  std::int64_t position() const { return position_; }
  bool is_missing_number(double value) const;
  /// The default of do_time(): ISO 8601.
  void time_as_text(std::size_t column, const Timestamp& value);
  /// Gives rows [begin, begin + rows) of the chunks one by one; `first` is the position of `begin`.
  void add_row_by_row(std::span<const ColumnChunk> chunks, std::size_t begin, std::size_t rows,
                      std::int64_t first);

  std::vector<Wants> wants_;
  std::vector<Place> places_;
  std::vector<double*> rows_;            // the current row of each part
  std::vector<double> missing_numbers_;  // texts for "missing" that are numbers

 private:
  virtual void do_begin_row() = 0;
  virtual void do_text(std::size_t column, std::string_view value) = 0;
  virtual void do_missing(std::size_t column) = 0;
  virtual void do_end_row() = 0;
  virtual void do_bad_row(const std::string& sentence) = 0;
  // The default of these three writes the value as text: the shortest of a double, ISO 8601.
  virtual void do_number(std::size_t column, double value);
  virtual void do_integer(std::size_t column, std::int64_t value);
  virtual void do_time(std::size_t column, const Timestamp& value) { time_as_text(column, value); }
  virtual void do_add(std::span<const ColumnChunk> chunks, std::size_t rows, std::int64_t first);

  std::int64_t position_ = 0;
};

}  // namespace treadle::table
