#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "linear_scaler.h"

namespace treadle::transforms {

/// `normalize`: (x / white - mean) / std of images, with known numbers for each channel, as
/// torchvision.transforms.Normalize behind a scaling to [0, 1]. White is "max_value"; without it, 1
/// where the training rows lie in [0, 1], else 255.
class Normalize final : public LinearScaler {
 public:
  explicit Normalize(const Config& config);
  ~Normalize() override;

 private:
  bool takes_whole(const PortSpec& port) const override;
  std::unique_ptr<LineFit> start_fit(std::size_t columns) const override;

  double white_ = 0;  // 0: from the training rows
  std::vector<double> means_;
  std::vector<double> deviations_;
};

}  // namespace treadle::transforms
