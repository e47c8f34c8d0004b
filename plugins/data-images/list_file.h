#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::images {

/// A CSV file with a header, as texts: fields between commas, quoted as in RFC 4180.
struct ListFile {
  std::vector<std::string> names;                ///< of the columns
  std::vector<std::vector<std::string>> fields;  ///< [columns][rows]
  std::vector<std::int64_t> lines;               ///< where each row begins, from 1

  std::size_t rows() const { return lines.size(); }
};

/// Reads `text`, the content of a file that messages call `shown`. Empty lines are skipped. Throws
/// DataError for a row with more or fewer fields than the header, a quote without end, and a name
/// that is there twice.
ListFile read_list(std::string_view text, const std::string& shown);

}  // namespace treadle::images
