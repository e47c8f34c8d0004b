#pragma once

#include <ATen/core/Tensor.h>

#include "row_source.h"

namespace treadle::arrays {

/// Rows that were read when the data was opened.
class MemoryRows final : public RowSource {
 public:
  /// Expects a contiguous tensor, which nobody writes to any more.
  explicit MemoryRows(at::Tensor rows) : rows_(std::move(rows)) {}

  void gather(std::span<const std::int64_t> rows, at::Tensor& out) const override;
  at::Tensor view(at::ScalarType dtype) const override {
    return rows_.scalar_type() == dtype ? rows_ : at::Tensor();
  }

 private:
  at::Tensor rows_;
};

/// Copies rows of one tensor, or their beginnings, into another of the same dtype: as much of each
/// as `out` has.
void copy_rows(const at::Tensor& source, std::span<const std::int64_t> rows, at::Tensor& out);

}  // namespace treadle::arrays
