#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/training/parameter_arena.h>

namespace treadle::optimizers {

/// A parameter as matrices: kernels [out, in, k...] flattened to [out, in * k...], a stack
/// [n, rows, columns...] as n of them.
struct Matrices {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  bool operator==(const Matrices&) const = default;

  std::int64_t longest() const { return rows > columns ? rows : columns; }
  /// `tensor`, of the parameter's sizes, as [count, rows, columns].
  at::Tensor view(const at::Tensor& tensor) const { return tensor.reshape({count, rows, columns}); }
};

/// None (count 0) of vectors, of tables, and where a matrix would have one row or one column.
inline Matrices matrices_of(const Segment& segment) {
  const std::vector<std::int64_t>& shape = segment.shape;
  const bool is_stack = segment.role == ParameterRole::kStack;
  const std::size_t first = is_stack ? 1 : 0;
  if (segment.role == ParameterRole::kTable || shape.size() < first + 2 || segment.size == 0)
    return {};
  const std::int64_t count = is_stack ? shape.front() : 1;
  const std::int64_t rows = shape[first];
  const std::int64_t columns = segment.size / (count * rows);
  return rows > 1 && columns > 1 ? Matrices{count, rows, columns} : Matrices{};
}

}  // namespace treadle::optimizers
