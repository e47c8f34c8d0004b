#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "boxes.h"

namespace treadle::augmentation {

/// A box of each of the images [N, channels, height, width], resized to `height` x `width` by
/// bilinear interpolation with antialiasing: torch.nn.functional.interpolate(mode="bilinear",
/// antialias=True), the triangle filter of PIL. Pixels outside of the box are not seen. Bytes are
/// rounded to the nearest number. On the CPU; float32, float64 or uint8, contiguous.
at::Tensor resized(const at::Tensor& images, std::span<const Box> boxes, std::int64_t height,
                   std::int64_t width);

/// The same of masks, of any dtype: the pixel whose area holds a new pixel's upper left corner, as
/// mode="nearest".
at::Tensor resized_masks(const at::Tensor& masks, std::span<const Box> boxes, std::int64_t height,
                         std::int64_t width);

}  // namespace treadle::augmentation
