#include <treadle/testing/data/writer_contract.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/table_writer.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/scratch_folder.h>

#include "claim.h"

namespace treadle::testing {
namespace {

namespace fs = std::filesystem;

std::string files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  std::string all;
  for (const auto& [name, bytes] : files)
    all += name + "\n" + bytes + "\n";
  return all;
}

/// Shared by the claims.
class WriterClaims : public ::testing::WithParamInterface<WriterCase> {
 protected:
  using Columns = std::vector<TableWriter::Column>;
  using Values = TableWriter::Values;
  using Type = TableWriter::Column::Type;

  std::unique_ptr<TableWriter> make() const { return GetParam().make(folder_.path()); }
  std::string contents() const {
    return GetParam().contents ? GetParam().contents(folder_.path()) : files_in(folder_.path());
  }

  static Columns columns() {
    return {
        {"row", Type::kInteger}, {"p(a)", Type::kFloat}, {"y", Type::kDouble}, {"id", Type::kText}};
  }
  /// Rows `first`, first + 1, …
  static std::vector<Values> chunk(std::int64_t first, std::int64_t rows) {
    std::vector<std::int64_t> integers;
    std::vector<float> floats;
    std::vector<double> doubles;
    std::vector<std::string> texts;
    for (std::int64_t row = first; row < first + rows; ++row) {
      integers.push_back(row);
      floats.push_back(static_cast<float>(row) / 8);
      doubles.push_back(static_cast<double>(row) / 3);
      texts.push_back("row " + std::to_string(row));
    }
    return {integers, floats, doubles, texts};
  }
  /// A whole table.
  void write(std::int64_t rows) const {
    const auto writer = make();
    writer->open(columns());
    writer->write(chunk(0, rows));
    writer->close();
  }

  const ScratchFolder folder_;
};

}  // namespace

LINKS_CLAIMS_OF(Writer)

CLAIM(Writer, MakingOneTouchesNothing) {
  const std::string before = contents();

  make();

  EXPECT_EQ(contents(), before);
}

CLAIM(Writer, NothingIsSeenBeforeClose) {
  const std::string before = contents();
  const auto writer = make();
  writer->open(columns());
  writer->write(chunk(0, 5000));
  // A file in the making may lie beside the place.
  if (GetParam().contents) {
    EXPECT_EQ(contents(), before);
  }

  writer->close();

  EXPECT_NE(contents(), before);
}

CLAIM(Writer, WithoutCloseWhatWasThereStays) {
  write(3);
  const std::string before = contents();
  {
    const auto writer = make();
    writer->open(columns());
    writer->write(chunk(0, 5000));
  }

  EXPECT_EQ(contents(), before);
}

CLAIM(Writer, OtherRowsAreAnotherTable) {
  write(3);
  const std::string three = contents();
  write(4);
  EXPECT_NE(contents(), three);
  write(3);
  EXPECT_EQ(contents(), three);
}

CLAIM(Writer, ATableMayComeInManyPieces) {
  write(1000);
  const std::string whole = contents();
  const auto writer = make();
  writer->open(columns());
  for (std::int64_t row = 0; row < 1000; row += 100)
    writer->write(chunk(row, 100));
  writer->write(chunk(0, 0));
  writer->close();

  EXPECT_EQ(contents(), whole);
}

CLAIM(Writer, TakesAnyNumberAndText) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto writer = make();
  writer->open({{"", Type::kInteger},
                {"a \"b\", c;\n'd'", Type::kFloat},
                {"größe", Type::kDouble},
                {"select", Type::kText}});
  writer->write(
      {std::vector<std::int64_t>{kMost, -kMost - 1, 0, 1},
       std::vector<float>{NAN, std::numeric_limits<float>::denorm_min(), -0.F, 1},
       std::vector<double>{kInfinity, -kInfinity, NAN, std::numeric_limits<double>::max()},
       std::vector<std::string>{"", "a \"b\", c;\r\n'd'\t\\", "größe", std::string(100'000, 'x')}});
  writer->close();
}

CLAIM(Writer, TakesATableWithoutRowsAndOneOfManyColumns) {
  const auto empty = make();
  empty->open(columns());
  empty->close();
  Columns many;
  std::vector<Values> values;
  for (int i = 0; i < 300; ++i) {
    many.push_back({"c" + std::to_string(i), Type::kDouble});
    values.emplace_back(std::vector<double>{.5, 1.5});
  }
  const auto wide = make();
  wide->open(many);
  wide->write(values);
  wide->close();
}

CLAIM(Writer, APlaceThatIsNotThereIsAnError) {
  const auto writer = GetParam().make(folder_.path() / "not" / "there");
  try {
    writer->open(columns());
    writer->write(chunk(0, 1));
    writer->close();
    ADD_FAILURE() << "expected a StorageError";
  } catch (const StorageError& error) {
    EXPECT_STRNE(error.what(), "");
  }
}

}  // namespace treadle::testing
