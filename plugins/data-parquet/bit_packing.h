#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Integers of a few bits each, packed from the lowest bit of each byte upwards.
namespace treadle::parquet {

/// Unpacks `count` numbers of `width` bits, 0 to 32, from the front of `bytes`. A multiple of 8
/// numbers is fast. Expects bytes enough.
void unpack(std::string_view bytes, int width, std::uint32_t* out, std::size_t count);
void unpack(std::string_view bytes, int width, std::uint8_t* out, std::size_t count);
/// The same for 0 to 64 bits, from the number `first` on.
void unpack_wide(std::string_view bytes, int width, std::size_t first, std::uint64_t* out,
                 std::size_t count);

/// The bytes of `count` numbers of `width` bits.
constexpr std::uint64_t packed_size(std::uint64_t count, int width) {
  return (count * static_cast<std::uint64_t>(width) + 7) / 8;
}

/// Decodes the hybrid of runs and packed numbers (encoding RLE): levels, indices of dictionaries,
/// truth values. Holds a view of the bytes.
class HybridDecoder {
 public:
  HybridDecoder() = default;
  /// Throws Damage for a width above 32.
  HybridDecoder(std::string_view bytes, int width);

  /// Decodes the next numbers; T is uint32_t, or uint8_t for widths up to 8. Throws Damage where
  /// the bytes end before.
  template <typename T>
  void read(T* out, std::size_t count);

 private:
  void next_run();

  std::string_view rest_;
  int width_ = 0;
  // The current run: of one value, or packed, of which `index_` have been read.
  std::size_t left_ = 0;
  bool is_packed_ = false;
  std::uint32_t value_ = 0;
  std::string_view packed_;
  std::size_t index_ = 0;
};

extern template void HybridDecoder::read<std::uint32_t>(std::uint32_t*, std::size_t);
extern template void HybridDecoder::read<std::uint8_t>(std::uint8_t*, std::size_t);

}  // namespace treadle::parquet
