#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data_spec.h>
#include <treadle/core/row_reader.h>

namespace treadle {

/// Rows that lie in memory as matrices: what a data provider that reads or makes a whole table
/// hands out as its RowReader. Owns handles to the tensors, which nobody may write to any more.
///
/// gather() copies each row with one memcpy into the memory `out` already has: no dispatch, no
/// index tensor, nothing allocated when the batch fits.
class MatrixRows final : public RowReader {
 public:
  struct Matrices {
    DataSpec spec;
    /// One per port of spec.inputs: [N, port.shape...], float32 or float64.
    std::vector<at::Tensor> inputs;
    /// As Batch has them, for all rows: int64 [N] or [N, width]; undefined without a target.
    at::Tensor targets;
    at::Tensor weights;     ///< [N]; undefined means 1 each
    at::Tensor groups;      ///< int64 [N], or undefined
    at::Tensor timestamps;  ///< float64 [N], or undefined
    /// What describe_row() answers; absent means "row 17". Called from any thread.
    std::function<std::string(std::int64_t row)> describe_row;
  };

  /// Expects contiguous CPU tensors, shaped as `spec` says, with one and the same number of rows.
  explicit MatrixRows(Matrices matrices);
  ~MatrixRows() override;

  const Matrices& matrices() const { return matrices_; }

  /// 32 hex digits over the spec and the bytes of every tensor: DataProvider::content_hash() for
  /// data that is here. Reads everything once.
  std::string content_hash() const;

 private:
  const DataSpec& do_spec() const override { return matrices_.spec; }
  std::int64_t do_rows() const override { return rows_; }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override;
  at::Tensor do_targets() const override { return matrices_.targets; }
  at::Tensor do_groups() const override { return matrices_.groups; }
  at::Tensor do_timestamps() const override { return matrices_.timestamps; }
  std::string do_describe_row(std::int64_t row) const override;

  Matrices matrices_;
  std::int64_t rows_ = 0;
};

}  // namespace treadle
