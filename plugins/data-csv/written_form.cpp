#include "written_form.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/path_words.h>
#include <treadle/table/number_text.h>

#include "csv_scanner.h"
#include "file_format.h"

namespace treadle::csv {
namespace {

using table::read_whole_number;

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
  CsvScanner scanner(options.path, shown, options.separator, options.quote);
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

bool is_missing(const std::vector<std::string>& missing_values, std::string_view text) {
  return std::find(missing_values.begin(), missing_values.end(), text) != missing_values.end();
}

/// Whether a header line can be none for what follows: "5.1,3.5,setosa" above rows of two numbers
/// and a species. Its texts are values of their columns, its numbers are above numbers only, and
/// number nothing.
bool is_like_its_rows(const CsvOptions& options, const std::vector<std::string>& missing_values,
                      const std::string& shown) {
  constexpr int kMostRows = 1000;
  CsvScanner scanner(options.path, shown, options.separator, options.quote);
  scanner.skip_lines(options.skip_rows);
  scanner.begin_row();
  const std::vector<std::string> names = scanner.read_row();
  enum class Name : std::uint8_t { kNumber, kText, kAbsent, kValue };
  std::vector<Name> kinds;
  double number = 0;
  bool counts = true;  // 0, 1, 2: the names that programs give to columns without one
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
      if (kinds[i] == Name::kNumber && !is_missing(missing_values, field) &&
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

}  // namespace

CsvOptions as_written(CsvOptions options, const std::vector<std::string>& missing_values,
                      nlohmann::json& parameters) {
  const std::string shown = shown_path(options.path);
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
  if (options.header && (is_row_of_data(first_row(options, shown)) ||
                         is_like_its_rows(options, missing_values, shown))) {
    options.header = false;
    parameters["header"] = false;
  }
  return options;
}

}  // namespace treadle::csv
