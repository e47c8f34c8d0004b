#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/data/abilities/contiguous_rows.h>
#include <treadle/core/data/row_reader.h>

#include "window_ports.h"

namespace treadle::sequences {

/// Rows [first + offset, first + offset + count) of a sample that begins with row `first`.
struct StepRange {
  std::int64_t offset = 0;
  std::int64_t count = 1;

  bool operator==(const StepRange&) const = default;
};

/// The rows of tables, and stretches of them: what windows are cut from.
///
/// Its inputs are those of the windows, one row each. Their columns are copied from wherever they
/// lie. Where the rows have no contiguous memory, see contiguous_rows.h, a table of up to
/// kMostCopied is copied once, and a larger one read as it is asked for: no file becomes memory
/// that may not fit.
class StepTable final : public RowReader {
 public:
  static constexpr std::int64_t kMostCopied = std::int64_t{64} << 20;  ///< bytes, of one table

  /// Reads nothing of large rows but their targets and weights, as the reader has them. `rows`
  /// outlive the table; `ports` are of them. Throws DataError for targets with weights of
  /// positions.
  StepTable(const RowReader& rows, std::vector<WindowPort> ports);
  ~StepTable() override;

  const std::vector<WindowPort>& ports() const { return ports_; }
  at::Tensor target(std::size_t target) const { return targets_[target]; }
  const at::Tensor& weights() const { return weights_; }
  struct Place {
    std::int64_t row = 0;
    std::size_t column = 0;  ///< of a port
  };
  /// The first missing value of a port in some rows.
  std::optional<Place> first_missing(std::size_t port, const RowList& rows) const;
  /// The first value of a port that differs from the one above in the same series.
  std::optional<Place> first_change(std::size_t port) const;

  /// Before a batch is copied: throws DataError where a file is not what it was.
  void expect_unchanged() const;
  /// For each port the rows `ranges[port]` of each of `firsts`: [firsts, count, width], without
  /// the dimension of steps where `has_steps` is false for it, in the memory of `out` where it
  /// fits.
  void copy_inputs(std::span<const std::int64_t> firsts, std::span<const StepRange> ranges,
                   const std::vector<bool>& has_steps, std::vector<at::Tensor>& out) const;

 private:
  /// Columns that lie side by side in the rows of a table.
  struct Piece {
    at::Tensor table;  ///< [N, …], contiguous
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  using ReadRows = std::vector<std::pair<StepRange, Batch>>;

  const DataSpec& do_spec() const override { return spec_; }
  std::int64_t do_rows() const override { return rows_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override;
  at::Tensor do_targets(std::size_t target) const override { return targets_[target]; }
  at::Tensor do_groups() const override { return rows_.groups(); }
  at::Tensor do_timestamps() const override { return rows_.timestamps(); }
  at::Tensor do_label_ends() const override { return rows_.label_ends(); }
  at::Tensor do_known_from() const override { return rows_.known_from(); }
  std::string do_describe_row(std::int64_t row) const override { return rows_.describe_row(row); }

  void find_pieces();
  void find_weights();
  at::Tensor in_memory(std::size_t input) const;
  bool is_whole_input(const WindowPort& port) const;
  void copy_pieces(const std::vector<Piece>& pieces, std::span<const std::int64_t> firsts,
                   StepRange range, const at::Tensor& out) const;
  void read(const WindowPort& port, std::span<const std::int64_t> firsts, StepRange range,
            ReadRows& read_before, at::Tensor out) const;

  const RowReader& rows_;
  const ContiguousRows* const lies_in_memory_;  // null: nobody knows where
  std::vector<WindowPort> ports_;
  DataSpec spec_;
  std::vector<at::Tensor> targets_;
  at::Tensor weights_;  // [N], or undefined
  // Of each port; empty: its input is read from the rows.
  std::vector<std::vector<Piece>> pieces_;
};

}  // namespace treadle::sequences
