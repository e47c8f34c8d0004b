#include "idx_tensor.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>

namespace treadle::idx {
namespace {

template <typename T>
T number_at(const std::uint8_t* bytes) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, std::uint8_t,
      std::conditional_t<sizeof(T) == 2, std::uint16_t,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  Bits bits = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bits = static_cast<Bits>(static_cast<std::uint64_t>(bits) << 8 | bytes[i]);
  return std::bit_cast<T>(bits);
}

/// Calls `use` with a value of the C++ type.
template <typename Use>
void with_type_of(Item item, Use&& use) {
  switch (item) {
    case Item::kUint8:
      return use(std::uint8_t{});
    case Item::kInt8:
      return use(std::int8_t{});
    case Item::kInt16:
      return use(std::int16_t{});
    case Item::kInt32:
      return use(std::int32_t{});
    case Item::kFloat32:
      return use(float{});
    case Item::kFloat64:
      return use(double{});
  }
}

template <typename To>
at::Tensor converted(const IdxArray& array, at::ScalarType dtype) {
  at::Tensor tensor = at::empty(array.header.shape, dtype);
  To* const to = tensor.data_ptr<To>();
  const std::uint8_t* const from = array.bytes.data();
  const auto count = static_cast<std::size_t>(tensor.numel());
  with_type_of(array.header.item, [&](auto number) {
    using From = decltype(number);
    for (std::size_t i = 0; i < count; ++i)
      to[i] = static_cast<To>(number_at<From>(from + i * sizeof(From)));
  });
  return tensor;
}

template <typename T>
void expect_finite(const at::Tensor& numbers, const std::string& shown) {
  const T* const values = numbers.data_ptr<T>();
  const std::int64_t count = numbers.numel();
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) {
      throw DataError(shown + ": row " + std::to_string(i / (count / numbers.size(0))) + ": got " +
                      (std::isnan(values[i]) ? "NaN" : "infinity") + ", expected finite numbers");
    }
  }
}

}  // namespace

at::Tensor numbers_of(const IdxArray& array, bool keeps_bytes, const std::string& shown) {
  switch (array.header.item) {
    case Item::kUint8:
      if (keeps_bytes) {
        at::Tensor bytes = at::empty(array.header.shape, at::kByte);
        std::memcpy(bytes.data_ptr(), array.bytes.data(), array.bytes.size());
        return bytes;
      }
      [[fallthrough]];
    case Item::kInt8:
    case Item::kInt16:
      return converted<float>(array, at::kFloat);
    case Item::kFloat32: {
      at::Tensor numbers = converted<float>(array, at::kFloat);
      expect_finite<float>(numbers, shown);
      return numbers;
    }
    case Item::kInt32:
    case Item::kFloat64:
      break;
  }
  at::Tensor numbers = converted<double>(array, at::kDouble);
  expect_finite<double>(numbers, shown);
  return numbers;
}

at::Tensor integers_of(const IdxArray& array) {
  return converted<std::int64_t>(array, at::kLong);
}

}  // namespace treadle::idx
