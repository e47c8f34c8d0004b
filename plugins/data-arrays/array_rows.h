#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/abilities/contiguous_rows.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_reader.h>

#include "array_files.h"
#include "mapped_rows.h"
#include "row_source.h"

namespace treadle::arrays {

/// The rows of some arrays: inputs from wherever their sources have them, everything else in
/// memory or in a map. Immutable after construction.
class ArrayRows final : public RowReader, public ContiguousRows {
 public:
  struct Parts {
    DataSpec spec;
    std::int64_t rows = 0;
    std::vector<std::unique_ptr<const RowSource>> inputs;  ///< one per port
    /// Where the sources' rows are, for those that count; empty: all of them do.
    std::vector<std::int64_t> kept;
    /// One per port: how long each row of a source is, int64 [N]; undefined where all are alike.
    std::vector<at::Tensor> lengths;
    std::vector<at::Tensor> targets;  ///< as Batch has them, for the rows that count
    /// One per target: how long each row that counts is; undefined where all are alike.
    std::vector<at::Tensor> target_lengths;
    /// One per target: of the positions of each row that counts; undefined where each counts 1.
    std::vector<at::Tensor> target_weights;
    at::Tensor weights;     ///< for the rows that count, or undefined
    at::Tensor groups;      ///< likewise
    at::Tensor timestamps;  ///< likewise
    at::Tensor label_ends;  ///< likewise
    /// What the tensors above lie in, where that is no memory.
    std::vector<std::unique_ptr<const MappedRows>> maps;
    std::shared_ptr<const ArrayFiles> named_by;  ///< whose file and row stand for a row
  };

  explicit ArrayRows(Parts parts) : parts_(std::move(parts)) {}
  ~ArrayRows() override;

  at::Tensor contiguous_input(std::size_t port) const override;
  at::Tensor contiguous_weights() const override { return parts_.weights; }
  void expect_unchanged() const override;

 private:
  void expect_unchanged_views() const;
  const DataSpec& do_spec() const override { return parts_.spec; }
  std::int64_t do_rows() const override { return parts_.rows; }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override;
  void gather_targets(std::span<const std::int64_t> rows, Batch& out) const;
  at::Tensor do_targets(std::size_t target) const override { return parts_.targets[target]; }
  at::Tensor do_position_weights(std::size_t target) const override {
    return parts_.target_weights[target];
  }
  at::Tensor do_lengths(std::size_t input) const override;
  at::Tensor do_groups() const override { return parts_.groups; }
  at::Tensor do_timestamps() const override { return parts_.timestamps; }
  at::Tensor do_label_ends() const override { return parts_.label_ends; }
  std::string do_describe_row(std::int64_t row) const override;

  Parts parts_;
};

}  // namespace treadle::arrays
