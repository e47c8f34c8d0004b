#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>

/// Targets of every kind and shape for the cases of contract suites, and padding for them.
namespace treadle::testing {

/// How many positions kVaries stands for in a suite's batches.
inline constexpr std::int64_t kLongest = 5;

// Those with a name of the caller's choice stay in sight beside the ones below.
using treadle::class_target;
using treadle::number_target;

/// "price": `width` numbers at each position.
TargetSpec number_target(std::int64_t width, std::vector<std::int64_t> positions = {});

/// "species": one of "class-0", "class-1", … at each position.
TargetSpec class_target(std::int64_t count, std::vector<std::int64_t> positions = {});

/// "tags": any of "class-0", "class-1", … at each position.
TargetSpec label_target(std::int64_t count, std::vector<std::int64_t> positions = {});

/// "mixture": a probability for each of "class-0", "class-1", … at each position.
TargetSpec distribution_target(std::int64_t count, std::vector<std::int64_t> positions = {});

/// A kind of target that what works on `target` does not work on.
TargetSpec other_kind_of(const TargetSpec& target);

/// {rows, shape...}, kLongest for a dimension that varies.
std::vector<std::int64_t> sizes_of(std::int64_t rows, const std::vector<std::int64_t>& shape);

/// As Batch has them, from the task's random stream.
at::Tensor random_targets(const TargetSpec& target, std::int64_t rows,
                          at::ScalarType dtype = at::kDouble);

/// How long the row is when a batch has padding: along the first dimension of the positions.
std::int64_t length_of_row(std::int64_t row, const at::Tensor& targets);

/// Weights that make padding of what lies beyond the rows' lengths: 0 there, elsewhere 1. Without
/// positions every fourth row is padding.
at::Tensor padding_weights(const TargetSpec& target, const at::Tensor& targets);

/// `values` [B, positions...] or [B, positions..., width], and `other` where the weights are 0.
at::Tensor with_padding(const at::Tensor& values, const at::Tensor& other,
                        const at::Tensor& weights);

/// One row of `values` without its padding: nothing where the row is padding itself.
at::Tensor row_alone(const at::Tensor& values, const at::Tensor& weights, const at::Tensor& targets,
                     std::int64_t row);

}  // namespace treadle::testing
