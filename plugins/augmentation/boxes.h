#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::augmentation {

/// A part of an image: lines [top, bottom) and columns [left, right). Empty by default.
struct Box {
  std::int64_t top = 0;
  std::int64_t bottom = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;

  std::int64_t area() const { return (bottom - top) * (right - left); }
};

/// Which pixels lie in the box of their row: bool [N, 1, height, width] on the device of `images`
/// [N, channels, height, width], for which the host does not wait.
at::Tensor inside_of(const std::vector<Box>& boxes, const at::Tensor& images);

}  // namespace treadle::augmentation
