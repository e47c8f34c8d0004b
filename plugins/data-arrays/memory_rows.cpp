#include "memory_rows.h"

#include <cstddef>
#include <cstring>

namespace treadle::arrays {

void MemoryRows::gather(std::span<const std::int64_t> rows, at::Tensor& out) const {
  copy_rows(rows_, rows, out);
}

void copy_rows(const at::Tensor& source, std::span<const std::int64_t> rows, at::Tensor& out) {
  const std::size_t row_bytes = source.nbytes() / static_cast<std::size_t>(source.size(0));
  const std::size_t copied = items_of(out) * out.element_size();
  const auto* const from = static_cast<const std::byte*>(source.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  for (const std::int64_t row : rows) {
    std::memcpy(to, from + static_cast<std::size_t>(row) * row_bytes, copied);
    to += copied;
  }
}

}  // namespace treadle::arrays
