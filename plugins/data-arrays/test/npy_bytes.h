#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// NumPy's .npy format, written: for whatever test or benchmark needs a file to read.
namespace treadle::arrays {

/// What numpy.save writes, from parts that may be wrong.
struct RawNpy {
  std::string header(std::string_view shape) const {
    return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
           ", 'shape': " + std::string(shape) + ", }";
  }

  std::string descr = "<f4";
  bool fortran = false;
  int version = 1;
};

inline std::string npy_bytes(std::string header, std::string_view data, int version = 1) {
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  while ((8 + length_bytes + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i)
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + std::string(data);
}

template <typename T>
std::string descr_of();
template <>
inline std::string descr_of<float>() {
  return "<f4";
}
template <>
inline std::string descr_of<double>() {
  return "<f8";
}
template <>
inline std::string descr_of<std::int64_t>() {
  return "<i8";
}
template <>
inline std::string descr_of<std::int32_t>() {
  return "<i4";
}
template <>
inline std::string descr_of<std::uint8_t>() {
  return "|u1";
}

/// What numpy.save writes for these numbers; `shape` is a Python tuple: "(60, 4, 4)".
template <typename Values>
std::string npy_of(std::string_view shape, const Values& values) {
  using T = typename Values::value_type;
  const std::string_view data(reinterpret_cast<const char*>(values.data()),
                              values.size() * sizeof(T));
  return npy_bytes(RawNpy{descr_of<T>()}.header(shape), data);
}

}  // namespace treadle::arrays
