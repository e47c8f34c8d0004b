#include "written_form.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/table/date_format.h>
#include <treadle/table/number_text.h>
#include <treadle/table/source_files.h>

#include "csv_scanner.h"
#include "file_format.h"

namespace treadle::csv {
namespace {

namespace fs = std::filesystem;
using table::read_whole_number;

/// As many rows of the first file as the form is guessed from.
constexpr int kMostRows = 1000;

/// Whether a header line can be none: names that are numbers, and are there twice or fractions.
bool is_row_of_data(const std::vector<std::string>& names) {
  double number = 0;
  const bool all_numbers = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return read_whole_number(name, number);
  });
  return all_numbers && (looks_like_data(names) ||
                         std::set<std::string>(names.begin(), names.end()).size() < names.size());
}

std::vector<std::string> first_row(const fs::path& file, const CsvOptions& options) {
  CsvScanner scanner(file, options);
  scanner.skip_lines(options.skip_rows);
  if (scanner.begin_row() == nullptr)
    scanner.fail("the file is empty");
  return scanner.read_row();
}

bool is_number(const CsvOptions& options, const std::string& text, double& number) {
  std::string plain;
  return options.numbers.append_plain(text, plain) && read_whole_number(plain, number);
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
bool is_like_its_rows(const fs::path& file, const CsvOptions& options,
                      const std::vector<std::string>& missing_values) {
  CsvScanner scanner(file, options);
  scanner.skip_lines(options.skip_rows);
  scanner.begin_row();
  const std::vector<std::string> names = scanner.read_row();
  enum class Name : std::uint8_t { kNumber, kText, kAbsent, kValue };
  std::vector<Name> kinds;
  double number = 0;
  bool counts = true;  // 0, 1, 2: the names that programs give to columns without one
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_value = is_number(options, names[i], number);
    kinds.push_back(is_value ? Name::kNumber : names[i].empty() ? Name::kAbsent : Name::kText);
    counts = counts && (!is_value || number == static_cast<double>(i));
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
          !is_number(options, field, number)) {
        return false;
      }
      if (kinds[i] == Name::kText && field == names[i])
        kinds[i] = Name::kValue;
    }
  }
  return !has(Name::kText);
}

/// The notation that the numbers of the first rows are written in.
NumberNotation notation_of(const fs::path& file, const CsvOptions& options) {
  CsvScanner scanner(file, options);
  scanner.skip_lines(options.skip_rows);
  scanner.begin_row();
  Row row{scanner.peek_row()};
  NotationGuess guess;
  for (int rows = 0; rows < kMostRows && read_row(scanner, row); ++rows) {
    for (const std::string& field : row.fields)
      guess.add(field);
  }
  return guess.guess();
}

/// "sep=;", which Excel writes and reads above a table: its separator.
std::optional<char> declared_separator(const fs::path& file, const CsvOptions& options) {
  const std::vector<std::string> row = first_row(file, options);
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
  const fs::path file = table::find_files(options.paths).front();
  if (const std::optional<char> declared = declared_separator(file, options)) {
    options.separator = *declared;
    parameters["separator"] = std::string(1, *declared);
    parameters["skip_rows"] = ++options.skip_rows;
  } else if (first_row(file, options).size() == 1) {
    // A file of one column, or one whose rows have as many fields as the first one, is what it
    // seems.
    if (const std::optional<char> other = other_separator(file, options)) {
      options.separator = *other;
      parameters["separator"] = std::string(1, *other);
    }
  }
  // In a file of commas, a decimal comma would stand between quotes.
  if (options.numbers.is_plain() && options.separator != ',') {
    options.numbers = notation_of(file, options);
    if (!options.numbers.is_plain())
      parameters["decimal"] = options.numbers.decimal;
    if (!options.numbers.thousands.empty())
      parameters["thousands"] = options.numbers.thousands;
  }
  if (options.header && (is_row_of_data(first_row(file, options)) ||
                         is_like_its_rows(file, options, missing_values))) {
    options.header = false;
    parameters["header"] = false;
  }
  return options;
}

std::string written_date_format(const CsvOptions& options,
                                const std::vector<std::string>& missing_values) {
  CsvScanner scanner(table::find_files(options.paths).front(), options);
  scanner.skip_lines(options.skip_rows);
  scanner.begin_row();
  Row row{options.header ? scanner.read_row() : scanner.peek_row()};
  std::vector<table::DateFormat> formats;
  for (const char* format : table::common_date_formats())
    formats.emplace_back(format);
  // Per column: the formats that fit all its values so far; empty: it has none, or no dates.
  std::vector<std::vector<std::size_t>> fitting(row.fields.size());
  std::vector<char> has_values(row.fields.size(), 0);
  for (int rows = 0; rows < kMostRows && read_row(scanner, row); ++rows) {
    for (std::size_t i = 0; i < fitting.size(); ++i) {
      const std::string& field = row.fields[i];
      double number = 0;
      if (is_missing(missing_values, field) || (has_values[i] != 0 && fitting[i].empty()))
        continue;
      if (has_values[i] == 0) {
        for (std::size_t f = 0; f < formats.size(); ++f)
          fitting[i].push_back(f);
      }
      has_values[i] = 1;
      const bool is_value = is_number(options, field, number);
      std::erase_if(fitting[i], [&](std::size_t f) {
        table::DateFormat::Time time;
        return is_value || !formats[f].read(field, time);
      });
    }
  }
  std::set<std::vector<std::size_t>> found(fitting.begin(), fitting.end());
  found.erase(std::vector<std::size_t>());
  return found.size() == 1 && found.begin()->size() == 1
             ? table::common_date_formats()[found.begin()->front()]
             : "";
}

}  // namespace treadle::csv
