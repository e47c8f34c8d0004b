#include "file_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/version.h>

#include "format.h"

namespace treadle::parquet {
namespace {

using Type = TableWriter::Column::Type;

constexpr std::size_t kMostTextBytes = std::size_t{1} << 30;

Physical physical_of(Type type) {
  switch (type) {
    case Type::kInteger:
      return Physical::kInt64;
    case Type::kFloat:
      return Physical::kFloat;
    case Type::kDouble:
      return Physical::kDouble;
    case Type::kText:
      return Physical::kByteArray;
  }
  return Physical::kByteArray;
}

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

// The least and greatest number, unless one is NaN. The least zero is -0 and the greatest +0, as
// parquet.thrift asks for: readers take the two for equal.
template <typename T>
void find_range(std::string_view plain, std::string& least, std::string& greatest) {
  const std::size_t count = plain.size() / sizeof(T);
  if (count == 0)
    return;
  T low{};
  T high{};
  bool is_known = true;
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, plain.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_floating_point_v<T>)
      is_known = is_known && !std::isnan(value);
    low = i == 0 ? value : std::min(low, value);
    high = i == 0 ? value : std::max(high, value);
  }
  if (!is_known)
    return;
  if constexpr (std::is_floating_point_v<T>) {
    if (low == 0)
      low = -T{0};
    if (high == 0)
      high = T{0};
  }
  least = bytes_of(low);
  greatest = bytes_of(high);
}

}  // namespace

FileEncoder::FileEncoder(FileWriter& out, std::vector<TableWriter::Column> columns)
    : out_(out), columns_(std::move(columns)), pending_(columns_.size()) {
  write(kMagic);
}

void FileEncoder::write(std::string_view bytes) {
  out_.write(bytes);
  offset_ += static_cast<std::int64_t>(bytes.size());
}

void FileEncoder::append(Pending& pending, const TableWriter::Values& values, std::size_t begin,
                         std::size_t end) {
  const auto end_page = [&](std::size_t row) {
    pending.pages.emplace_back(pending.bytes.size(), pending_rows_ + (row - begin));
  };
  const auto page_size = [&] {
    return pending.bytes.size() - (pending.pages.empty() ? 0 : pending.pages.back().first);
  };
  std::visit(
      [&](const auto& column) {
        using Value = typename std::decay_t<decltype(column)>::value_type;
        if constexpr (std::is_same_v<Value, std::string>) {
          for (std::size_t row = begin; row < end; ++row) {
            const std::string& text = column[row];
            if (text.size() > kMostTextBytes) {
              throw StorageError(
                  "a text of " + std::to_string(text.size()) +
                  " bytes is too long for a Parquet file; at most 1 GiB is possible");
            }
            const auto size = static_cast<std::uint32_t>(text.size());
            pending.bytes += bytes_of(size);
            pending.bytes += text;
            if (page_size() >= kPageBytes)
              end_page(row + 1);
          }
        } else {
          pending.bytes.append(reinterpret_cast<const char*>(column.data() + begin),
                               (end - begin) * sizeof(Value));
        }
      },
      values);
}

void FileEncoder::add(const std::vector<TableWriter::Values>& chunk, std::size_t rows) {
  for (std::size_t begin = 0; begin < rows;) {
    // Few at a time, so that long texts do not make a row group of any size.
    constexpr std::size_t kStep = 1024;
    const std::size_t end = std::min({rows, begin + kStep, begin + (kGroupRows - pending_rows_)});
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      append(pending_[i], chunk[i], begin, end);
      bytes += pending_[i].bytes.size();
    }
    pending_rows_ += end - begin;
    begin = end;
    if (pending_rows_ == kGroupRows || bytes >= kGroupBytes)
      write_group();
  }
}

void FileEncoder::write_pages(const Pending& pending, Chunk& chunk) {
  std::size_t begin = 0;
  std::size_t first_row = 0;
  std::string stored;
  for (const auto& [end, end_row] : pending.pages) {
    const std::string_view plain = std::string_view(pending.bytes).substr(begin, end - begin);
    stored.clear();
    compressor_.compress(plain, stored);
    ThriftWriter header;
    header.integer(1, static_cast<std::int32_t>(PageType::kData));
    header.integer(2, static_cast<std::int32_t>(plain.size()));
    header.integer(3, static_cast<std::int32_t>(stored.size()));
    header.integer(4, static_cast<std::int32_t>(crc_of(stored)));
    header.begin(5);
    header.integer(1, static_cast<std::int32_t>(end_row - first_row));
    header.integer(2, static_cast<std::int32_t>(Encoding::kPlain));
    header.integer(3, static_cast<std::int32_t>(Encoding::kRle));
    header.integer(4, static_cast<std::int32_t>(Encoding::kRle));
    header.end();
    header.end();
    write(header.bytes());
    write(stored);
    chunk.size += static_cast<std::int64_t>(header.bytes().size() + stored.size());
    chunk.uncompressed_size += static_cast<std::int64_t>(header.bytes().size() + plain.size());
    begin = end;
    first_row = end_row;
  }
}

