#include "bit_packing.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "bytes.h"

namespace treadle::parquet {
namespace {

constexpr int kWidest = 32;
constexpr std::size_t kGroup = 8;

// The 8 bytes at `p`; a number of up to 32 bits that begins in the first is within them.
std::uint64_t eight_bytes(const char* p) {
  std::uint64_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

// Groups of 8 numbers, with shifts that the compiler knows. Reads up to 8 bytes past the groups.
template <int kWidth, typename T>
void unpack_groups(const char* p, T* out, std::size_t groups) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kWidth) - 1;
  for (; groups > 0; --groups, p += kWidth, out += kGroup) {
    for (std::size_t i = 0; i < kGroup; ++i) {
      const std::size_t bit = i * kWidth;
      out[i] = static_cast<T>((eight_bytes(p + bit / 8) >> (bit % 8)) & kMask);
    }
  }
}

template <typename T>
using Unpacker = void (*)(const char*, T*, std::size_t);

template <typename T, int... kWidths>
constexpr std::array<Unpacker<T>, sizeof...(kWidths)> unpackers(
    std::integer_sequence<int, kWidths...>) {
  return {unpack_groups<kWidths, T>...};
}

template <typename T>
void unpack_any(std::string_view bytes, int width, T* out, std::size_t count) {
  static constexpr auto kUnpackers = unpackers<T>(std::make_integer_sequence<int, kWidest + 1>());
  if (width == 0) {
    std::fill_n(out, count, T{0});
    return;
  }
  const auto stride = static_cast<std::size_t>(width);
  const Unpacker<T> unpack_by_groups = kUnpackers[stride];
  // Groups that can be read 8 bytes at a time, and the others by way of a copy with room behind it.
  const std::size_t groups =
      std::min(count / kGroup, bytes.size() < 8 ? 0 : (bytes.size() - 8) / stride);
  unpack_by_groups(bytes.data(), out, groups);
  for (std::size_t done = groups * kGroup; done < count; done += kGroup) {
    std::array<char, kWidest + 8> copy{};
    const std::string_view rest = bytes.substr(std::min(bytes.size(), done / kGroup * stride));
    std::copy_n(rest.begin(), std::min(rest.size(), stride), copy.begin());
    std::array<T, kGroup> numbers;
    unpack_by_groups(copy.data(), numbers.data(), 1);
    std::copy_n(numbers.begin(), std::min(kGroup, count - done), out + done);
  }
}

}  // namespace

void unpack(std::string_view bytes, int width, std::uint32_t* out, std::size_t count) {
  unpack_any(bytes, width, out, count);
}

void unpack(std::string_view bytes, int width, std::uint8_t* out, std::size_t count) {
  unpack_any(bytes, width, out, count);
}

void unpack_wide(std::string_view bytes, int width, std::size_t first, std::uint64_t* out,
                 std::size_t count) {
  const auto stride = static_cast<std::size_t>(width);
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  std::size_t bit = first * stride;
  std::size_t i = 0;
  for (; i < count && bit / 8 + 16 <= bytes.size(); ++i, bit += stride) {
    const char* p = bytes.data() + bit / 8;
    const std::size_t shift = bit % 8;
    std::uint64_t number = eight_bytes(p) >> shift;
    if (shift > 0)
      number |= eight_bytes(p + 8) << (64 - shift);
    out[i] = number & mask;
  }
  for (; i < count; ++i, bit += stride) {
    std::array<char, 16> copy{};
    const std::string_view rest = bytes.substr(std::min(bytes.size(), bit / 8));
    std::copy_n(rest.begin(), std::min(rest.size(), copy.size()), copy.begin());
    const std::size_t shift = bit % 8;
    std::uint64_t number = eight_bytes(copy.data()) >> shift;
    if (shift > 0)
      number |= eight_bytes(copy.data() + 8) << (64 - shift);
    out[i] = number & mask;
  }
}

HybridDecoder::HybridDecoder(std::string_view bytes, int width) : rest_(bytes), width_(width) {
  if (width > kWidest)
    throw Damage("numbers of " + std::to_string(width) + " bits; at most 32 are possible");
}

void HybridDecoder::next_run() {
  ByteCursor cursor(rest_);
  const std::uint64_t head = cursor.varint();
  const std::uint64_t count = head >> 1;
  if (count == 0 || count > INT32_MAX)
    throw Damage("a run has the impossible length " + std::to_string(count));
  is_packed_ = (head & 1) != 0;
  index_ = 0;
  if (is_packed_) {
    // Some writers cut the last group where its last number ends.
    const std::uint64_t size =
        std::min<std::uint64_t>(count * static_cast<std::uint64_t>(width_), cursor.left());
    packed_ = cursor.take(size);
    left_ = static_cast<std::size_t>(
        width_ == 0 ? count * kGroup
                    : std::min(count * kGroup, size * 8 / static_cast<std::uint64_t>(width_)));
    if (left_ == 0)
      throw Damage("it ends within a run of packed numbers");
  } else {
    value_ = 0;
    for (int shift = 0; shift < width_; shift += 8)
      value_ |= static_cast<std::uint32_t>(cursor.byte()) << shift;
    if (width_ < kWidest && value_ >> width_ != 0)
      throw Damage("a run's value has more than " + std::to_string(width_) + " bits");
    left_ = static_cast<std::size_t>(count);
  }
  rest_ = cursor.rest();
}

template <typename T>
void HybridDecoder::read(T* out, std::size_t count) {
  while (count > 0) {
    if (left_ == 0)
      next_run();
    std::size_t some = std::min(count, left_);
    if (!is_packed_) {
      std::fill_n(out, some, static_cast<T>(value_));
    } else if (index_ % kGroup == 0) {
      unpack(packed_.substr(index_ / kGroup * static_cast<std::size_t>(width_)), width_, out, some);
    } else {
      // The rest of a group that an earlier read() began.
      some = std::min(some, kGroup - index_ % kGroup);
      std::array<T, kGroup> group;
      unpack(packed_.substr(index_ / kGroup * static_cast<std::size_t>(width_)), width_,
             group.data(), kGroup);
      std::copy_n(group.begin() + static_cast<std::ptrdiff_t>(index_ % kGroup), some, out);
    }
    index_ += some;
    left_ -= some;
    out += some;
    count -= some;
  }
}

template void HybridDecoder::read<std::uint32_t>(std::uint32_t*, std::size_t);
template void HybridDecoder::read<std::uint8_t>(std::uint8_t*, std::size_t);

}  // namespace treadle::parquet
