#pragma once

#include <cstdint>
#include <utility>

#include <ATen/core/Tensor.h>

namespace treadle {

/// Running mean and variance of each channel, as torch.nn.BatchNorm keeps them in its buffers: what
/// evaluation normalizes with.
///
/// In ordinary training a batch counts with the momentum m, s = (1 - m) s + m x. While they are
/// gathered (GathersStatistics) each batch counts the same, as with momentum=None in
/// PyTorch.
class RunningStatistics {
 public:
  RunningStatistics() = default;
  /// [channels] each: buffers of the layer.
  RunningStatistics(at::Tensor mean, at::Tensor var, double momentum)
      : mean_(std::move(mean)), var_(std::move(var)), momentum_(momentum) {}

  const at::Tensor& mean() const { return mean_; }
  const at::Tensor& var() const { return var_; }
  /// In ordinary training.
  double momentum() const { return momentum_; }
  /// What the batch that comes counts with. Changes nothing outside of gathering.
  double next_momentum() {
    return is_gathering_ ? 1.0 / static_cast<double>(++batches_) : momentum_;
  }

  void begin_gathering();
  void end_gathering() { is_gathering_ = false; }

 private:
  at::Tensor mean_;
  at::Tensor var_;
  double momentum_ = 0;
  bool is_gathering_ = false;
  std::int64_t batches_ = 0;
};

}  // namespace treadle
