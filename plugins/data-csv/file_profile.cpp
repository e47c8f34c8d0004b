#include "file_profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/path_words.h>

#include "csv_scanner.h"
#include "file_format.h"
#include "label_dictionary.h"
#include "number_text.h"
#include "table_layout.h"

namespace treadle::csv {
namespace {

/// So many different numbers are quantities, whatever else is in the column.
constexpr std::int64_t kMostNumbers = 1024;

/// Counts different texts, up to a number of them.
class TextCounts {
 public:
  /// Expects is_complete().
  void add(std::string_view text) {
    const auto number = static_cast<std::size_t>(texts_.add(text));
    if (number == counts_.size())
      counts_.push_back(0);
    ++counts_[number];
  }

  bool is_complete() const { return is_complete_; }
  std::int64_t size() const { return texts_.size(); }

  /// What it has counted by now is kept as an example.
  void give_up() {
    is_complete_ = false;
    examples_ = frequent();
    texts_ = LabelDictionary();
    counts_ = {};
  }

  /// The most frequent ones; of equally frequent ones the first.
  std::vector<CountedValue> frequent() const {
    if (!is_complete_ && counts_.empty())
      return examples_;
    std::vector<std::size_t> order(counts_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto most = std::min(order.size(), ColumnProfile::kMostListed);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                      [&](std::size_t a, std::size_t b) {
                        return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
                      });
    std::vector<CountedValue> values;
    for (std::size_t i = 0; i < most; ++i)
      values.push_back({texts_.labels()[order[i]], counts_[order[i]]});
    return values;
  }

  std::int64_t rarest() const {
    return counts_.empty() ? 0 : *std::min_element(counts_.begin(), counts_.end());
  }

 private:
  LabelDictionary texts_;
  std::vector<std::int64_t> counts_;
  std::vector<CountedValue> examples_;
  bool is_complete_ = true;
};

/// "01234": as postal codes are written, and quantities are not.
bool is_padded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  return text.size() > 1 && text.front() == '0' &&
         text.find_first_not_of(kDigits) == std::string_view::npos;
}

class ColumnCounter {
 public:
  void add(std::string_view text) {
    double number = 0;
    double time = 0;
    if (read_whole_number(text, number) && std::isfinite(number)) {
      add_number(number);
      profile_.padded += is_padded(text) ? 1 : 0;
    } else if (read_time(text, time)) {
      ++profile_.dates;
      profile_.times += std::fmod(time, kSecondsOfDay) != 0 ? 1 : 0;
      is_rising_ = false;
    } else {
      is_rising_ = false;
      if (odd_texts_.is_complete())
        count(odd_texts_, text, LabelDictionary::kMostLabels);
    }
    if (all_.is_complete()) {
      const bool is_quantities =
          odd_texts_.is_complete() && odd_texts_.size() == 0 && profile_.padded == 0;
      count(all_, text, is_quantities ? kMostNumbers : LabelDictionary::kMostLabels);
    }
  }
  void add_missing() {
    ++profile_.missing;
    is_rising_ = false;
  }

  ColumnProfile finish(std::string name, bool has_name) {
    profile_.name = std::move(name);
    profile_.has_name = has_name;
    profile_.is_rising = is_rising_ && profile_.numbers > 0;
    profile_.odd_texts = odd_texts_.frequent();
    if (all_.is_complete()) {
      profile_.distinct = all_.size();
      profile_.rarest = all_.rarest();
      profile_.frequent = all_.frequent();
    }
    return std::move(profile_);
  }

 private:
  static constexpr double kSecondsOfDay = 86400;

  static void count(TextCounts& texts, std::string_view text, std::int64_t most) {
    texts.add(text);
    if (texts.size() > most)
      texts.give_up();
  }

  void add_number(double number) {
    is_rising_ = is_rising_ && (profile_.numbers == 0 || number > last_);
    last_ = number;
    profile_.least = profile_.numbers == 0 ? number : std::min(profile_.least, number);
    profile_.greatest = profile_.numbers == 0 ? number : std::max(profile_.greatest, number);
    ++profile_.numbers;
    profile_.integers += std::floor(number) == number ? 1 : 0;
  }

  ColumnProfile profile_;
  TextCounts all_;
  TextCounts odd_texts_;
  double last_ = 0;
  bool is_rising_ = true;
};

/// Whether a header line can be none: names that are numbers, and are there twice or fractions.
bool is_row_of_data(const std::vector<std::string>& names) {
  double number = 0;
  const bool all_numbers = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return read_whole_number(name, number);
  });
  return all_numbers && (looks_like_data(names) ||
                         std::set<std::string>(names.begin(), names.end()).size() < names.size());
}

std::vector<std::string> first_row(const CsvOptions& options, const std::string& shown) {
  CsvScanner scanner(options.path, shown, options.separator, options.quote, options.encoding);
  scanner.skip_lines(options.skip_rows);
  if (scanner.begin_row() == nullptr)
    scanner.fail("the file is empty");
  return scanner.read_row();
}

struct Row {
  std::vector<std::string> fields;  // as many as there are columns
  std::size_t count = 0;            // of fields in the file
  std::int64_t line = 0;
};

/// False at the end of the file. Reuses the texts of the row before: a large file is read so.
bool read_row(CsvScanner& scanner, Row& row) {
  using After = CsvScanner::After;
  while (const char* p = scanner.begin_row()) {
    row.count = 0;
    for (After after = After::kField; after == After::kField;) {
      const CsvScanner::Field field = scanner.field(p);
      after = field.after;
      if (after != After::kMore && row.count < row.fields.size())
        row.fields[row.count].assign(field.text);
      ++row.count;
      if (after == After::kRow) {
        row.line = scanner.line();
        scanner.end_row(p);
        return true;
      }
    }
    scanner.more();
  }
  return false;
}

