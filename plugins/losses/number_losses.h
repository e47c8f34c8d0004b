#pragma once

#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/training/loss.h>

namespace treadle::losses {

/// What losses on numbers share: outputs and targets are [B, positions..., width], the mean runs
/// over positions and width, a position's weight counts once for each of its numbers. One output
/// "values".
class NumberLoss : public Loss {
 protected:
  explicit NumberLoss(std::string_view name) : name_(name) {}

  /// The loss of every number, [N, width], or their sum, 0-dim.
  enum class Reduce { kNot, kSum };

 private:
  virtual at::Tensor differences(const at::Tensor& values, const at::Tensor& targets,
                                 Reduce reduce) const = 0;

  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const final;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const final;
  at::Tensor do_weight(const TargetBatch& target) const final;
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const final;

  std::string_view name_;
};

/// (x - y)^2
class Mse final : public NumberLoss {
 public:
  explicit Mse(const Config& config);

 private:
  at::Tensor differences(const at::Tensor& values, const at::Tensor& targets,
                         Reduce reduce) const override;
};

/// |x - y|
class L1 final : public NumberLoss {
 public:
  explicit L1(const Config& config);

 private:
  at::Tensor differences(const at::Tensor& values, const at::Tensor& targets,
                         Reduce reduce) const override;
};

/// (x - y)^2 / (2 beta) where |x - y| < beta, else |x - y| - beta / 2 (Girshick, Fast R-CNN, 2015).
class SmoothL1 final : public NumberLoss {
 public:
  explicit SmoothL1(const Config& config);

 private:
  at::Tensor differences(const at::Tensor& values, const at::Tensor& targets,
                         Reduce reduce) const override;

  double beta_;
};

}  // namespace treadle::losses
