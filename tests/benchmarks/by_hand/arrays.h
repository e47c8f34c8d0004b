#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

/// What a loop by hand needs of two file formats, for floating point and int64: .npy (what
/// numpy.save writes) and safetensors. Made for files that the benchmarks wrote themselves.
namespace treadle::benchmarks {

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error(path.string() + ": cannot be opened");
  std::string bytes(std::filesystem::file_size(path), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

/// A tensor with a copy of `size` bytes at `data`.
inline at::Tensor tensor_of(const char* data, std::size_t size,
                            const std::vector<std::int64_t>& shape, at::ScalarType type) {
  at::Tensor tensor = at::empty(shape, type);
  if (tensor.nbytes() != size)
    throw std::runtime_error("an array has " + std::to_string(size) + " bytes, its shape needs " +
                             std::to_string(tensor.nbytes()));
  std::memcpy(tensor.data_ptr(), data, size);
  return tensor;
}

/// Version 1: magic, two bytes of version, two of length, then
/// {'descr': '<f4', 'fortran_order': False, 'shape': (60, 4), }.
inline at::Tensor read_npy(const std::filesystem::path& path) {
  const std::string bytes = bytes_of(path);
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes.at(i)));
  };
  if (bytes.compare(0, 6, "\x93NUMPY") != 0 || byte(6) != 1)
    throw std::runtime_error(path.string() + ": no .npy file of version 1");
  const std::size_t begin = 10 + byte(8) + 256 * byte(9);
  const std::string header = bytes.substr(10, begin - 10);
  std::vector<std::int64_t> shape;
  std::string sizes = header.substr(header.find("'shape': (") + 10);
  sizes.resize(sizes.find(')'));
  for (std::size_t at = sizes.find_first_of("0123456789"); at != std::string::npos;
       at = sizes.find_first_of("0123456789", at)) {
    std::size_t length = 0;
    shape.push_back(std::stoll(sizes.substr(at), &length));
    at += length;
  }
  const bool is_float = header.find("'<f4'") != std::string::npos;
  if (!is_float && header.find("'<i8'") == std::string::npos)
    throw std::runtime_error(path.string() + ": neither float32 nor int64");
  return tensor_of(bytes.data() + begin, bytes.size() - begin, shape,
                   is_float ? at::kFloat : at::kLong);
}

/// Eight bytes of length, JSON with name → {dtype, shape, data_offsets}, the tensors' bytes.
inline std::map<std::string, at::Tensor> read_safetensors(const std::filesystem::path& path) {
  static const std::map<std::string, at::ScalarType> kTypes{
      {"F32", at::kFloat}, {"F64", at::kDouble}, {"I64", at::kLong}};
  const std::string bytes = bytes_of(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.substr(0, 8).data(), 8);
  const char* const data = bytes.data() + 8 + length;
  const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      continue;
    const auto range = entry.at("data_offsets").get<std::array<std::size_t, 2>>();
    tensors[name] = tensor_of(data + range[0], range[1] - range[0], entry.at("shape"),
                              kTypes.at(entry.at("dtype")));
  }
  return tensors;
}

}  // namespace treadle::benchmarks
