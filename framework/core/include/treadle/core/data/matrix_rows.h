#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/abilities/contiguous_rows.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_reader.h>

namespace treadle {

/// Rows in memory as matrices: the RowReader of data providers that read or generate a whole table.
/// Owns handles to the tensors, which must not be written to any more.
///
/// gather() copies each row with one memcpy into the memory `out` already has: no dispatch, no
/// index tensor, nothing allocated when the batch fits.
class MatrixRows final : public RowReader, public ContiguousRows {
 public:
  struct Matrices {
    DataSpec spec;
    /// One per port of spec.inputs: [N, port.shape...], of the port's dtype. A dimension that
    /// varies is padded to the longest row; a port of lengths makes a batch no wider than its
    /// longest.
    std::vector<at::Tensor> inputs;
    /// One per target of spec.targets: [N, target.shape...].
    std::vector<at::Tensor> targets;
    /// One per target, as Batch::position_weights, or empty. Padding needs none: it has weight 0
    /// where TargetSpec::padded_like names a port with lengths.
    std::vector<at::Tensor> position_weights;
    at::Tensor weights;     ///< [N]; undefined means 1 each
    at::Tensor groups;      ///< int64 [N], or undefined
    at::Tensor timestamps;  ///< float64 [N], or undefined
    at::Tensor label_ends;  ///< likewise
    at::Tensor known_from;  ///< likewise
    /// The result of describe_row(); absent means "row 17". Called from any thread.
    std::function<std::string(std::int64_t row)> describe_row;
  };

  /// Expects contiguous CPU tensors with the shapes of `spec` and the same number of rows.
  explicit MatrixRows(Matrices matrices);
  ~MatrixRows() override;

  const Matrices& matrices() const { return matrices_; }

  /// 32 hex digits over the spec and the bytes of every tensor: DataProvider::content_hash() for
  /// data that is here. Reads everything once.
  std::string content_hash() const;

  at::Tensor contiguous_input(std::size_t port) const override { return matrices_.inputs[port]; }
  at::Tensor contiguous_weights() const override { return matrices_.weights; }

 private:
  const DataSpec& do_spec() const override { return matrices_.spec; }
  std::int64_t do_rows() const override { return rows_; }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override;
  at::Tensor do_targets(std::size_t target) const override { return matrices_.targets[target]; }
  at::Tensor do_position_weights(std::size_t target) const override;
  at::Tensor do_lengths(std::size_t input) const override;
  at::Tensor do_groups() const override { return matrices_.groups; }
  at::Tensor do_timestamps() const override { return matrices_.timestamps; }
  at::Tensor do_label_ends() const override { return matrices_.label_ends; }
  at::Tensor do_known_from() const override { return matrices_.known_from; }
  std::string do_describe_row(std::int64_t row) const override;

  void find_lengths();
  /// The longest of the rows by the port with their lengths; -1 without one.
  std::int64_t longest(std::optional<std::size_t> lengths,
                       std::span<const std::int64_t> rows) const;

  Matrices matrices_;
  std::int64_t rows_ = 0;
  // The port with the lengths of each input and target, where there is one.
  std::vector<std::optional<std::size_t>> lengths_of_inputs_;
  std::vector<std::optional<std::size_t>> lengths_of_targets_;
};

}  // namespace treadle
