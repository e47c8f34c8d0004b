#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>

namespace treadle::outputs {

/// Absolute residuals of held-out rows, by the fold whose model predicted each row: the memory of
/// the jackknife+ and CV+ (R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani, "Predictive
/// inference with the jackknife+", 2021). M columns: a position and a number of the target each.
///
/// Const functions may be called from several threads.
class FoldResiduals {
 public:
  FoldResiduals() = default;
  /// `residuals`: float64 [N, M], NaN where a row does not count. `folds`: int64 [N], from 0.
  FoldResiduals(const at::Tensor& residuals, const at::Tensor& folds);

  bool empty() const { return !sorted_.defined(); }
  std::int64_t folds() const { return static_cast<std::int64_t>(sizes_.size()); }
  std::int64_t columns() const { return sorted_.size(0); }
  /// How many count in each column: int64 [M].
  at::Tensor counts() const { return counts_.sum(0); }
  /// All of them, with NaN: float64 [N, M].
  at::Tensor all() const { return sorted_.t(); }

  /// Of the sums of a prediction of fold k and a residual of fold k, over all residuals, the
  /// places[m]-th smallest in column m, counted from 1: float64 [B, M]. NaN where a prediction is
  /// no finite number. `predictions`: float64 [K, B, M]; `places`: int64 [M], from 1 to counts().
  ///
  /// Exactly the number that sorting all N sums would give, in a time of about K log N and without
  /// memory for the sums.
  at::Tensor nth_sum(const at::Tensor& predictions, const at::Tensor& places) const;

  StateDict state() const;
  /// Throws a StorageError when it is none of this class, or has another number of columns.
  static FoldResiduals from_state(const StateDict& state, std::int64_t columns);

 private:
  void count();

  at::Tensor sorted_;                // float64 [M, N]: fold after fold, ascending in each, NaN last
  std::vector<std::int64_t> sizes_;  // rows of each fold
  at::Tensor counts_;                // int64 [K, M]
};

}  // namespace treadle::outputs
