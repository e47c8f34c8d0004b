#include "parquet_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>

#include "bytes.h"
#include "footer.h"

namespace treadle::parquet {
namespace {

constexpr std::string_view kEncryptedMagic = "PARE";
constexpr std::uint64_t kTail = 8;                     // the footer's size, and "PAR1"
constexpr std::uint64_t kLongestFooter = 256'000'000;  // bytes

}  // namespace

std::string ParquetFile::read_footer_bytes() const {
  const std::uint64_t size = source_->size();
  if (size == 0)
    throw Damage("the file is empty");
  std::string tail(static_cast<std::size_t>(std::min(size, kTail)), '\0');
  source_->read(size - tail.size(), tail.data(), tail.size());
  std::string head(std::min(kMagic.size(), tail.size()), '\0');
  source_->read(0, head.data(), head.size());
  if (head == kEncryptedMagic)
    throw Damage("the file is encrypted, which is not supported");
  if (head != kMagic)
    throw Damage("this is no Parquet file: it does not begin with \"PAR1\"");
  if (size < kMagic.size() + kTail || tail.substr(4) != kMagic)
    throw Damage("the file is cut: a Parquet file ends with \"PAR1\"");
  const std::uint64_t length = ByteCursor(tail).fixed<std::uint32_t>();
  if (length > size - kMagic.size() - kTail || length > kLongestFooter)
    throw Damage("the footer has " + std::to_string(length) + " bytes, and the file " +
                 std::to_string(size));
  std::string footer(static_cast<std::size_t>(length), '\0');
  source_->read(size - kTail - length, footer.data(), footer.size());
  return footer;
}

void ParquetFile::check_row_groups(std::size_t leaves) const {
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < metadata_.row_groups.size(); ++i) {
    const RowGroup& group = metadata_.row_groups[i];
    if (group.columns.size() != leaves) {
      throw Damage("row group " + std::to_string(i) + " has " +
                   std::to_string(group.columns.size()) + " columns, but the schema has " +
                   std::to_string(leaves));
    }
    if (group.rows > INT64_MAX - rows)
      throw Damage("the row groups have more rows than a file can have");
    rows += group.rows;
  }
  if (rows != metadata_.rows) {
    throw Damage("the row groups have " + std::to_string(rows) + " rows, but the file has " +
                 std::to_string(metadata_.rows));
  }
}

ParquetFile::ParquetFile(std::unique_ptr<ByteSource> source, std::string shown)
    : source_(std::move(source)), shown_(std::move(shown)) {
  try {
    const std::string footer = read_footer_bytes();
    try {
      metadata_ = read_footer(footer);
      std::size_t leaves = 0;
      columns_ = columns_of(metadata_.schema, leaves);
      check_row_groups(leaves);
    } catch (const Damage& damage) {
      throw Damage(std::string("the footer is damaged: ") + damage.what());
    }
  } catch (const Damage& damage) {
    throw DataError(shown_ + ": " + damage.what());
  }
}

RowsReader::RowsReader(const ParquetFile& file, const std::vector<std::size_t>& columns)
    : file_(file), memory_(file.source().size()), values_(columns.size()) {
  for (const std::size_t place : columns) {
    const Column& column = file.columns().at(place);
    leaves_.push_back(column.leaf);
    readers_.push_back(
        std::make_unique<ColumnReader>(file.source(), compressor_, memory_, column, file.shown()));
  }
}

void RowsReader::begin_group() {
  const RowGroup& group = file_.row_groups()[group_];
  group_left_ = static_cast<std::size_t>(group.rows);
  for (std::size_t i = 0; i < readers_.size(); ++i)
    readers_[i]->begin(group.columns[leaves_[i]], group_left_, group_);
  is_begun_ = true;
}

std::size_t RowsReader::read(std::size_t most) {
  while (!is_begun_ || group_left_ == 0) {
    if (is_begun_) {
      ++group_;
      is_begun_ = false;
    }
    if (group_ == file_.row_groups().size())
      return 0;
    begin_group();
  }
  const std::size_t rows = std::min(most, group_left_);
  for (std::size_t i = 0; i < readers_.size(); ++i)
    readers_[i]->read(values_[i], rows);
  group_left_ -= rows;
  row_ += static_cast<std::int64_t>(rows);
  return rows;
}

void RowsReader::go_to(std::int64_t row) {
  TREADLE_EXPECTS(row >= 0 && row <= file_.rows(), "a row of the file, or the end");
  group_ = 0;
  row_ = 0;
  is_begun_ = false;
  const std::vector<RowGroup>& groups = file_.row_groups();
  while (group_ < groups.size() && groups[group_].rows <= row - row_)
    row_ += groups[group_++].rows;
  while (row_ < row) {
    constexpr std::int64_t kStep = 16384;
    read(static_cast<std::size_t>(std::min(row - row_, kStep)));
  }
}

}  // namespace treadle::parquet
