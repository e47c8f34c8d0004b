#pragma once

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/training/solves_last_layer.h>
#include <treadle/core/training/training_workflow.h>

namespace treadle {

/// Ridge regression of the last layer: with features x, targets y and row weights c,
///
///     min over W, b of   Σ c ‖y - W x - b‖² + alpha ‖W‖²,
///     W = Yᵀ X (Xᵀ X + alpha I)⁻¹   of centered X and Y,   b = ȳ - W x̄
///
/// (Hoerl and Kennard 1970; scikit-learn's Ridge.) Xᵀ X and Xᵀ Y are summed up batch by batch, so
/// the rows need not fit into memory. In float64, of features less the mean of the first batch, so
/// that centering cancels little.
///
/// State: those sums, of the rows that were read.
class ClosedFormTraining final : public TrainingWorkflow {
 public:
  explicit ClosedFormTraining(const Config& config) : alpha_(config.get<double>("alpha")) {}

 private:
  struct Solution {
    at::Tensor weight;  // [width, in]
    at::Tensor bias;    // [width]
  };

  void do_train(TrainingSession& session) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  void add(const LastLayerRows& rows);
  Solution solution() const;

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
