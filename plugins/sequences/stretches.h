#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sample_starts.h"

namespace treadle::sequences {

/// Copies the rows [first + offset, first + offset + count) of `source` [N, …] for each of
/// `firsts`, one memcpy each, into `out` of shape [firsts, shape…], whose memory is used where it
/// fits.
void copy_stretches(const at::Tensor& source, std::span<const std::int64_t> firsts,
                    std::int64_t offset, std::int64_t count, const std::vector<std::int64_t>& shape,
                    at::Tensor& out);

/// copy_stretches() of weights of rows [N] that become those of a target's positions [count, …].
void copy_position_weights(const at::Tensor& weights, std::span<const std::int64_t> firsts,
                           std::int64_t offset, std::int64_t count,
                           const std::vector<std::int64_t>& positions, at::Tensor& out);

/// Makes `out` [count, shape…] of these options, in the memory that is there where it fits.
void make_fit(std::int64_t count, const std::vector<std::int64_t>& shape,
              const at::TensorOptions& options, at::Tensor& out);

/// The same of all samples, [samples, shape…], as a view of `source` where they are of one series,
/// and a copy where they are of several.
at::Tensor all_stretches(const at::Tensor& source, const SampleStarts& starts, std::int64_t offset,
                         std::int64_t count, const std::vector<std::int64_t>& shape);

/// One number of each sample, that of row `offset` of its rows: [samples], contiguous. Undefined
/// where `source` is.
at::Tensor of_samples(const at::Tensor& source, const SampleStarts& starts, std::int64_t offset);

}  // namespace treadle::sequences
