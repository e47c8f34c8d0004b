#pragma once

#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "parquet_file.h"

namespace treadle::parquet {

/// A value as test/data/files.mjs prints it, so that files can be compared with what wrote them:
/// integers and booleans as integers, dates as days, times as nanoseconds, floating-point numbers
/// by their bits, texts as JSON.
inline std::string shown_value(const ColumnValues& values, const Column& column, std::size_t row) {
  if (values.is_null(row))
    return "null";
  char text[32];
  if (const auto* numbers = std::get_if<std::vector<std::int32_t>>(&values.values))
    return std::to_string((*numbers)[row]);
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&values.values)) {
    const std::int64_t number = (*numbers)[row];
    if (column.kind == Kind::kTime || column.kind == Kind::kTimestamp)
      return std::to_string(
          static_cast<std::int64_t>(  // of a damaged file, any number: wraps around
              static_cast<std::uint64_t>(number) *
              static_cast<std::uint64_t>(1'000'000'000 / column.ticks)));
    return column.kind == Kind::kUnsigned ? std::to_string(static_cast<std::uint64_t>(number))
                                          : std::to_string(number);
  }
  if (const auto* numbers = std::get_if<std::vector<float>>(&values.values)) {
    const float number = (*numbers)[row];
    std::snprintf(text, sizeof text, "%08" PRIx32, std::bit_cast<std::uint32_t>(number));
    return std::isnan(number) ? "nan" : text;
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&values.values)) {
    const double number = (*numbers)[row];
    std::snprintf(text, sizeof text, "%016" PRIx64, std::bit_cast<std::uint64_t>(number));
    return std::isnan(number) ? "nan" : text;
  }
  return nlohmann::json(std::get<std::vector<std::string_view>>(values.values)[row]).dump();
}

/// A line per row of the columns that can be read. Reads `step` rows at a time.
inline std::string shown_values(const ParquetFile& file, std::size_t step) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < file.columns().size(); ++i) {
    if (file.columns()[i].refusal.empty())
      places.push_back(i);
  }
  RowsReader reader(file, places);
  std::string out;
  while (const std::size_t rows = reader.read(step)) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        out += i > 0 ? "\t" : "";
        out += shown_value(reader.values()[i], file.columns()[places[i]], row);
      }
      out += '\n';
    }
  }
  return out;
}

}  // namespace treadle::parquet
