#include "stretches.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>

#include <ATen/ops/empty.h>

namespace treadle::sequences {

void copy_stretches(const at::Tensor& source, std::span<const std::int64_t> starts,
                    std::span<const std::int64_t> samples, std::int64_t offset, std::int64_t count,
                    const std::vector<std::int64_t>& shape, at::Tensor& out) {
  std::vector<std::int64_t> sizes = {static_cast<std::int64_t>(samples.size())};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  const bool fits = out.defined() && out.scalar_type() == source.scalar_type() &&
                    out.sizes().equals(sizes) && out.is_contiguous();
  if (!fits)
    out = at::empty(sizes, source.options());
  const auto row_values = std::accumulate(source.sizes().begin() + 1, source.sizes().end(),
                                          std::int64_t{1}, std::multiplies<>());
  const std::size_t row_bytes = static_cast<std::size_t>(row_values) * source.element_size();
  const std::size_t bytes = static_cast<std::size_t>(count) * row_bytes;
  const auto* const from = static_cast<const std::byte*>(source.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  for (const std::int64_t sample : samples) {
    const std::int64_t row = starts[static_cast<std::size_t>(sample)] + offset;
    std::memcpy(to, from + static_cast<std::size_t>(row) * row_bytes, bytes);
    to += bytes;
  }
}

std::vector<std::int64_t> apart(std::span<const std::int64_t> samples,
                                std::span<const std::int64_t> starts, const at::Tensor& groups,
                                std::int64_t stride) {
  std::vector<std::int64_t> ascending(samples.begin(), samples.end());
  std::sort(ascending.begin(), ascending.end());
  const std::int64_t* const group = groups.defined() ? groups.data_ptr<std::int64_t>() : nullptr;
  std::vector<std::int64_t> kept;
  for (const std::int64_t sample : ascending) {
    const bool is_near =
        !kept.empty() && (group == nullptr || group[sample] == group[kept.back()]) &&
        starts[static_cast<std::size_t>(sample)] - starts[static_cast<std::size_t>(kept.back())] <
            stride;
    if (!is_near)
      kept.push_back(sample);
  }
  if (std::is_sorted(samples.begin(), samples.end()))
    return kept;
  std::vector<std::int64_t> in_their_order;
  std::copy_if(
      samples.begin(), samples.end(), std::back_inserter(in_their_order),
      [&](std::int64_t sample) { return std::binary_search(kept.begin(), kept.end(), sample); });
  return in_their_order;
}

}  // namespace treadle::sequences
