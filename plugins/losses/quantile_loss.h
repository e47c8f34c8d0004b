#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/devices/device_constant.h>
#include <treadle/core/training/loss.h>

namespace treadle::losses {

/// The pinball loss (Koenker & Bassett, "Regression Quantiles", 1978) of Q quantiles at once, for
/// the output x_q of quantile q and the target y:
///
///     l(x, y) = max(q * d, (q - 1) * d),   d = y - x_q
///
/// The mean runs over positions, width and quantiles. One output "quantiles"
/// [B, positions..., Q * width]: the numbers of the first quantile, then those of the next.
///
/// Predictions are the median; the other quantiles are extras: "q0.1", "q0.9". Nothing keeps the
/// outputs of a network from crossing: they are put in order (V. Chernozhukov, I. Fernandez-Val, A.
/// Galichon, "Quantile and Probability Curves Without Crossing", Econometrica 78, 2010), which no
/// pinball loss is the larger for, and Prediction::crossed says where.
class Quantile final : public Loss {
 public:
  explicit Quantile(const Config& config);

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override;
  at::Tensor do_weight(const TargetBatch& target) const override;
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override;

  std::vector<double> quantiles_;   // ascending
  DeviceConstant levels_;           // the same
  std::vector<std::string> names_;  // "q0.1"
};

}  // namespace treadle::losses
