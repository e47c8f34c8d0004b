#include "file_format.h"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/table/number_text.h>

#include "csv_scanner.h"

namespace treadle::csv {
namespace {

/// How many fields the first rows have with another separator; 0 when they have not the same number
/// of at least two.
std::size_t fields_with(const std::filesystem::path& file, CsvOptions options, char separator) {
  options.separator = separator;
  std::size_t fields = 0;
  try {
    CsvScanner scanner(file, options);
    scanner.skip_lines(options.skip_rows);
    for (int row = 0; row < kRowsThatTell && scanner.begin_row() != nullptr; ++row) {
      const std::size_t count = scanner.read_row().size();
      if (count < 2 || (row > 0 && count != fields))
        return 0;
      fields = count;
    }
  } catch (const DataError&) {
    return 0;
  }
  return fields;
}

}  // namespace

std::optional<char> other_separator(const std::filesystem::path& file, const CsvOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    return std::nullopt;
  for (const char other : {',', ';', '\t', '|'}) {
    if (other != options.separator && fields_with(file, options, other) != 0)
      return other;
  }
  return std::nullopt;
}

std::string shown_separator(char separator) {
  return separator == '\t' ? "\"\\t\"" : quote_text(std::string(1, separator));
}

bool looks_like_data(const std::vector<std::string>& names) {
  bool has_fraction = false;
  for (const std::string& name : names) {
    double value = 0;
    if (!table::read_whole_number(name, value))
      return false;
    has_fraction = has_fraction || std::floor(value) != value;
  }
  return has_fraction;
}

}  // namespace treadle::csv