bool is_missing(const CsvOptions& options, std::string_view text) {
  return std::find(options.missing_values.begin(), options.missing_values.end(), text) !=
         options.missing_values.end();
}

/// Whether a header line can be none for what follows: "5.1,3.5,setosa" above rows of two numbers
/// and a species. Its texts are values of their columns, its numbers are above numbers only, and
/// number nothing.
bool is_like_its_rows(const CsvOptions& options, const std::string& shown) {
  constexpr int kMostRows = 1000;
  CsvScanner scanner(options.path, shown, options.separator, options.quote, options.encoding);
  scanner.skip_lines(options.skip_rows);
  scanner.begin_row();
  const std::vector<std::string> names = scanner.read_row();
  enum class Name : std::uint8_t { kNumber, kText, kAbsent, kValue };
  std::vector<Name> kinds;
  double number = 0;
  bool counts = true;  // 0, 1, 2: what programs name columns that have no name
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_number = read_whole_number(names[i], number);
    kinds.push_back(is_number ? Name::kNumber : names[i].empty() ? Name::kAbsent : Name::kText);
    counts = counts && (!is_number || number == static_cast<double>(i));
  }
  const auto has = [&](Name kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  if (counts || !has(Name::kNumber) || !has(Name::kText))
    return false;
  Row row{std::vector<std::string>(names.size())};
  for (int rows = 0; rows < kMostRows && read_row(scanner, row); ++rows) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& field = row.fields[i];
      if (kinds[i] == Name::kNumber && !is_missing(options, field) &&
          !read_whole_number(field, number)) {
        return false;
      }
      if (kinds[i] == Name::kText && field == names[i])
        kinds[i] = Name::kValue;
    }
  }
  return !has(Name::kText);
}

/// "sep=;", which Excel writes and reads above a table: its separator.
std::optional<char> declared_separator(const CsvOptions& options, const std::string& shown) {
  const std::vector<std::string> row = first_row(options, shown);
  const std::string& text = row.front();
  if (!text.starts_with("sep=") || text.size() > 5)
    return std::nullopt;
  if (text.size() == 5)
    return row.size() == 1 ? std::optional(text.back()) : std::nullopt;
  // A separator or a tab ends the field.
  if (row.size() == 1)
    return '\t';
  return row.size() == 2 && row[1].empty() ? std::optional(options.separator) : std::nullopt;
}

/// With the separator and header that its first rows show, and says so in `parameters`.
CsvOptions as_written(CsvOptions options, const std::string& shown, nlohmann::json& parameters) {
  if (const std::optional<char> declared = declared_separator(options, shown)) {
    options.separator = *declared;
    parameters["separator"] = std::string(1, *declared);
    parameters["skip_rows"] = ++options.skip_rows;
  } else if (first_row(options, shown).size() == 1) {
    // A file of one column, or one whose rows have as many fields as the first one, is what it
    // seems.
    if (const std::optional<char> other = other_separator(options)) {
      options.separator = *other;
      parameters["separator"] = std::string(1, *other);
    }
  }
  if (options.header &&
      (is_row_of_data(first_row(options, shown)) || is_like_its_rows(options, shown))) {
    options.header = false;
    parameters["header"] = false;
  }
  return options;
}

/// A row with another number of fields than the first: which, and what to do about it.
std::string other_field_count(std::size_t expected, std::size_t count, char separator) {
  const std::string found = "expected " + std::to_string(expected) +
                            (expected == 1 ? " field" : " fields") + ", got " +
                            std::to_string(count);
  if (expected == 1)
    return found +
           "; if the table begins below other lines, set \"skip_rows\" to how many these are";
  if (count < expected)
    return found + "; complete the line, or take it out";
  return found + "; put quotes around a field with " + shown_separator(separator) +
         " in it, and where rows end with one, end the header line with one, too";
}

}  // namespace

TableProfile profile_file(const CsvOptions& given) {
  const std::string shown = shown_path(given.path);
  TableProfile profile;
  profile.missing_values = given.missing_values;
  const CsvOptions options = as_written(given, shown, profile.parameters);
  CsvScanner scanner(options.path, shown, options.separator, options.quote, options.encoding);
  scanner.skip_lines(options.skip_rows);
  scanner.begin_row();
  std::vector<std::string> names = options.header ? scanner.read_row() : scanner.peek_row();
  if (static_cast<std::int64_t>(names.size()) > kMostColumns) {
    scanner.fail("there are " + std::to_string(names.size()) + " columns; at most " +
                 std::to_string(kMostColumns) + " can be read");
  }
  std::vector<ColumnCounter> counters(names.size());
  Row row{std::vector<std::string>(names.size())};
  while (read_row(scanner, row)) {
    if (row.count != names.size()) {
      throw DataError(shown + ":" + std::to_string(row.line) + ": " +
                      other_field_count(names.size(), row.count, options.separator));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (is_missing(options, row.fields[i])) {
        counters[i].add_missing();
      } else {
        counters[i].add(row.fields[i]);
      }
    }
    ++profile.rows;
  }
  const std::vector<std::string> numbered =
      numbered_columns(static_cast<std::int64_t>(names.size()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool has_name = options.header && !names[i].empty();
    profile.columns.push_back(counters[i].finish(has_name ? names[i] : numbered[i], has_name));
  }
  return profile;
}

}  // namespace treadle::csv
