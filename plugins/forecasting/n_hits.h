#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>

#include "basis_stack.h"

/// N-HiTS: Challu et al., "N-HiTS: Neural Hierarchical Interpolation for Time Series Forecasting"
/// (2022). Defaults: width and layers of the authors' github.com/cchallu/n-hits, pools and
/// downsampling of neuralforecast's NHITS.
namespace treadle::forecasting {

/// A BasisStack whose blocks compute max(1, horizon / freq_downsample) knots of the forecast, and
/// interpolate between them. Knots have equal distances; the first and the last lie half of one
/// within the horizon, as those of torch.nn.functional.interpolate with align_corners=False:
///
/// - linear: straight lines, constant beyond the outer knots.
/// - nearest: the value of the knot.
/// - cubic: cubic convolution (Keys, 1981) with a = -0.75, as mode="bicubic" of one row.
///
/// Without a reference, forecasts of values begin at the last step of the window; others (scales,
/// logits: see Estimate) at 0.
///
/// **Rationale:** interpolation is a product with a matrix. Its backward pass is then the same on
/// every device and every time; that of the operators adds atomically on a GPU.
class NHitsStack final : public BasisStack {
 public:
  NHitsStack(const Config& config, const LayerSpec& spec);

 private:
  static Structure structure_of(const Config& config, const LayerSpec& spec);
  at::Tensor do_level(const at::Tensor& series) const override;

  std::int64_t horizon_;
  std::vector<Estimate> estimates_;
};

/// Stacks from coarse to fine: each with a pool of its own and knots of its own.
class NHits final : public StackedForecaster {
 public:
  explicit NHits(const Config& config);

 private:
  std::vector<nlohmann::json> do_stacks(const Task& task) const override;

  /// The stacks, but for what the task gives.
  std::vector<nlohmann::json> stacks_;
};

}  // namespace treadle::forecasting
