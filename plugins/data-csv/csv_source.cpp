#include "csv_source.h"

#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/path_words.h>
#include <treadle/table/number_text.h>

#include "file_format.h"

namespace treadle::csv {
namespace {

using After = CsvScanner::After;
using Wants = table::RowSink::Wants;

}  // namespace

CsvSource::CsvSource(CsvOptions options, table::SourceUse use)
    : options_(std::move(options)), use_(use), shown_(shown_path(options_.path)) {}

std::string CsvSource::do_hash() const {
  return hash_file(options_.path);
}

table::TableColumns CsvSource::do_open() {
  try {
    return read_columns();
  } catch (const DataError&) {
    check_first_rows();
    throw;
  }
}

table::TableColumns CsvSource::read_columns() {
  CsvScanner& scanner = scanner_.emplace(options_.path, shown_, options_.separator, options_.quote);
  scanner.skip_lines(options_.skip_rows);
  if (scanner.begin_row() == nullptr) {
    throw DataError(shown_ + (options_.skip_rows == 0
                                  ? ": the file is empty"
                                  : ": nothing follows the lines that \"skip_rows\" passes over"));
  }
  const std::int64_t line = scanner.line();
  const std::vector<std::string> first = options_.header ? scanner.read_row() : scanner.peek_row();
  fields_ = first.size();
  if (use_ != table::SourceUse::kProfile) {
    check_separator(line, first, options_.header ? scanner.peek_row() : std::vector<std::string>());
  }
  if (!options_.header) {
    return {table::numbered_columns(fields_), false, shown_, " (\"header\": false)",
            "there is no row"};
  }
  const std::string place = do_place_of(line);
  // Taken for a header, a first row of data costs that row and every name.
  if (use_ == table::SourceUse::kTraining && looks_like_data(first)) {
    throw DataError(place + ": the header line has numbers for names (" + name_list(first) +
                    "); if it is the first row of data, set \"header\": false");
  }
  return {first, true, place, "; if the file has no header line, set \"header\": false",
          "there is a header line, but no row"};
}

bool CsvSource::do_read(table::RowSink& sink, std::int64_t rows) {
  try {
    return read_rows(sink, rows);
  } catch (const DataError&) {
    check_first_rows();
    throw;
  }
}

bool CsvSource::read_rows(table::RowSink& sink, std::int64_t rows) {
  CsvScanner& scanner = *scanner_;
  while (const char* p = scanner.begin_row()) {
    if (rows == 0)
      return true;
    sink.begin_row(scanner.line());
    if (read_row(sink, p) == After::kMore) {
      scanner.more();
    } else {
      scanner.end_row(p);
      --rows;
    }
  }
  return false;
}

// The loop all the time is spent in. A number that is followed by a separator or a line end is read
// where it stands; everything else is cut out as text first.
After CsvSource::read_row(table::RowSink& sink, const char*& p) {
  CsvScanner& scanner = *scanner_;
  const std::size_t expected = fields_;
  std::size_t field = 0;
  for (;; ++field) {
    After after;
    if (field < expected) [[likely]] {
      double value;
      const char* const behind = sink.is_plain(field) ? table::read_number(p, value) : nullptr;
      if (behind != nullptr && scanner.ends_field(*behind) && sink.put(field, value)) [[likely]] {
        p = behind;
        after = scanner.step(p);
      } else {
        const CsvScanner::Field text = scanner.field(p);
        after = text.after;
        if (after != After::kMore && sink.wants(field) != Wants::kNothing)
          sink.text(field, text.text);
      }
    } else {
      after = scanner.field(p).after;
    }
    if (after == After::kMore)
      return after;
    if (after == After::kRow)
      break;
  }
  if (field + 1 == expected) [[likely]] {
    sink.end_row();
  } else {
    sink.bad_row(other_field_count(expected, field + 1));
  }
  return After::kRow;
}

std::string CsvSource::other_field_count(std::size_t expected, std::size_t count) const {
  const bool is_profile = use_ == table::SourceUse::kProfile;
  const std::string found = "expected " + std::to_string(expected) +
                            (is_profile && expected == 1 ? " field" : " fields") + ", got " +
                            std::to_string(count);
  if (!is_profile)
    return found;
  if (expected == 1) {
    return found +
           "; if the table begins below other lines, set \"skip_rows\" to how many these are";
  }
  if (count < expected)
    return found + "; complete the line, or take it out";
  return found + "; put quotes around a field with " + shown_separator(options_.separator) +
         " in it, and where rows end with one, end the header line with one, too";
}

table::TableSource::Bookmark CsvSource::do_bookmark() const {
  return {scanner_->line(), scanner_->offset()};
}

void CsvSource::fail_for_separator(std::int64_t line, const std::string& found, char other) const {
  const std::string shown = shown_separator(other);
  // A trained model reads files as its training data was written.
  throw DataError(do_place_of(line) + ": " + found + "; the separator seems to be " + shown +
                  (use_ == table::SourceUse::kTrained
                       ? ", and the model reads files with " + shown_separator(options_.separator) +
                             ", as its training data had: write the file with that"
                       : ". Set \"separator\": " + shown));
}

// A first row of one field, or followed by one of another number, was written with another
// separator, more often than not. `next` is empty at the end of the file.
void CsvSource::check_separator(std::int64_t line, const std::vector<std::string>& first,
                                const std::vector<std::string>& next) const {
  if (first.size() > 1 && (next.empty() || next.size() == first.size()))
    return;
  if (const std::optional<char> other = other_separator(options_)) {
    fail_for_separator(line,
                       first.size() == 1
                           ? "the line has one field, " + quote_text(first[0])
                           : "the line has " + std::to_string(first.size()) +
                                 " fields, but the next one " + std::to_string(next.size()),
                       *other);
  }
}

void CsvSource::check_first_rows() const {
  if (use_ == table::SourceUse::kProfile)
    return;
  const std::optional<char> other = other_separator(options_);
  if (!other)
    return;
  CsvScanner scanner(options_.path, shown_, options_.separator, options_.quote);
  try {
    scanner.skip_lines(options_.skip_rows);
    for (int row = 0; row < kRowsThatTell && scanner.begin_row() != nullptr; ++row)
      scanner.read_row();
  } catch (const DataError&) {
    fail_for_separator(
        scanner.line(),
        "the line cannot be cut into fields at " + shown_separator(options_.separator), *other);
  }
}

}  // namespace treadle::csv
