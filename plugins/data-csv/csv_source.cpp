#include "csv_source.h"

#include <utility>

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
    : options_(std::move(options)), use_(use), files_(options_.paths) {}

std::string CsvSource::do_place_of(std::int64_t position) const {
  return files_.shown(files_.file_of(position)) + ":" +
         std::to_string(table::SourceFiles::line_of(position));
}

std::int64_t CsvSource::position() const {
  return table::SourceFiles::position(file_, scanner_->line());
}

std::string CsvSource::do_remedy_for_comma(bool is_trained) const {
  if (is_trained || !options_.numbers.is_plain())
    return TableSource::do_remedy_for_comma(is_trained);
  return "set \"decimal\": \",\", and where points group thousands, \"thousands\": \".\"";
}

table::TableColumns CsvSource::do_open() {
  files_.find();
  try {
    return read_columns();
  } catch (const DataError&) {
    check_first_rows();
    throw;
  }
}

table::TableColumns CsvSource::read_columns() {
  CsvScanner& scanner = scanner_.emplace(files_[0], options_);
  const std::string& shown = scanner.shown();
  scanner.skip_lines(options_.skip_rows);
  if (scanner.begin_row() == nullptr) {
    throw DataError(shown + (options_.skip_rows == 0
                                 ? ": the file is empty"
                                 : ": nothing follows the lines that \"skip_rows\" passes over"));
  }
  const std::int64_t line = scanner.line();
  const std::vector<std::string> first = options_.header ? scanner.read_row() : scanner.peek_row();
  if (use_ != table::SourceUse::kProfile) {
    check_separator(line, first, options_.header ? scanner.peek_row() : std::vector<std::string>());
  }
  if (!options_.header) {
    names_ = table::numbered_columns(first.size());
    return {names_, false, shown, " (\"header\": false)", "there is no row"};
  }
  names_ = first;
  const std::string place = do_place_of(line);
  // Taken for a header, a first row of data costs that row and every name.
  if (use_ == table::SourceUse::kTraining && looks_like_data(first)) {
    throw DataError(place + ": the header line has numbers for names (" + name_list(first) +
                    "); if it is the first row of data, set \"header\": false");
  }
  return {first, true, place, "; if the file has no header line, set \"header\": false",
          "there is a header line, but no row"};
}

void CsvSource::open_file(std::size_t file) {
  file_ = file;
  CsvScanner& scanner = scanner_.emplace(files_[file], options_);
  scanner.skip_lines(options_.skip_rows);
  if (!options_.header)
    return;
  if (scanner.begin_row() == nullptr) {
    throw DataError(scanner.shown() +
                    ": the file is empty; it must begin with the header line of " +
                    files_.shown(0));
  }
  const std::int64_t line = scanner.line();
  check_header(line, scanner.read_row());
}

void CsvSource::check_header(std::int64_t line, const std::vector<std::string>& names) const {
  if (names.size() != names_.size())
    check_separator(line, names, names_);
  files_.expect_columns(scanner_->shown() + ":" + std::to_string(line), names, names_);
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
  const bool is_plain = options_.numbers.is_plain();
  for (;; open_file(file_ + 1)) {
    CsvScanner& scanner = *scanner_;
    while (const char* p = scanner.begin_row()) {
      if (rows == 0)
        return true;
      sink.begin_row(position());
      const After after = is_plain ? read_row<true>(sink, p) : read_row<false>(sink, p);
      if (after == After::kMore) {
        scanner.more();
      } else {
        scanner.end_row(p);
        --rows;
      }
    }
    if (file_ + 1 == files_.size())
      return false;
  }
}

// The loop all the time is spent in. A number that is followed by a separator or a line end is read
// where it stands; everything else is cut out as text first.
template <bool kIsPlain>
After CsvSource::read_row(table::RowSink& sink, const char*& p) {
  CsvScanner& scanner = *scanner_;
  const std::size_t expected = names_.size();
  std::size_t field = 0;
  for (;; ++field) {
    After after;
    if (field < expected) [[likely]] {
      double value;
      const char* const behind =
          kIsPlain && sink.is_plain(field) ? table::read_number(p, value) : nullptr;
      if (behind != nullptr && scanner.ends_field(*behind) && sink.put(field, value)) [[likely]] {
        p = behind;
        after = scanner.step(p);
      } else {
        const CsvScanner::Field text = scanner.field(p);
        after = text.after;
        if (after != After::kMore && sink.wants(field) != Wants::kNothing) {
          if constexpr (kIsPlain) {
            sink.text(field, text.text);
          } else {
            give(sink, field, text.text);
          }
        }
      }
    } else {
      after = scanner.field(p).after;
    }
    if (after == After::kMore) {
      bad_number_.clear();
      return after;
    }
    if (after == After::kRow)
      break;
  }
  end_row(sink, field + 1);
  return After::kRow;
}

void CsvSource::give(table::RowSink& sink, std::size_t column, std::string_view text) {
  double value = 0;
  plain_.clear();
  if (!options_.numbers.append_plain(text, plain_)) {
    // "1.5" where "." is no decimal point would be taken for a number that it is not.
    if (sink.wants(column) != Wants::kNumber || !table::read_whole_number(text, value)) {
      sink.text(column, text);
    } else if (bad_number_.empty()) {
      bad_number_ = "column " + quote_text(names_[column]) + ": got " + quote_text(text) +
                    ", which is no number with the \"decimal\" " +
                    quote_text(options_.numbers.decimal) +
                    (options_.numbers.thousands.empty()
                         ? ""
                         : " and the \"thousands\" " + quote_text(options_.numbers.thousands));
    }
    return;
  }
  const std::size_t size = plain_.size();
  plain_.append(table::kReadAhead + 1, '\0');
  const char* const behind =
      sink.is_plain(column) ? table::read_number(plain_.data(), value) : nullptr;
  if (behind == plain_.data() + size && sink.put(column, value))
    return;
  sink.text(column, std::string_view(plain_).substr(0, size));
}

void CsvSource::end_row(table::RowSink& sink, std::size_t fields) {
  if (fields != names_.size()) [[unlikely]] {
    sink.bad_row(other_field_count(names_.size(), fields));
  } else if (!bad_number_.empty()) [[unlikely]] {
    sink.bad_row(bad_number_);
  } else {
    sink.end_row();
    return;
  }
  bad_number_.clear();
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
  return {position(), scanner_->offset()};
}

void CsvSource::do_go_to(const Bookmark& place) {
  const std::size_t file = files_.file_of(place.position);
  if (file != file_ || !scanner_) {
    file_ = file;
    scanner_.emplace(files_[file], options_);
  }
  scanner_->go_to(place.offset, table::SourceFiles::line_of(place.position));
}

void CsvSource::fail_for_separator(std::int64_t line, const std::string& found, char other) const {
  const std::string shown = shown_separator(other);
  // Data for a trained model is written as its training data was.
  throw DataError(files_.shown(file_) + ":" + std::to_string(line) + ": " + found +
                  "; the separator seems to be " + shown +
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
  if (const std::optional<char> other = other_separator(files_[file_], options_)) {
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
  const std::optional<char> other = other_separator(files_[file_], options_);
  if (!other)
    return;
  CsvScanner scanner(files_[file_], options_);
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
