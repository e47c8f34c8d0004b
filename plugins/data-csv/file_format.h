#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "csv_options.h"

/// What the first rows of a file say about how it is written.
namespace treadle::csv {

/// So many first rows tell one separator from another.
inline constexpr int kRowsThatTell = 5;

/// Another separator with which the first rows are a table, if the file can be read again.
std::optional<char> other_separator(const std::filesystem::path& file, const CsvOptions& options);

/// As a document has it: "\t" for a tab.
std::string shown_separator(char separator);

/// Whether a header line is a row of data: its names are numbers, and one is a fraction. Years and
/// pixel numbers are names people use, 5.1 is not.
bool looks_like_data(const std::vector<std::string>& names);

}  // namespace treadle::csv
