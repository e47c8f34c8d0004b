#include "list_file.h"

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/utf8.h>

namespace treadle::images {
namespace {

/// Cuts a text into records of fields.
class Records {
 public:
  Records(std::string_view text, const std::string& shown) : text_(text), shown_(shown) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    if (text_.substr(0, kMark.size()) == kMark)
      place_ = kMark.size();
  }

  /// The line at which the last record began.
  std::int64_t line() const { return begin_line_; }

  bool next(std::vector<std::string>& fields) {
    fields.clear();
    while (place_ < text_.size() && (text_[place_] == '\n' || text_[place_] == '\r'))
      end_line();
    if (place_ == text_.size())
      return false;
    begin_line_ = line_;
    for (;;) {
      fields.push_back(field());
      if (place_ == text_.size() || text_[place_] != ',') {
        if (place_ < text_.size())
          end_line();
        return true;
      }
      ++place_;
    }
  }

 private:
  void end_line() {
    if (text_[place_] == '\r' && place_ + 1 < text_.size() && text_[place_ + 1] == '\n')
      ++place_;
    ++place_;
    ++line_;
  }

  std::string field() {
    if (place_ < text_.size() && text_[place_] == '"')
      return quoted_field();
    const std::size_t end = std::min(text_.find_first_of(",\r\n", place_), text_.size());
    std::string field(text_.substr(place_, end - place_));
    place_ = end;
    return field;
  }

  std::string quoted_field() {
    std::string field;
    for (++place_;; ++place_) {
      const std::size_t quote = text_.find('"', place_);
      if (quote == std::string_view::npos) {
        throw DataError(shown_ + ":" + std::to_string(begin_line_) + ": a quoted field has no end");
      }
      const std::string_view part = text_.substr(place_, quote - place_);
      line_ += std::count(part.begin(), part.end(), '\n');
      field += part;
      place_ = quote + 1;
      if (place_ == text_.size() || text_[place_] != '"')
        break;
      field += '"';
    }
    if (place_ < text_.size() && text_.find_first_of(",\r\n", place_) != place_) {
      throw DataError(shown_ + ":" + std::to_string(line_) +
                      ": after a quoted field, expected a comma or the end of the line");
    }
    return field;
  }

  std::string_view text_;
  const std::string& shown_;
  std::size_t place_ = 0;
  std::int64_t line_ = 1;
  std::int64_t begin_line_ = 1;
};

}  // namespace

ListFile read_list(std::string_view text, const std::string& shown) {
  if (const auto bad = first_bad_utf8(text)) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
    throw DataError(shown + ":" + std::to_string(line) + ": is not UTF-8");
  }
  Records records(text, shown);
  ListFile list;
  if (!records.next(list.names))
    throw DataError(shown + ": is empty; expected a line with the names of the columns");
  for (auto name = list.names.begin(); name != list.names.end(); ++name) {
    if (std::find(list.names.begin(), name, *name) != name)
      throw DataError(shown + ": has two columns called " + quote_text(*name));
  }
  list.fields.resize(list.names.size());
  std::vector<std::string> fields;
  while (records.next(fields)) {
    if (fields.size() != list.names.size()) {
      throw DataError(shown + ":" + std::to_string(records.line()) + ": expected " +
                      std::to_string(list.names.size()) + " fields, as in the header, got " +
                      std::to_string(fields.size()));
    }
    for (std::size_t i = 0; i < fields.size(); ++i)
      list.fields[i].push_back(std::move(fields[i]));
    list.lines.push_back(records.line());
  }
  return list;
}

}  // namespace treadle::images
