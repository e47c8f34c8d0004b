#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

/// Changes of colors, as torchvision.transforms.v2.functional defines them. Images are [N,
/// channels, height, width] with levels from 0 to 255, of float32 or float64 whether they are bytes
/// or not; results lie in the same range. `factors` are [N, 1, 1, 1]: 1 leaves an image as it is.
/// Three channels are red, green and blue.
namespace treadle::augmentation::color {

/// `of_bytes`: levels are whole numbers, and means of gray levels are of whole numbers.
struct Levels {
  at::Tensor images;
  bool of_bytes = false;
};

/// level * factor
at::Tensor brightness(const Levels& levels, const at::Tensor& factors);
/// factor * level + (1 - factor) * the image's mean gray level
at::Tensor contrast(const Levels& levels, const at::Tensor& factors);
/// factor * level + (1 - factor) * gray. Images without three channels stay as they are.
at::Tensor saturation(const Levels& levels, const at::Tensor& factors);
/// Turns hues by `turns` of the circle, -0.5 to 0.5. Expects three channels.
at::Tensor hue(const Levels& levels, const at::Tensor& turns);
/// factor * level + (1 - factor) * smoothed, where the kernel is [[1, 1, 1], [1, 5, 1], [1, 1, 1]]
/// / 13; pixels at the edges stay as they are.
at::Tensor sharpness(const Levels& levels, const at::Tensor& factors);
/// The highest `bits` of each level, as of a byte.
at::Tensor posterize(const Levels& levels, std::int64_t bits);
/// 255 - level from `threshold` on.
at::Tensor solarize(const Levels& levels, double threshold);
/// Each channel's lowest level becomes 0 and its highest 255; a constant one stays.
at::Tensor autocontrast(const Levels& levels);
/// Each channel's levels become equally frequent, by the rule of PIL.ImageOps.equalize. Levels that
/// are no whole numbers are rounded down for it.
at::Tensor equalize(const Levels& levels);

}  // namespace treadle::augmentation::color
