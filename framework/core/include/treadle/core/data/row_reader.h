#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <treadle/base/provided.h>
#include <treadle/core/data/batch.h>

namespace treadle {

class SampleReader;
struct DataSpec;

/// Rows that can be read in any order. Folds, tuning trials and sequences share one copy of the raw
/// data and hand row lists to one RowReader.
///
/// An optional ability of a DataProvider (`provider.ask<RowReader>()`); transforms in front of it
/// give another RowReader. All functions are const and thread-safe.
class RowReader : public Provided {
 public:
  static constexpr std::string_view kInterface = "treadle.row-reader/0";

  virtual ~RowReader();

  const DataSpec& spec() const;
  std::int64_t rows() const;

  /// Fills `out` with the given rows in the given order, and with their groups. Every row must lie
  /// in [0, rows()); tensors already in `out` are reused when they have the right size and dtype;
  /// the caller must be their only user.
  void gather(std::span<const std::int64_t> rows, Batch& out) const;

  /// A target of all rows, as Batch::targets has it, padded to the longest row: what splits
  /// stratify by. A view, not a copy, where that is possible; never written to. Expects a target of
  /// spec().
  at::Tensor targets(std::size_t target = 0) const;
  /// How much each position of a target counts beside its padding, which never does:
  /// [N, positions...], padded like targets(). Undefined where each counts 1.
  at::Tensor position_weights(std::size_t target = 0) const;
  /// The length of each row of an input port, for samplers: int64 [N]; undefined where all are
  /// equal.
  at::Tensor lengths(std::size_t input) const;
  /// The group of each row: int64 [N], or undefined.
  at::Tensor groups() const;
  /// The time of each row, in any increasing unit: float64 [N], or undefined.
  at::Tensor timestamps() const;
  /// Where the label of a row is made of what happens after the row's time: the last time that it
  /// is made of, in the unit of timestamps(): float64 [N]. Undefined where the data does not say,
  /// and without timestamps().
  at::Tensor label_ends() const;
  /// Where the inputs of a row are not known at the row's time, as values between two rows are not:
  /// the time from which they are, in the unit of timestamps(): float64 [N], each at least the
  /// row's own time. Undefined where all are known at their times, and without timestamps().
  at::Tensor known_from() const;

  /// These rows, where they are samples made of the rows of a table, as the `sequence` made them;
  /// null for others.
  virtual const SampleReader* samples() const { return nullptr; }

  /// The place of the row in its source, for messages: "line 17 of data/iris.csv".
  std::string describe_row(std::int64_t row) const;
  /// The time of the row, for messages: "2017-06-28 00:00" where times are dates; empty without
  /// timestamps().
  std::string describe_time(std::int64_t row) const;

 private:
  virtual const DataSpec& do_spec() const = 0;
  virtual std::int64_t do_rows() const = 0;
  // `rows` is valid, and gather() has already set out.rows. It sets out.groups afterwards.
  virtual void do_gather(std::span<const std::int64_t> rows, Batch& out) const = 0;
  virtual at::Tensor do_targets(std::size_t target) const = 0;
  virtual at::Tensor do_position_weights(std::size_t /*target*/) const { return {}; }
  virtual at::Tensor do_lengths(std::size_t /*input*/) const { return {}; }
  virtual at::Tensor do_groups() const { return {}; }
  virtual at::Tensor do_timestamps() const { return {}; }
  virtual at::Tensor do_label_ends() const { return {}; }
  virtual at::Tensor do_known_from() const { return {}; }
  virtual std::string do_describe_row(std::int64_t row) const;
};

/// Copies `source`'s rows into `out` (batched copy: at::index_select_out), reusing out's memory
/// when it fits. For implementers of do_gather: `index` is Batch::rows, int64 [B].
void gather_rows(const at::Tensor& source, const at::Tensor& index, at::Tensor& out);

}  // namespace treadle
