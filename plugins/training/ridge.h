#pragma once

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>

namespace treadle {

/// Inputs and targets of a linear layer for some positions.
struct LayerRows {
  at::Tensor features;    ///< [n, in]
  at::Tensor targets;     ///< [n, width], of the features' dtype
  at::Tensor weights;     ///< [n], > 0; undefined: 1 each
  bool has_bias = false;  ///< of the layer
};

/// Ridge regression: with features x, targets y and row weights c,
///
///     min over W, b of   Σ c ‖y - W x - b‖² + alpha ‖W‖²,
///     W = Yᵀ X (Xᵀ X + alpha I)⁻¹   of centered X and Y,   b = ȳ - W x̄
///
/// (Hoerl and Kennard 1970; scikit-learn's Ridge.) Xᵀ X and Xᵀ Y are summed up batch by batch, so
/// the rows need not fit into memory. In float64, of features less the mean of the first batch, so
/// that centering cancels little.
class RidgeSums final : public Stateful {
 public:
  struct Solution {
    at::Tensor weight;  ///< [width, in]
    at::Tensor bias;    ///< [width]; undefined: the layer has none
  };

  explicit RidgeSums(double alpha) : alpha_(alpha) {}

  void add(const LayerRows& rows);
  /// Throws a TrainingError where no row has a weight, or no weights are the best.
  Solution solution() const;

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  const double alpha_;
  bool has_bias_ = false;
  at::Tensor origin_;    // [in], what features are less; undefined: no row yet
  at::Tensor weight_;    // 0-dim, Σ c
  at::Tensor features_;  // [in], Σ c x
  at::Tensor targets_;   // [width], Σ c y
  at::Tensor squares_;   // [in, in], Σ c x xᵀ
  at::Tensor products_;  // [in, width], Σ c x yᵀ
};

}  // namespace treadle
