// Files of DuckDB and hyparquet-writer: data/make.mjs makes them and what they hold.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/testing/support/source_path.h>

#include "made_file.h"
#include "parquet_file.h"
#include "shown_values.h"

namespace treadle::parquet {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> foreign_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(
           treadle::testing::source_path(fs::path(TREADLE_PLUGIN_FOLDER) / "test/data"))) {
    if (entry.path().extension() == ".parquet")
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

ParquetFile open_file(const fs::path& path) {
  return {std::make_unique<FileSource>(path, path.filename()), path.filename()};
}

fs::path foreign_file(const std::string& name) {
  return treadle::testing::source_path(fs::path(TREADLE_PLUGIN_FOLDER) / "test/data" / name);
}

TEST(ParquetFiles, OfOthersHaveTheValuesThatTheirWritersHave) {
  ASSERT_GE(foreign_files().size(), 10U);
  for (const fs::path& path : foreign_files()) {
    const std::string expected = content_of(fs::path(path).replace_extension(".values"));

    EXPECT_EQ(shown_values(open_file(path), 10000), expected) << path;
  }
}

TEST(ParquetFiles, HaveTheSameValuesForAnyNumberOfRowsReadAtOnce) {
  for (const fs::path& path : foreign_files()) {
    const std::string expected = content_of(fs::path(path).replace_extension(".values"));

    for (const std::size_t step : {1, 7, 24})
      EXPECT_EQ(shown_values(open_file(path), step), expected) << path << ", " << step;
  }
}

TEST(ParquetFiles, AreReadFromAnyRowOn) {
  const ParquetFile file = open_file(foreign_file("hyparquet-groups.parquet"));
  ASSERT_GE(file.row_groups().size(), 3U);
  std::vector<std::string> all;
  RowsReader reader(file, {5});
  while (reader.read(1) > 0)
    all.push_back(shown_value(reader.values()[0], file.columns()[5], 0));
  ASSERT_EQ(static_cast<std::int64_t>(all.size()), file.rows());

  for (std::int64_t row = 0; row < file.rows(); ++row) {
    reader.go_to(row);

    EXPECT_EQ(reader.row(), row);
    ASSERT_EQ(reader.read(1), 1U);
    EXPECT_EQ(shown_value(reader.values()[0], file.columns()[5], 0),
              all[static_cast<std::size_t>(row)]);
  }
  reader.go_to(file.rows());
  EXPECT_EQ(reader.read(1), 0U);
}

// Whatever is cut or changed: an answer or a DataError, and checksums are not what catches it.
TEST(ParquetFiles, GiveErrorsAndNothingElseWhereTheyAreCut) {
  for (const char* name : {"hyparquet-snappy-some.parquet", "duckdb-v2-gzip.parquet"}) {
    const std::string bytes = content_of(foreign_file(name));
    for (std::size_t size = 0; size < bytes.size(); size += 13) {
      const std::string answer = values_or_error(std::string_view(bytes).substr(0, size));

      EXPECT_EQ(answer.substr(0, 11), "x.parquet: ") << name << ", " << size << " bytes";
    }
  }
}

TEST(ParquetFiles, GiveValuesOrErrorsWhereABitDiffers) {
  for (const char* name : {"hyparquet-uncompressed-runs.parquet", "duckdb-v1-zstd.parquet"}) {
    const std::string bytes = content_of(foreign_file(name));
    for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 37) {
      std::string changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);

      EXPECT_FALSE(values_or_error(changed).empty()) << name << ", bit " << bit;
    }
  }
}

}  // namespace
}  // namespace treadle::parquet
