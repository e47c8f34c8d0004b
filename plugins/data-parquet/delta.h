#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bytes.h"

namespace treadle::parquet {

/// Decodes DELTA_BINARY_PACKED: blocks of differences to the value before, packed with as few bits
/// as each part of a block needs. Sums wrap around, as the format asks for. Holds a view.
class DeltaDecoder {
 public:
  DeltaDecoder() : cursor_("") {}
  /// Throws Damage for a header that cannot be.
  explicit DeltaDecoder(std::string_view bytes);

  /// The number of values.
  std::uint64_t count() const { return count_; }
  std::uint64_t left() const { return left_; }

  /// Decodes the next values; T is int32_t or int64_t. Throws Damage where there are none.
  template <typename T>
  void read(T* out, std::size_t count);

  /// The bytes behind all values, found without decoding them. Expects that none has been read.
  std::string_view behind() const;

 private:
  void next_part();

  ByteCursor cursor_;
  std::uint64_t count_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t parts_ = 0;      // in a block
  std::uint64_t part_size_ = 0;  // values in a part
  bool is_first_ = true;
  // The current block and the current part.
  std::uint64_t least_ = 0;
  std::string_view widths_;
  std::uint64_t part_ = 0;
  std::string_view packed_;
  int width_ = 0;
  std::uint64_t index_ = 0;
  std::uint64_t part_left_ = 0;
};

extern template void DeltaDecoder::read<std::int32_t>(std::int32_t*, std::size_t);
extern template void DeltaDecoder::read<std::int64_t>(std::int64_t*, std::size_t);

}  // namespace treadle::parquet
