#pragma once

#include <span>

#include <ATen/core/Tensor.h>

#include "affine_map.h"

namespace treadle::augmentation {

/// How pixels between those of the source are found, and what lies outside of it. Bilinear results
/// of bytes are rounded to the nearest number, to the even one of two.
struct Sampling {
  bool is_bilinear = false;  ///< else the nearest pixel, the even one of two
  double fill = 0;
  bool tensors_only = false;  ///< the same bits by tensor operations, wherever the images are
};

/// Images [N, channels, height, width], looked up where `maps` says, one for each: the values of
/// torch.nn.functional.grid_sample (align_corners=False), with `fill` outside. Contiguous; float32,
/// float64 or uint8. Other dtypes (masks of classes) with the nearest pixel and tensors_only.
at::Tensor sampled(const at::Tensor& images, std::span<const AffineMap> maps,
                   const Sampling& sampling);

}  // namespace treadle::augmentation
