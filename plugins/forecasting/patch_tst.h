#pragma once

#include <cstdint>

#include <treadle/base/config.h>
#include <treadle/core/data/data_spec.h>

#include "forecasters.h"

namespace treadle::forecasting {

/// PatchTST, trained with labels: patches of each channel, a transformer over them with batch norms
/// and scores that are added from layer to layer, and one linear map of all that comes out.
///
/// Windows are scaled by their own mean and deviation (`window_scale`), and so are forecasts, back.
///
/// Nie et al., "A Time Series is Worth 64 Words: Long-term Forecasting with Transformers" (2023);
/// defaults are those of the authors' PatchTST_supervised, github.com/yuqinie98/PatchTST.
class PatchTst final : public Forecaster {
 public:
  explicit PatchTst(const Config& config);

 private:
  nlohmann::json do_steps(const Task& task) const override;

  std::int64_t patch_len_;
  std::int64_t stride_;
  std::int64_t end_padding_;
  std::int64_t layers_;
  std::int64_t width_;
  std::int64_t heads_;
  std::int64_t feed_forward_;
  double dropout_;
  double attention_dropout_;
  double head_dropout_;
  bool adds_scores_;
  bool revin_affine_;
};

}  // namespace treadle::forecasting
