#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

namespace treadle {

/// A file in the safetensors format: eight bytes with the length of a JSON header, the header, the
/// raw little-endian tensors. Format: github.com/huggingface/safetensors, "Format".
struct TensorFile {
  std::map<std::string, at::Tensor, std::less<>> tensors;
  std::map<std::string, std::string> metadata;  ///< text by name
  /// The dtype by the name of tensors that were read past: see UnknownDtypes.
  std::map<std::string, std::string> left_out = {};
};

/// Of tensors whose dtype libtorch, or this version, does not have.
enum class UnknownDtypes {
  kRefuse,
  kLeaveOut  ///< for files of others, of which perhaps other tensors are wanted
};

/// The file's bytes are complete and synced under a temporary name before they take the place of an
/// older file. Tensors of float64, float32, bfloat16, float16, the integers and bool; those with
/// the largest elements lie first, so that each is aligned for readers that map the file.
void write_safetensors(const std::filesystem::path& path, const TensorFile& content);

/// Reads a file from anyone: every length and offset is checked before it is used. Throws
/// StorageError naming path and defect. Tensors own their memory.
TensorFile read_safetensors(const std::filesystem::path& path,
                            UnknownDtypes unknown = UnknownDtypes::kRefuse);

}  // namespace treadle