void FileEncoder::write_group() {
  Group group;
  group.rows = static_cast<std::int64_t>(pending_rows_);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Pending& pending = pending_[i];
    if (pending.pages.empty() || pending.pages.back().second < pending_rows_)
      pending.pages.emplace_back(pending.bytes.size(), pending_rows_);
    Chunk chunk;
    chunk.offset = offset_;
    switch (columns_[i].type) {
      case Type::kInteger:
        find_range<std::int64_t>(pending.bytes, chunk.least, chunk.greatest);
        break;
      case Type::kFloat:
        find_range<float>(pending.bytes, chunk.least, chunk.greatest);
        break;
      case Type::kDouble:
        find_range<double>(pending.bytes, chunk.least, chunk.greatest);
        break;
      case Type::kText:
        break;
    }
    write_pages(pending, chunk);
    group.chunks.push_back(std::move(chunk));
    pending.bytes.clear();
    pending.pages.clear();
  }
  rows_ += group.rows;
  groups_.push_back(std::move(group));
  pending_rows_ = 0;
}

void FileEncoder::write_schema(ThriftWriter& footer) const {
  footer.list(2, ThriftType::kStruct, columns_.size() + 1);
  footer.begin_element();
  footer.binary(4, "schema");
  footer.integer(5, static_cast<std::int32_t>(columns_.size()));
  footer.end();
  for (const TableWriter::Column& column : columns_) {
    footer.begin_element();
    footer.integer(1, static_cast<std::int32_t>(physical_of(column.type)));
    footer.integer(3, static_cast<std::int32_t>(Repetition::kRequired));
    footer.binary(4, column.name);
    if (column.type == Type::kText) {
      footer.integer(6, static_cast<std::int32_t>(Converted::kUtf8));
      footer.begin(10);
      footer.begin(static_cast<int>(Logical::kString));
      footer.end();
      footer.end();
    }
    footer.end();
  }
}

void FileEncoder::write_row_groups(ThriftWriter& footer) const {
  footer.list(4, ThriftType::kStruct, groups_.size());
  for (const Group& group : groups_) {
    std::int64_t size = 0;
    std::int64_t uncompressed_size = 0;
    footer.begin_element();
    footer.list(1, ThriftType::kStruct, group.chunks.size());
    for (std::size_t i = 0; i < group.chunks.size(); ++i) {
      const Chunk& chunk = group.chunks[i];
      size += chunk.size;
      uncompressed_size += chunk.uncompressed_size;
      footer.begin_element();
      footer.long_integer(2, 0);
      footer.begin(3);
      footer.integer(1, static_cast<std::int32_t>(physical_of(columns_[i].type)));
      footer.list(2, ThriftType::kInt32, 1);
      footer.element(static_cast<std::int64_t>(Encoding::kPlain));
      footer.list(3, ThriftType::kBinary, 1);
      footer.element(columns_[i].name);
      footer.integer(4, static_cast<std::int32_t>(Codec::kZstd));
      footer.long_integer(5, group.rows);
      footer.long_integer(6, chunk.uncompressed_size);
      footer.long_integer(7, chunk.size);
      footer.long_integer(9, chunk.offset);
      footer.begin(12);
      footer.long_integer(3, 0);
      if (!chunk.least.empty()) {
        footer.binary(5, chunk.greatest);
        footer.binary(6, chunk.least);
        if (columns_[i].type != Type::kInteger)
          footer.long_integer(9, 0);
      }
      footer.end();
      footer.end();
      footer.end();
    }
    footer.long_integer(2, uncompressed_size);
    footer.long_integer(3, group.rows);
    footer.long_integer(6, size);
    footer.end();
  }
}

void FileEncoder::finish() {
  if (pending_rows_ > 0)
    write_group();
  ThriftWriter footer;
  footer.integer(1, 1);
  write_schema(footer);
  footer.long_integer(3, rows_);
  write_row_groups(footer);
  footer.binary(6, "treadle version " + std::string(version()));
  footer.list(7, ThriftType::kStruct, columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    footer.begin_element();
    footer.begin(1);
    footer.end();
    footer.end();
  }
  footer.end();
  write(footer.bytes());
  write(bytes_of(static_cast<std::uint32_t>(footer.bytes().size())));
  write(kMagic);
}

}  // namespace treadle::parquet
