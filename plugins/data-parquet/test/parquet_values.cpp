// For tests/judges/parquet: prints the values of a Parquet file, writes a file again, or measures
// the rows that are read in a second.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <treadle/base/error.h>

#include "file_encoder.h"
#include "parquet_file.h"
#include "shown_values.h"

namespace treadle::parquet {
namespace {

constexpr std::size_t kRows = 16384;  // read at once

ParquetFile open_file(const char* path) {
  return {std::make_unique<FileSource>(path, path), path};
}

std::vector<std::size_t> all_columns(const ParquetFile& file) {
  std::vector<std::size_t> places(file.columns().size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

// A writer has no missing values and four types: nulls become 0 or "", and int32 becomes int64.
TableWriter::Values written_values(const ColumnValues& column) {
  return std::visit(
      [&](const auto& values) -> TableWriter::Values {
        using T = typename std::decay_t<decltype(values)>::value_type;
        const auto end = values.begin() + static_cast<std::ptrdiff_t>(column.rows);
        if constexpr (std::is_same_v<T, std::int32_t>)
          return std::vector<std::int64_t>(values.begin(), end);
        else if constexpr (std::is_same_v<T, std::string_view>)
          return std::vector<std::string>(values.begin(), end);
        else
          return std::vector<T>(values.begin(), end);
      },
      column.values);
}

TableWriter::Column::Type written_type(const TableWriter::Values& values) {
  return static_cast<TableWriter::Column::Type>(values.index());
}

void copy(const char* from, const char* to) {
  const ParquetFile file = open_file(from);
  RowsReader reader(file, all_columns(file));
  AtomicFileWriter out(to);
  std::unique_ptr<FileEncoder> encoder;
  for (;;) {
    const std::size_t rows = reader.read(kRows);
    std::vector<TableWriter::Values> chunk;
    std::vector<TableWriter::Column> columns;
    for (std::size_t i = 0; i < file.columns().size(); ++i) {
      chunk.push_back(written_values(reader.values()[i]));
      columns.push_back({file.columns()[i].name, written_type(chunk.back())});
    }
    if (!encoder)
      encoder = std::make_unique<FileEncoder>(out, columns);
    if (rows == 0)
      break;
    encoder->add(chunk, rows);
  }
  encoder->finish();
  out.commit();
}

void print_speed(const char* path, int times) {
  double best = 0;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const ParquetFile file = open_file(path);
    RowsReader reader(file, all_columns(file));
    while (reader.read(kRows) > 0)
      continue;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(file.rows()) / took.count());
  }
  std::printf("%.0f\n", best);
}

int run(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--speed") == 0) {
    print_speed(argv[3], std::atoi(argv[2]));
  } else if (argc == 4 && std::strcmp(argv[1], "--copy") == 0) {
    copy(argv[2], argv[3]);
  } else if (argc == 2) {
    const std::string values = shown_values(open_file(argv[1]), kRows);
    std::fwrite(values.data(), 1, values.size(), stdout);
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace treadle::parquet

// parquet-values FILE | --speed TIMES FILE | --copy FROM TO
int main(int argc, char** argv) {
  try {
    return treadle::parquet::run(argc, argv);
  } catch (const treadle::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
}
