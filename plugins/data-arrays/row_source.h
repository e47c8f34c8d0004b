#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace treadle::arrays {

/// Rows of one input, wherever they lie, in the run's dtype.
class RowSource {
 public:
  virtual ~RowSource() = default;

  /// Copies the given rows, in the given order, into `out`: contiguous, [rows.size(), …]. Called
  /// from several threads at once. Throws DataError.
  virtual void gather(std::span<const std::int64_t> rows, at::Tensor& out) const = 0;
};

}  // namespace treadle::arrays
