#include "stretches.h"

#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>

#include <ATen/ops/empty.h>

namespace treadle::sequences {

void make_fit(std::int64_t count, const std::vector<std::int64_t>& shape,
              const at::TensorOptions& options, at::Tensor& out) {
  std::vector<std::int64_t> sizes = {count};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  const bool fits = out.defined() && out.scalar_type() == options.dtype().toScalarType() &&
                    out.sizes().equals(sizes) && out.is_contiguous();
  if (!fits)
    out = at::empty(sizes, options);
}

void copy_stretches(const at::Tensor& source, std::span<const std::int64_t> firsts,
                    std::int64_t offset, std::int64_t count, const std::vector<std::int64_t>& shape,
                    at::Tensor& out) {
  make_fit(static_cast<std::int64_t>(firsts.size()), shape, source.options(), out);
  const auto row_values = std::accumulate(source.sizes().begin() + 1, source.sizes().end(),
                                          std::int64_t{1}, std::multiplies<>());
  const std::size_t row_bytes = static_cast<std::size_t>(row_values) * source.element_size();
  const std::size_t bytes = static_cast<std::size_t>(count) * row_bytes;
  const auto* const from = static_cast<const std::byte*>(source.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  for (const std::int64_t first : firsts) {
    std::memcpy(to, from + static_cast<std::size_t>(first + offset) * row_bytes, bytes);
    to += bytes;
  }
}

void copy_position_weights(const at::Tensor& weights, std::span<const std::int64_t> firsts,
                           std::int64_t offset, std::int64_t count,
                           const std::vector<std::int64_t>& positions, at::Tensor& out) {
  if (positions.size() == 1)
    return copy_stretches(weights, firsts, offset, count, positions, out);
  at::Tensor of_rows;
  copy_stretches(weights, firsts, offset, count, {count}, of_rows);
  while (of_rows.dim() < static_cast<std::int64_t>(positions.size()) + 1)
    of_rows = of_rows.unsqueeze(-1);
  std::vector<std::int64_t> sizes = positions;
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(firsts.size()));
  out = of_rows.expand(sizes).contiguous();
}

at::Tensor all_stretches(const at::Tensor& source, const SampleStarts& starts, std::int64_t offset,
                         std::int64_t count, const std::vector<std::int64_t>& shape) {
  if (!starts.has_one_series()) {
    std::vector<std::int64_t> firsts(static_cast<std::size_t>(starts.size()));
    for (std::size_t i = 0; i < firsts.size(); ++i)
      firsts[i] = starts[static_cast<std::int64_t>(i)];
    at::Tensor values;
    copy_stretches(source, firsts, offset, count, shape, values);
    return values;
  }
  // [samples, count, row…]; a sample of one row has no dimension of steps.
  std::vector<std::int64_t> sizes = source.sizes().vec();
  std::vector<std::int64_t> strides = source.strides().vec();
  const std::int64_t row = strides.front();
  sizes.front() = starts.size();
  strides.front() = row * starts.stride();
  if (shape.size() == sizes.size()) {
    sizes.insert(sizes.begin() + 1, count);
    strides.insert(strides.begin() + 1, row);
  }
  return source.as_strided(sizes, strides, source.storage_offset() + (starts[0] + offset) * row);
}

at::Tensor of_samples(const at::Tensor& source, const SampleStarts& starts, std::int64_t offset) {
  return source.defined() ? all_stretches(source.contiguous(), starts, offset, 1, {}).contiguous()
                          : source;
}

}  // namespace treadle::sequences
