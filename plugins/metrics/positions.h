#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/validation/predictions.h>

namespace treadle::metrics {

/// A batch with its positions one beneath the other and without padding: N of them. Views where
/// there is nothing to leave out.
class Positions {
 public:
  /// Both must outlive the object.
  Positions(const Prediction& prediction, const TargetBatch& target);

  const at::Tensor& predicted() const { return predicted_; }  ///< [N, width]
  /// The classes or labels decided for: classes int64 [N], labels bool [N, width].
  at::Tensor decided() const;
  const at::Tensor& actual() const { return actual_; }    ///< classes [N], else [N, width]
  const at::Tensor& weights() const { return weights_; }  ///< float64 [N]; undefined: 1 each
  std::int64_t count() const { return predicted_.size(0); }
  double total_weight() const;

  /// [B, positions..., width], such as an extra of the prediction, as [N, width].
  at::Tensor flat(const at::Tensor& wide) const;

  /// The index of the row in the data that each position is of: int64 [N].
  at::Tensor rows() const;

  /// A number for each position that is the same in any batch, int64 [N]; for one position a row
  /// the index of the row in the data.
  at::Tensor numbers() const;

 private:
  at::Tensor counted(const at::Tensor& flat) const;

  const Prediction& prediction_;
  const TargetBatch& target_;
  at::IntArrayRef sizes_;  // [B, positions...]
  at::Tensor counted_;     // int64: the positions that are no padding; undefined: all
  at::Tensor predicted_;
  at::Tensor actual_;
  at::Tensor weights_;
};

/// Sum over positions of [N] or [N, width], each times its weight.
at::Tensor weighted_sum(const at::Tensor& values, const at::Tensor& weights);

}  // namespace treadle::metrics
