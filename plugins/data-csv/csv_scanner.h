#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/error.h>

#include <treadle/table/byte_source.h>

#include "csv_options.h"

namespace treadle::csv {

/// Text that is not UTF-8, and the encoding that it seems to have.
class EncodingError final : public DataError {
 public:
  EncodingError(const std::string& message, std::string likely);
  ~EncodingError() override;

  const std::string& likely() const { return likely_; }

 private:
  std::string likely_;
};

/// Cuts a file into rows and fields. Reads it once, in pieces of a mebibyte; a row that reaches
/// over the end of a piece is begun again when more has been read. One user, one thread.
///
///     while (const char* p = scanner.begin_row()) {
///       for (;;) {
///         Field field = scanner.field(p);
///         if (field.after == After::kMore) { scanner.more(); break; }  // the same row again
///         if (field.after == After::kRow) { scanner.end_row(p); break; }
///       }
///     }
///
/// A line ends with LF, CRLF or CR, the last also with the file. Blank lines are no rows. Throws
/// DataError "FILE:LINE: …" when the text cannot be cut: an open quote, a NUL byte, a row that is
/// not UTF-8, bytes that cannot be unpacked or converted.
class CsvScanner {
 public:
  enum class After : std::uint8_t {
    kField,  ///< another field follows
    kRow,    ///< the row ends
    kMore    ///< unknown: what has been read ends here
  };
  struct Field {
    /// Without quotes, and without spaces and tabs around it unless they stood between quotes.
    /// Valid until the next call.
    std::string_view text;
    After after = After::kField;
  };

  /// Throws DataError when the file cannot be read, or is of another format.
  CsvScanner(const std::filesystem::path& path, const CsvOptions& options);
  CsvScanner(const CsvScanner&) = delete;
  CsvScanner& operator=(const CsvScanner&) = delete;
  ~CsvScanner() = default;

  /// Passes over `count` lines, whatever is in them.
  void skip_lines(std::int64_t count);

  /// Where the next row starts, or null at the end of the file.
  const char* begin_row();
  /// Reads the field at `p` and moves `p` behind it and its separator.
  Field field(const char*& p);
  /// Moves `p`, which stands on a byte for which ends_field() holds, behind it.
  After step(const char*& p);
  /// The current row ended before `p`.
  void end_row(const char* p);
  /// Reads on; the current row is to be begun again.
  void more();

  /// The fields of the next row as texts, without ending it (`peek`) or ending it. Empty at the
  /// end.
  std::vector<std::string> peek_row();
  std::vector<std::string> read_row();

  bool ends_field(char c) const { return ends_field_[static_cast<unsigned char>(c)]; }
  /// The line the current row starts in, from 1.
  std::int64_t line() const { return line_; }
  /// The byte that it starts at, of the text in UTF-8.
  std::int64_t offset() const { return offset_ - (end_ - begin_); }
  /// Goes on at a row that starts at byte `offset`, in `line`. Throws DataError for a pipe, and for
  /// a file that was changed.
  void go_to(std::int64_t offset, std::int64_t line);
  const std::string& shown() const { return shown_; }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  Field quoted_field(const char*& p);
  std::vector<std::string> texts(const char*& end);
  void fill();
  std::size_t read_bytes(char* to, std::size_t room);
  /// The line that `p` is in, from the start of the current row.
  std::int64_t line_at(const char* p) const;
  void find_bad_byte();
  [[noreturn]] void fail_for_bad_byte() const;
  [[noreturn]] void fail_for_nul() const;

  std::filesystem::path path_;
  std::string shown_;
  std::string encoding_;
  std::string stamp_;
  char separator_;
  char quote_;
  std::array<bool, 256> ends_field_{};  // separator, line ends and NUL
  std::unique_ptr<table::ByteSource> source_;
  bool at_end_of_file_ = false;
  std::int64_t offset_ = 0;  // of end_
  std::vector<char> buffer_;
  char* begin_ = nullptr;      // of the current row
  char* end_ = nullptr;        // of what has been read; followed by zeros
  const char* bad_ = nullptr;  // the first byte that is not UTF-8, else end_
  std::int64_t line_ = 1;
  std::int64_t lines_in_quotes_ = 0;  // line ends inside fields of the current row
  std::string unquoted_;
};

inline CsvScanner::After CsvScanner::step(const char*& p) {
  if (*p == separator_) {
    ++p;
    return After::kField;
  }
  if (*p == '\n') {
    ++p;
    return After::kRow;
  }
  if (*p == '\r') {
    if (p + 1 == end_ && !at_end_of_file_)
      return After::kMore;
    p += p[1] == '\n' ? 2 : 1;
    return After::kRow;
  }
  // The last row of the file ends with a line end, which fill() adds when it is not there.
  if (p == end_)
    return After::kMore;
  fail_for_nul();
}

inline void CsvScanner::end_row(const char* p) {
  if (p > bad_) [[unlikely]]
    fail_for_bad_byte();
  begin_ += p - begin_;
  line_ += 1 + lines_in_quotes_;
  lines_in_quotes_ = 0;
}

}  // namespace treadle::csv
