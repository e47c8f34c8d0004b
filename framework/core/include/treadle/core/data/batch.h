#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <treadle/core/data/mixture.h>

namespace treadle {

/// Some rows of data, ready for a model. A bundle of tensor handles: copying it copies no data.
///
/// A stage that fills a Batch again and again (a pipeline slot) writes into the tensors already
/// there when they have the right size, so a warm pipeline does not allocate.
///
/// Numbers (inputs, targets, weights) are float32 or float64 as the data gives them, and of the
/// run's dtype once a batch is prepared for the model.
struct Batch {
  /// One tensor per port of DataSpec::inputs, same order: [B, port.shape...] of the port's dtype.
  /// Dimensions that vary are padded, with zeros, to the longest row of the batch.
  std::vector<at::Tensor> inputs;
  /// One per DataSpec::targets, same order: [B, target.shape...]. Empty when there are none.
  std::vector<at::Tensor> targets;
  /// The targets as the data gave them, float64 where it has them so, before any transform and
  /// before they are rounded to the run's dtype: metrics compare with these. The same handles as
  /// `targets` where nothing changes them.
  std::vector<at::Tensor> original_targets;
  /// How much each position of a target counts: [B, positions...], numbers >= 0; 0 for padding.
  /// One per target, undefined where each counts 1; or empty: all are undefined.
  std::vector<at::Tensor> position_weights;
  /// How much each row counts: [B], numbers >= 0. Undefined means 1 each.
  at::Tensor weights;
  /// The index of each row in the data: int64 [B], always on the CPU.
  at::Tensor rows;
  /// The group (series) of each row: int64 [B], always on the CPU; undefined where the data has
  /// none, or can only be read in order.
  at::Tensor groups = {};
  /// How rows are mixed with others; empty unless a transform did so, in training.
  Mixture mixture = {};

  std::int64_t size() const { return rows.defined() ? rows.size(0) : 0; }

  /// Looks up targets and weights of the partners of mixed rows; shares become numbers of `dtype`.
  /// Does nothing where no rows are mixed.
  void look_up_partners(c10::ScalarType dtype);
  /// The two batches whose losses add up to that of mixed rows: the rows as themselves, and as
  /// their partners, with weights that hold the shares. The inputs are those of both. Expects
  /// partners that were looked up.
  std::array<Batch, 2> unmixed() const;

  /// Rows [begin, begin + count), as views. Partners must have been looked up.
  Batch slice(std::int64_t begin, std::int64_t count) const;

  /// The same rows on a device; this where they are there already. Their numbers and groups stay on
  /// the CPU.
  /// The host waits for no copy to the device.
  Batch to(c10::Device device) const;

  /// The same rows with what `change` makes of each tensor but `rows` and `groups`. Handles of one
  /// tensor become handles of one tensor.
  Batch with_each(const std::function<at::Tensor(const at::Tensor&)>& change) const;

  /// The rows of all parts, one after the other, as a copy; dimensions that vary are padded to the
  /// longest. Expects at least one part, and all of the same data.
  static Batch join(std::span<const Batch> parts);
};

/// The rows of all parts, one after the other, as a copy; dimensions after the first are padded
/// with zeros to the longest. Expects at least one part, and all of as many dimensions.
at::Tensor join_padded(std::span<const at::Tensor> parts);

struct TargetSpec;

/// One target of a batch: what a loss or a metric is given. Views; made by the framework.
class TargetBatch {
 public:
  /// The target as transforms left it, which a loss compares with. `batch` must outlive the view.
  static TargetBatch transformed(const Batch& batch, std::size_t target, const TargetSpec& spec);
  /// The target in the data's units, which a metric compares with.
  static TargetBatch original(const Batch& batch, std::size_t target, const TargetSpec& spec);

  /// Every row `times` times in succession, for a loss that compares several outputs with one
  /// target. batch() stays as it is.
  TargetBatch repeated(std::int64_t times) const;

  /// `count` positions from `begin` on, of those of all rows one after the other, each as a row,
  /// for a loss that is computed in chunks. batch() stays as it is.
  TargetBatch slice_positions(std::int64_t begin, std::int64_t count) const;

  /// [B, target.shape...]
  const at::Tensor& values() const { return values_; }
  /// How much each position counts, row weights included: [B, positions...].
  /// Undefined: 1 each.
  const at::Tensor& weights() const { return weights_; }
  std::int64_t rows() const { return values_.size(0); }
  /// Rows times positions, padding included.
  std::int64_t positions() const { return positions_; }
  /// Everything else in the batch, for losses that need more than their target.
  const Batch& batch() const { return batch_; }

 private:
  TargetBatch(const Batch& batch, std::size_t target, const at::Tensor& values,
              const TargetSpec& spec);
  TargetBatch(const Batch& batch, at::Tensor values, at::Tensor weights, std::int64_t dimensions,
              std::int64_t positions)
      : batch_(batch),
        values_(std::move(values)),
        weights_(std::move(weights)),
        dimensions_(dimensions),
        positions_(positions) {}

  const Batch& batch_;
  at::Tensor values_;
  at::Tensor weights_;
  std::int64_t dimensions_ = 1;  // of values_: that of rows and those of positions
  std::int64_t positions_ = 0;
};

}  // namespace treadle
