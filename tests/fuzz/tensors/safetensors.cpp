#include <treadle/tensor/safetensors.h>

#include <cstring>

#include <treadle/base/error.h>

#include "memory_file.h"
#include "scratch.h"
#include "targets.h"

namespace treadle::fuzz {

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.nbytes() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0);
}

void safetensors(std::string_view bytes) {
  static const Scratch scratch;
  const MemoryFile file(bytes);
  TensorFile content;
  try {
    content = read_safetensors(file.path());
  } catch (const StorageError& error) {
    return promise_readable(error.what(), 2000 + 6 * bytes.size());
  }
  std::size_t size = 0;
  for (const auto& [name, tensor] : content.tensors)
    size += tensor.nbytes();
  promise(size <= bytes.size(), "tensors take no more memory than the file has bytes");

  const std::filesystem::path copy = scratch.folder() / "copy.safetensors";
  write_safetensors(copy, content);
  const TensorFile again = read_safetensors(copy);
  promise(again.metadata == content.metadata, "metadata written again is the same");
  promise(again.tensors.size() == content.tensors.size(), "no tensor is lost");
  for (const auto& [name, tensor] : content.tensors)
    promise(same_tensor(again.tensors.at(name), tensor), "a tensor written again has its bits");
}

}  // namespace treadle::fuzz
