#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/data_spec.h>

namespace treadle::augmentation {

/// One row of an input that is an image: [height, width], or [channels, height, width].
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t numel() const { return channels * height * width; }
};

/// Which inputs a transform of images works on: those its parameter "inputs" names, or all images.
class ImageChoice {
 public:
  /// Reads "inputs". `component` is the transform's name, for messages.
  ImageChoice(const Config& config, std::string component);

  /// For each input, its shape where it is chosen. Throws DataError when a named one is not there
  /// or is no image, and when there is no image at all.
  std::vector<std::optional<ImageShape>> choose(const DataSpec& spec) const;

 private:
  std::string component_;
  std::optional<std::vector<std::string>> names_;
};

/// A batch's images, to be written to: contiguous, float32 or float64, shaped as `shape` says.
void expect_images(at::Tensor& images, const ImageShape& shape);

}  // namespace treadle::augmentation
