#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/training/loss.h>

namespace treadle::losses {

/// A loss that is no sum over rows: its value is that of exactly the given rows, with weight 1.
class WholeLoss : public Loss {
 protected:
  at::Tensor do_weight(const TargetBatch& target) const final;

 private:
  bool do_is_additive() const final { return false; }
};

/// Negative Pearson correlation of outputs and targets over all positions:
///
///     -mean((x - mean x) * (y - mean y)) / (max(std x, eps) * max(std y, eps)),   eps = 1e-8
///
/// with means by the positions' weights and population deviations. Several numbers a position: the
/// mean of each one's value. One output "values".
class Correlation final : public WholeLoss {
 public:
  explicit Correlation(const Config&) {}

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override;
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override;
};

/// Negative Sharpe ratio of a portfolio. The target is the return of each asset in one period, the
/// output a score for each:
///
///     r = sum_a softmax(score)_a * return_a   (a period)
///     -mean(r) / std(r)                       (over periods; 0 where std(r) < 1e-8)
///
/// with means by the periods' weights and the population deviation. One output "scores"
/// [B, positions..., assets]; predictions are the portfolio's weights, softmax(scores).
class Sharpe final : public WholeLoss {
 public:
  explicit Sharpe(const Config&) {}

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override;
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override;
};

}  // namespace treadle::losses
