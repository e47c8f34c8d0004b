#pragma once

#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/validation/predictions.h>

namespace treadle {

/// A loss whose outputs have the uncertainty of a prediction: parameters of a distribution, or
/// the predictions of several members.
///
/// An optional ability of a Loss (`loss.ask<PredictsUncertainty>()`). Const functions are called
/// from several threads at once.
class PredictsUncertainty {
 public:
  static constexpr std::string_view kInterface = "treadle.predicts-uncertainty/0";

  virtual ~PredictsUncertainty();

  /// Shapes and units as Prediction::Uncertainty has them, for numbers those of the outputs. What
  /// the outputs do not have stays undefined. `outputs` are as Loss::outputs_for() returned them,
  /// without gradients.
  Prediction::Uncertainty uncertainty(const std::vector<at::Tensor>& outputs) const {
    return do_uncertainty(outputs);
  }

 private:
  virtual Prediction::Uncertainty do_uncertainty(const std::vector<at::Tensor>& outputs) const = 0;
};

}  // namespace treadle
