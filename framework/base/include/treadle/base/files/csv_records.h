#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// The records of a small CSV text, as RFC 4180 has them: fields between commas, in quotes where
/// they hold commas, quotes or line ends; see csv_field(). Lines without any character are skipped,
/// and a mark of UTF-8 in front is.
class CsvRecords {
 public:
  /// Messages call the text `shown`. Both outlive this.
  CsvRecords(std::string_view text, const std::string& shown);

  /// Whether there is another record, whose fields replace `fields`. Throws DataError with the line
  /// for a quote without an end, and for a character between a quote and the end of its field.
  bool next(std::vector<std::string>& fields);

  /// The line, from 1, at which the last record began.
  std::int64_t line() const { return begin_line_; }

 private:
  void end_line();
  std::string field();
  std::string quoted_field();

  std::string_view text_;
  const std::string& shown_;
  std::size_t place_ = 0;
  std::int64_t line_ = 1;
  std::int64_t begin_line_ = 1;
};

}  // namespace treadle
