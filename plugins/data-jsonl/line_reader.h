#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::jsonl {

/// Reads a file line by line, in pieces of a mebibyte. A line ends with LF, the last also with the
/// file; lines of blanks are skipped, as is a byte order mark. One user, one thread.
class LineReader {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{64} << 20;

  /// `shown` is the file's name in messages. Throws DataError when it cannot be read.
  LineReader(const std::filesystem::path& path, std::string shown);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// The next line that is not blank, without its end; valid until the next call. False at the end
  /// of the file. Throws DataError for a line longer than kLongestLine.
  bool next(std::string_view& line);
  /// Whether next() would give one.
  bool has_next();

  /// The number of the line that next() gave last, from 1.
  std::int64_t line() const { return line_; }
  /// The byte of the file behind it.
  std::int64_t offset() const { return offset_ - static_cast<std::int64_t>(end_ - begin_); }
  /// The next line starts at byte `offset`, behind line `line`.
  void go_to(std::int64_t offset, std::int64_t line);

 private:
  /// Finds the end of the line at begin_, reading on as needed; false at the end of the file.
  bool find_end(std::size_t& length);
  void fill();

  std::string shown_;
  int descriptor_ = -1;
  bool at_end_of_file_ = false;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;    // of the next line in buffer_
  std::size_t end_ = 0;      // of the bytes read so far
  std::int64_t offset_ = 0;  // of end_ in the file
  std::int64_t line_ = 0;
};

}  // namespace treadle::jsonl
