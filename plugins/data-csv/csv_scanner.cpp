#include "csv_scanner.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

#include <treadle/base/path_words.h>
#include <treadle/table/number_text.h>
#include <treadle/table/source_files.h>

namespace treadle::csv {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kLongestRow = std::size_t{64} << 20;
// Zeros behind what has been read: the end is seen without comparing, and numbers may be read
// ahead.
constexpr std::size_t kPadding = 2 * table::kReadAhead;

/// Files that people take for CSV, by their first bytes.
struct ForeignFormat {
  std::string_view start;
  std::string_view remedy;
};
constexpr std::array<ForeignFormat, 9> kForeignFormats{{
    {"\x1F\x8B", "packed twice; unpack it once"},
    {"\x28\xB5\x2F\xFD", "packed twice; unpack it once"},
    {"BZh", "packed with bzip2; unpack it, or pack it with gzip or Zstandard"},
    {"\xFD\x37zXZ", "packed with xz; unpack it, or pack it with gzip or Zstandard"},
    {"PK\x03\x04", "a workbook of a spreadsheet, or another archive; save the table as CSV"},
    {"\xD0\xCF\x11\xE0", "a workbook of a spreadsheet; save the table as CSV"},
    {"PAR1\x15", "Parquet; read it with the data component \"parquet\""},
    {"ARROW1", "Arrow; save the table as Parquet or CSV"},
    {"SQLite format 3", "a database; read it with a data component for SQLite"},
}};

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/// How many bytes the character at `p` has; 0 when it is none, -1 when it goes on behind `end`.
/// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
int utf8_length(const char* p, const char* end) {
  const auto byte = [&](int i) { return static_cast<unsigned char>(p[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80)
    return 1;
  const int length = first >= 0xC2 && first < 0xE0   ? 2
                     : first >= 0xE0 && first < 0xF0 ? 3
                     : first >= 0xF0 && first < 0xF5 ? 4
                                                     : 0;
  for (int i = 1; i < length; ++i) {
    if (p + i == end)
      return -1;
    const unsigned char lowest = i > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned char highest = i > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte(i) < lowest || byte(i) > highest)
      return 0;
  }
  return length;
}

}  // namespace

EncodingError::EncodingError(const std::string& message, std::string likely)
    : DataError(message), likely_(std::move(likely)) {}

EncodingError::~EncodingError() = default;

CsvScanner::CsvScanner(const std::filesystem::path& path, const CsvOptions& options)
    : path_(path),
      shown_(shown_path(path)),
      encoding_(options.encoding),
      stamp_(table::file_stamp(path)),
      separator_(options.separator),
      quote_(options.quote),
      source_(table::open_bytes(path, shown_, encoding_)) {
  for (const char c : {separator_, '\n', '\r', '\0'})
    ends_field_[static_cast<unsigned char>(c)] = true;
  buffer_.resize(kPiece + kPadding);
  begin_ = end_ = buffer_.data();
  fill();
  const std::string_view start(begin_, static_cast<std::size_t>(end_ - begin_));
  for (const ForeignFormat& format : kForeignFormats) {
    if (start.starts_with(format.start))
      throw DataError(shown_ + ": is " + std::string(format.remedy));
  }
  if (start.starts_with("\xEF\xBB\xBF"))
    begin_ += 3;
}

void CsvScanner::fail(const std::string& message) const {
  throw DataError(shown_ + ":" + std::to_string(line_) + ": " + message);
}

// Eight bytes at a time where all are ASCII, as they mostly are.
void CsvScanner::find_bad_byte() {
  const char* p = begin_;
  while (p < end_) {
    std::uint64_t bytes = 0;
    if (end_ - p >= 8) {
      std::memcpy(&bytes, p, sizeof bytes);
      if ((bytes & 0x8080808080808080) == 0) {
        p += 8;
        continue;
      }
    }
    const int length = utf8_length(p, end_);
    if (length == 0)
      break;
    p = length < 0 ? end_ : p + length;
  }
  bad_ = p;
}

std::int64_t CsvScanner::line_at(const char* p) const {
  std::int64_t line = line_;
  for (const char* q = begin_; q < p; ++q)
    line += *q == '\n' || (*q == '\r' && q[1] != '\n') ? 1 : 0;
  return line;
}

void CsvScanner::fail_for_bad_byte() const {
  char byte[8];
  std::snprintf(byte, sizeof byte, "0x%02X",
                static_cast<unsigned>(static_cast<unsigned char>(*bad_)));
  const std::string likely = table::likely_encoding({bad_, static_cast<std::size_t>(end_ - bad_)});
  throw EncodingError(shown_ + ":" + std::to_string(line_at(bad_)) + ": is not UTF-8 text (byte " +
                          byte + "); set \"encoding\", to \"" + likely +
                          "\" perhaps, or save the file as UTF-8",
                      likely);
}

void CsvScanner::fail_for_nul() const {
  const std::string likely =
      table::likely_encoding({begin_, static_cast<std::size_t>(end_ - begin_)});
  if (!likely.starts_with("utf-16"))
    fail("there is a NUL byte; this is not a text file");
  throw EncodingError(shown_ + ":" + std::to_string(line_) +
                          ": has a NUL byte; this seems to be UTF-16: set \"encoding\": \"" +
                          likely + "\"",
                      likely);
}

std::size_t CsvScanner::read_bytes(char* to, std::size_t room) {
  try {
    return source_->read(to, room);
  } catch (const table::ByteError& error) {
    throw DataError(shown_ + ":" + std::to_string(line_at(to)) + ": " + error.message());
  }
}

void CsvScanner::fill() {
  const auto kept = static_cast<std::size_t>(end_ - begin_);
  if (kept > kLongestRow) {
    fail("the row is longer than 64 MiB; is a quote left open, or is \"separator\" wrong?");
  }
  if (begin_ != buffer_.data() && kept > 0)
    std::memmove(buffer_.data(), begin_, kept);
  if (kept + kPiece / 2 > buffer_.size() - kPadding)
    buffer_.resize(2 * (buffer_.size() - kPadding) + kPadding);
  begin_ = buffer_.data();
  end_ = begin_ + kept;
  char* const limit = buffer_.data() + buffer_.size() - kPadding;
  while (!at_end_of_file_ && end_ < limit) {
    const std::size_t count = read_bytes(end_, static_cast<std::size_t>(limit - end_));
    at_end_of_file_ = count == 0;
    end_ += count;
    offset_ += static_cast<std::int64_t>(count);
  }
  if (at_end_of_file_ && end_ > begin_ && end_[-1] != '\n' && end_[-1] != '\r') {
    *end_++ = '\n';
    ++offset_;
  }
  std::memset(end_, 0, kPadding - 1);
  find_bad_byte();
}

void CsvScanner::more() {
  lines_in_quotes_ = 0;
  fill();
}

void CsvScanner::go_to(std::int64_t offset, std::int64_t line) {
  if (stamp_.empty())
    throw DataError(shown_ + ": can be read only once; it must be a file");
  if (table::file_stamp(path_) != stamp_)
    throw DataError(shown_ + ": was changed while it was read");
  source_ = table::open_bytes(path_, shown_, encoding_);
  source_->skip(static_cast<std::size_t>(offset));
  begin_ = end_ = buffer_.data();
  at_end_of_file_ = false;
  offset_ = offset;
  line_ = line;
  lines_in_quotes_ = 0;
  fill();
}

void CsvScanner::skip_lines(std::int64_t count) {
  for (; count > 0; --count) {
    for (;;) {
      const char* p = begin_;
      while (p < end_ && *p != '\n' && *p != '\r')
        ++p;
      const After after = p == end_ ? After::kMore : step(p);
      if (after == After::kRow) {
        begin_ += p - begin_;
        ++line_;
        if (begin_ > bad_)
          find_bad_byte();
        break;
      }
      if (at_end_of_file_)
        return;
      more();
    }
  }
}

const char* CsvScanner::begin_row() {
  for (;;) {
    const char* p = begin_;
    while (is_blank(*p) && *p != separator_)
      ++p;
    if (p == end_) {
      if (at_end_of_file_)
        return nullptr;
      more();
    } else if (*p != '\n' && *p != '\r') {
      return begin_;
    } else if (step(p) == After::kRow) {
      end_row(p);
    } else {
      more();
    }
  }
}

CsvScanner::Field CsvScanner::field(const char*& p) {
  while (is_blank(*p) && *p != separator_)
    ++p;
  if (*p == quote_ && quote_ != '\0')
    return quoted_field(p);
  const char* const first = p;
  while (!ends_field(*p))
    ++p;
  const char* last = p;
  while (last > first && is_blank(last[-1]))
    --last;
  return {std::string_view(first, static_cast<std::size_t>(last - first)), step(p)};
}

// Two quotes inside quotes are one. Nothing but blanks may follow the closing one.
CsvScanner::Field CsvScanner::quoted_field(const char*& p) {
  unquoted_.clear();
  for (;;) {
    ++p;
    const auto* const closing =
        static_cast<const char*>(std::memchr(p, quote_, static_cast<std::size_t>(end_ - p)));
    if (closing == nullptr) {
      if (at_end_of_file_)
        fail("a quoted field is not closed before the end of the file");
      return {{}, After::kMore};
    }
    unquoted_.append(p, closing);
    p = closing + 1;
    if (*p != quote_)
      break;
    unquoted_ += quote_;
  }
  // At the end of what has been read the next byte may be a second quote.
  if (p == end_ && !at_end_of_file_)
    return {{}, After::kMore};
  while (is_blank(*p) && *p != separator_)
    ++p;
  if (!ends_field(*p))
    fail(
        "there is text behind the closing quote of a field; a quote inside quotes is written "
        "twice");
  if (unquoted_.find('\0') != std::string::npos)
    fail_for_nul();
  lines_in_quotes_ += std::count(unquoted_.begin(), unquoted_.end(), '\n');
  return {unquoted_, step(p)};
}

std::vector<std::string> CsvScanner::texts(const char*& end) {
  std::vector<std::string> texts;
  while (const char* p = begin_row()) {
    texts.clear();
    After after = After::kField;
    while (after == After::kField) {
      const Field next = field(p);
      after = next.after;
      texts.emplace_back(next.text);
    }
    if (after == After::kRow) {
      end = p;
      break;
    }
    more();
  }
  return texts;
}

std::vector<std::string> CsvScanner::peek_row() {
  const char* end = nullptr;
  std::vector<std::string> row = texts(end);
  lines_in_quotes_ = 0;
  return row;
}

std::vector<std::string> CsvScanner::read_row() {
  const char* end = nullptr;
  std::vector<std::string> row = texts(end);
  if (end != nullptr)
    end_row(end);
  return row;
}

}  // namespace treadle::csv
