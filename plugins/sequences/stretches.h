#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::sequences {

/// Copies the rows [starts[s] + offset, starts[s] + offset + count) of `source` [N, …] for each of
/// the samples s, one memcpy each, into `out` of shape [samples, shape…], whose memory is used
/// where it fits.
void copy_stretches(const at::Tensor& source, std::span<const std::int64_t> starts,
                    std::span<const std::int64_t> samples, std::int64_t offset, std::int64_t count,
                    const std::vector<std::int64_t>& shape, at::Tensor& out);

/// Of samples in any order those whose first rows are `stride` or more apart, the first of each
/// series among them: what SampleReader::evaluated() of overlapping samples gives. `starts` are
/// the first rows of all samples, ascending; `groups`, where defined, the series of each, int64.
std::vector<std::int64_t> apart(std::span<const std::int64_t> samples,
                                std::span<const std::int64_t> starts, const at::Tensor& groups,
                                std::int64_t stride);

}  // namespace treadle::sequences
