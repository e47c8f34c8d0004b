#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "byte_source.h"
#include "codec.h"
#include "format.h"

namespace treadle::parquet {

/// A page of a column chunk, without its header and decompressed.
struct Page {
  PageType type = PageType::kData;
  Encoding encoding = Encoding::kPlain;
  std::size_t values = 0;  ///< with nulls
  /// Definition levels: 1 for a value, 0 for a null. Empty where a column has no nulls.
  std::string_view levels;
  Encoding level_encoding = Encoding::kRle;
  std::string_view body;  ///< the values
  /// The memory of both. Reused for the next page, unless somebody else holds it.
  std::shared_ptr<char[]> bytes;
};

/// The memory that the pages of all columns of a file may take together. A file of a megabyte could
/// otherwise have thousands of columns whose pages are zeros, and fill any memory.
class PageMemory {
 public:
  /// As much as any usual table needs, and more for large files.
  explicit PageMemory(std::uint64_t file_size)
      : most_((std::uint64_t{1} << 30) + 200 * file_size) {}

  /// Throws Damage where `more` bytes instead of `less` are too many.
  void exchange(std::size_t less, std::size_t more);

 private:
  std::uint64_t most_;
  std::uint64_t held_ = 0;
};

/// Reads the pages of a column chunk in order: checks sizes before it asks for memory, and the
/// checksum where there is one. In memory: a page, stored and decompressed. Throws Damage.
class PageStream {
 public:
  /// The largest page, in bytes.
  static constexpr std::int64_t kLargestPage = 200'000'000;

  /// Borrows all three.
  PageStream(const ByteSource& source, Compressor& compressor, PageMemory& memory)
      : source_(source), compressor_(compressor), memory_(memory) {}

  /// Begins a chunk, whose values have levels if the column is optional. Throws Damage where the
  /// chunk cannot lie in the file.
  void begin(const ColumnChunk& chunk, bool is_optional);

  /// The next page with data, or a dictionary; false at the end of the chunk.
  bool next(Page& page);
  /// The number of the page that next() read last, from 0.
  std::size_t index() const { return index_; }

 private:
  std::string_view at_least(std::size_t count);
  PageHeader read_header();
  void fill(Page& page, const PageHeader& header, std::string_view stored);
  void make_room(Page& page, std::size_t size);

  const ByteSource& source_;
  Compressor& compressor_;
  PageMemory& memory_;
  Codec codec_ = Codec::kUncompressed;
  bool is_optional_ = false;
  std::size_t index_ = 0;
  std::size_t next_index_ = 0;
  // Bytes of the chunk that have been read and not been used, and the rest in the file.
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t left_ = 0;
  std::size_t room_ = 0;  // of page.bytes
};

}  // namespace treadle::parquet
