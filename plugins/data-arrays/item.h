#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include <c10/core/ScalarType.h>

namespace treadle::arrays {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

/// What the numbers in a file are, little-endian.
enum class Item : std::uint8_t { kFloat32, kFloat64, kInt64, kInt32, kUint8 };

/// Calls `use` with a value of the C++ type.
template <typename Use>
decltype(auto) with_type_of(Item item, Use&& use) {
  switch (item) {
    case Item::kFloat32:
      return std::forward<Use>(use)(float{});
    case Item::kFloat64:
      return std::forward<Use>(use)(double{});
    case Item::kInt64:
      return std::forward<Use>(use)(std::int64_t{});
    case Item::kInt32:
      return std::forward<Use>(use)(std::int32_t{});
    case Item::kUint8:
      break;
  }
  return std::forward<Use>(use)(std::uint8_t{});
}

inline std::size_t size_of(Item item) {
  return with_type_of(item, [](auto value) { return sizeof value; });
}

inline bool is_integer(Item item) {
  return item != Item::kFloat32 && item != Item::kFloat64;
}

/// The numbers of inputs and targets that hold each number of a file exactly (integers up to 2^53).
inline c10::ScalarType number_dtype_of(Item item) {
  return item == Item::kFloat32 || item == Item::kUint8 ? c10::ScalarType::Float
                                                        : c10::ScalarType::Double;
}

/// As NumPy calls it: "float32".
std::string_view name_of(Item item);

/// The number at `bytes`, which need not be aligned.
template <typename T>
T number_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// `count` numbers of type From as numbers of type To. The one place where numbers change their
/// type, so that each way of access gives the same bits.
template <typename From, typename To>
void convert(const std::byte* from, std::size_t count, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, count * sizeof(To));
  } else {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = static_cast<To>(number_at<From>(from + i * sizeof(From)));
  }
}

}  // namespace treadle::arrays
