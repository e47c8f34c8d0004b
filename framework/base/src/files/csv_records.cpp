#include <treadle/base/files/csv_records.h>

#include <algorithm>

#include <treadle/base/error.h>

namespace treadle {

CsvRecords::CsvRecords(std::string_view text, const std::string& shown)
    : text_(text), shown_(shown) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text_.starts_with(kMark))
    place_ = kMark.size();
}

bool CsvRecords::next(std::vector<std::string>& fields) {
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

void CsvRecords::end_line() {
  if (text_[place_] == '\r' && place_ + 1 < text_.size() && text_[place_ + 1] == '\n')
    ++place_;
  ++place_;
  ++line_;
}

std::string CsvRecords::field() {
  if (place_ < text_.size() && text_[place_] == '"')
    return quoted_field();
  const std::size_t end = std::min(text_.find_first_of(",\r\n", place_), text_.size());
  std::string field(text_.substr(place_, end - place_));
  place_ = end;
  return field;
}

std::string CsvRecords::quoted_field() {
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

}  // namespace treadle
