// Prints the values of a Parquet file, for a comparison with other readers (tests/judges/parquet), or
// the rows that are read in a second.
#include <bit>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "parquet_file.h"

namespace treadle::parquet {
namespace {

constexpr std::size_t kRows = 16384;  // read at once

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"boolean", "integer", "unsigned", "float",     "double",
                                    "decimal", "date",    "time",     "timestamp", "text"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string shown(const ColumnValues& column, Kind kind, std::size_t row) {
  if (column.is_null(row))
    return "null";
  char text[32];
  if (const auto* numbers = std::get_if<std::vector<std::int32_t>>(&column.values))
    return std::to_string((*numbers)[row]);
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&column.values))
    return kind == Kind::kUnsigned ? std::to_string(static_cast<std::uint64_t>((*numbers)[row]))
                                   : std::to_string((*numbers)[row]);
  if (const auto* numbers = std::get_if<std::vector<float>>(&column.values)) {
    std::snprintf(text, sizeof text, "%08" PRIx32, std::bit_cast<std::uint32_t>((*numbers)[row]));
    return text;
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&column.values)) {
    std::snprintf(text, sizeof text, "%016" PRIx64, std::bit_cast<std::uint64_t>((*numbers)[row]));
    return text;
  }
  return nlohmann::json(std::get<std::vector<std::string_view>>(column.values)[row]).dump();
}

std::vector<std::size_t> readable_columns(const ParquetFile& file) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < file.columns().size(); ++i) {
    if (file.columns()[i].refusal.empty())
      places.push_back(i);
  }
  return places;
}

void print_values(const ParquetFile& file) {
  const std::vector<std::size_t> places = readable_columns(file);
  nlohmann::json head = nlohmann::json::array();
  for (const std::size_t place : places) {
    const Column& column = file.columns()[place];
    head.push_back({{"name", column.name}, {"kind", name_of(column.kind)}, {"ticks", column.ticks}});
  }
  std::puts(head.dump().c_str());
  RowsReader reader(file, places);
  std::string out;
  while (const std::size_t rows = reader.read(kRows)) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        out += i > 0 ? "\t" : "";
        out += shown(reader.values()[i], file.columns()[places[i]].kind, row);
      }
      out += '\n';
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
    out.clear();
  }
}

void print_speed(const char* path, int times) {
  double best = 0;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const ParquetFile file(std::make_unique<FileSource>(path, path), path);
    RowsReader reader(file, readable_columns(file));
    while (reader.read(kRows) > 0)
      continue;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(file.rows()) / took.count());
  }
  std::printf("%.0f\n", best);
}

}  // namespace
}  // namespace treadle::parquet

// parquet-values FILE, or parquet-values --speed TIMES FILE
int main(int argc, char** argv) {
  using namespace treadle::parquet;
  try {
    if (argc == 4 && std::strcmp(argv[1], "--speed") == 0) {
      print_speed(argv[3], std::atoi(argv[2]));
      return 0;
    }
    if (argc != 2)
      return 2;
    print_values(ParquetFile(std::make_unique<FileSource>(argv[1], argv[1]), argv[1]));
    return 0;
  } catch (const treadle::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
}
