#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// The IDX format (http://yann.lecun.com/exdb/mnist): two zero bytes, the type of the numbers, how
/// many dimensions there are, each as four bytes, and the numbers, the last index fastest. All
/// numbers are big-endian.
namespace treadle::idx {

/// The type of the numbers. The enumerators have the values of the format.
enum class Item : std::uint8_t {
  kUint8 = 0x08,
  kInt8 = 0x09,
  kInt16 = 0x0B,
  kInt32 = 0x0C,
  kFloat32 = 0x0D,
  kFloat64 = 0x0E
};

std::size_t size_of(Item item);
/// As NumPy calls it: "uint8".
std::string_view name_of(Item item);
inline bool is_integer(Item item) {
  return item < Item::kFloat32;
}

struct IdxHeader {
  Item item = Item::kUint8;
  std::vector<std::int64_t> shape = {};  ///< at least one dimension

  /// Behind the header; nothing: more than 2^63.
  std::optional<std::int64_t> bytes() const;
};

/// The first four bytes of a file, which give the size of its header.
struct IdxStart {
  Item item;
  std::size_t dimensions;
};

/// Throws DataError, without the file's name.
IdxStart read_start(std::span<const std::uint8_t, 4> bytes);

struct IdxArray {
  IdxHeader header;
  std::vector<std::uint8_t> bytes;  ///< as in the file: big-endian
};

/// Reads a file, plain or compressed by gzip, whatever it is called. Throws DataError: it is no IDX
/// file, is truncated or damaged, is longer than its header states, or has more than `max_bytes`.
/// Memory is taken as bytes come, not as the header promises them.
IdxArray read_idx(const std::filesystem::path& file, std::int64_t max_bytes);

}  // namespace treadle::idx
