#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <treadle/core/contiguous_rows.h>
#include <treadle/core/row_reader.h>

namespace treadle::sequences {

/// The rows of a table, and stretches of them: what windows are cut from.
///
/// The columns of a row are the input's and, behind them, the numbers of some targets. They are
/// copied from wherever they lie. Where the rows have no contiguous memory, see contiguous_rows.h,
/// a table of up to kMostCopied is copied once, and a larger one read as it is asked for: no file
/// becomes memory that may not fit.
class StepTable final : public RowReader {
 public:
  static constexpr std::int64_t kMostCopied = std::int64_t{64} << 20;  ///< bytes

  /// Reads nothing of large rows but their targets and weights, as the reader has them. `rows`
  /// outlive the table, and have one input, a table of numbers. `joined`: the targets to put behind
  /// the columns. Throws DataError for targets with weights of positions.
  StepTable(const RowReader& rows, std::vector<std::size_t> joined);
  ~StepTable() override;

  std::int64_t width() const { return spec_.inputs[0].shape[0]; }
  at::Tensor target(std::size_t target) const { return targets_[target]; }
  const at::Tensor& weights() const { return weights_; }

  /// Before a batch is copied: throws DataError where a file is not what it was.
  void expect_unchanged() const;
  /// The columns of rows [first, first + count) for each of `firsts`: [firsts, count, width()], in
  /// the memory of `out` where it fits.
  void copy_columns(std::span<const std::int64_t> firsts, std::int64_t count,
                    at::Tensor& out) const;

 private:
  const DataSpec& do_spec() const override { return spec_; }
  std::int64_t do_rows() const override { return rows_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override;
  at::Tensor do_targets(std::size_t target) const override { return targets_[target]; }
  at::Tensor do_groups() const override { return rows_.groups(); }
  at::Tensor do_timestamps() const override { return rows_.timestamps(); }
  at::Tensor do_label_ends() const override { return rows_.label_ends(); }
  std::string do_describe_row(std::int64_t row) const override { return rows_.describe_row(row); }

  void find_columns();
  void find_weights();
  void read_columns(std::span<const std::int64_t> firsts, std::int64_t count, at::Tensor out) const;

  const RowReader& rows_;
  const ContiguousRows* const lies_in_memory_;  // null: nobody knows where
  DataSpec spec_;
  std::vector<at::Tensor> targets_;
  at::Tensor weights_;  // [N], or undefined
  std::vector<std::size_t> joined_;
  // What lies side by side in a row, each [N, numbers]. Empty: the input is read from the rows.
  std::vector<at::Tensor> columns_;
};

}  // namespace treadle::sequences
