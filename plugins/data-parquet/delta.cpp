#include "delta.h"

#include <algorithm>
#include <string>

#include "bit_packing.h"

namespace treadle::parquet {
namespace {

constexpr std::uint64_t kLargestBlock = 1 << 20;  // values

int checked_width(char byte) {
  const int width = static_cast<unsigned char>(byte);
  if (width > 64)
    throw Damage("differences of " + std::to_string(width) + " bits; at most 64 are possible");
  return width;
}

}  // namespace

DeltaDecoder::DeltaDecoder(std::string_view bytes) : cursor_(bytes) {
  const std::uint64_t block = cursor_.varint();
  parts_ = cursor_.varint();
  count_ = left_ = cursor_.varint();
  last_ = static_cast<std::uint64_t>(cursor_.zigzag());
  if (block == 0 || block > kLargestBlock || parts_ == 0 || parts_ > block || block % parts_ != 0 ||
      block / parts_ % 8 != 0) {
    throw Damage("blocks of " + std::to_string(block) + " differences in " +
                 std::to_string(parts_) + " parts are impossible");
  }
  if (count_ > INT32_MAX)
    throw Damage(std::to_string(count_) + " values are more than a page can have");
  part_size_ = block / parts_;
  part_ = parts_;
}

void DeltaDecoder::next_part() {
  if (part_ == parts_) {
    least_ = static_cast<std::uint64_t>(cursor_.zigzag());
    widths_ = cursor_.take(parts_);
    part_ = 0;
  }
  width_ = checked_width(widths_[static_cast<std::size_t>(part_)]);
  ++part_;
  // The padding of the last part may be left out.
  const std::uint64_t needed = packed_size(std::min(left_, part_size_), width_);
  const std::uint64_t padded = packed_size(part_size_, width_);
  packed_ = cursor_.take(std::clamp<std::uint64_t>(cursor_.left(), needed, padded));
  index_ = 0;
  part_left_ = part_size_;
}

template <typename T>
void DeltaDecoder::read(T* out, std::size_t count) {
  if (count > left_) {
    throw Damage("there are " + std::to_string(count_) + " values, fewer than the page has");
  }
  if (is_first_ && count > 0) {
    *out++ = static_cast<T>(last_);
    is_first_ = false;
    --count;
    --left_;
  }
  while (count > 0) {
    if (part_left_ == 0)
      next_part();
    std::array<std::uint64_t, 64> differences;
    const auto some =
        static_cast<std::size_t>(std::min<std::uint64_t>({count, part_left_, differences.size()}));
    unpack_wide(packed_, width_, static_cast<std::size_t>(index_), differences.data(), some);
    std::uint64_t last = last_;
    for (std::size_t i = 0; i < some; ++i) {
      last += least_ + differences[i];
      out[i] = static_cast<T>(last);
    }
    last_ = last;
    out += some;
    count -= some;
    left_ -= some;
    index_ += some;
    part_left_ -= some;
  }
}

std::string_view DeltaDecoder::behind() const {
  ByteCursor cursor = cursor_;
  // The first value is in the header.
  std::uint64_t left = count_ > 0 ? count_ - 1 : 0;
  while (left > 0) {
    cursor.zigzag();
    const std::string_view widths = cursor.take(parts_);
    for (std::size_t part = 0; part < parts_ && left > 0; ++part) {
      cursor.take(packed_size(part_size_, checked_width(widths[part])));
      left -= std::min(left, part_size_);
    }
  }
  return cursor.rest();
}

template void DeltaDecoder::read<std::int32_t>(std::int32_t*, std::size_t);
template void DeltaDecoder::read<std::int64_t>(std::int64_t*, std::size_t);

}  // namespace treadle::parquet
