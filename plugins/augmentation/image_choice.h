#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/data/data_spec.h>

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

/// Calls `use` with one image of each size (height and width).
template <typename Use>
void for_each_size(const std::vector<std::optional<ImageShape>>& images, Use&& use) {
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto has_size = [&](const std::optional<ImageShape>& other) {
      return other && other->height == images[i]->height && other->width == images[i]->width;
    };
    if (images[i] &&
        std::none_of(images.begin(), images.begin() + static_cast<std::ptrdiff_t>(i), has_size))
      use(*images[i]);
  }
}

/// A batch's images, to be written to: contiguous, float32, float64 or bytes, shaped as `shape`
/// says.
void expect_images(at::Tensor& images, const ImageShape& shape);

/// Calls `use` with a value of the C++ type that the images have.
template <typename Use>
void with_pixel_of(const at::Tensor& images, Use&& use) {
  switch (images.scalar_type()) {
    case at::kFloat:
      return use(float{});
    case at::kDouble:
      return use(double{});
    default:
      return use(std::uint8_t{});
  }
}

/// Calls `change` with images [B, channels, height, width], which are then those of the batch.
template <typename Change>
void change_images(at::Tensor& images, const ImageShape& shape, Change&& change) {
  expect_images(images, shape);
  const std::vector<std::int64_t> sizes = images.sizes().vec();
  images = change(images.view({sizes[0], shape.channels, shape.height, shape.width})).view(sizes);
}

/// [B, 1, …], to be broadcast over `images`, with one element for each row: sent to their device,
/// for which the host does not wait.
at::Tensor per_row(const at::Tensor& of_rows, const at::Tensor& images);

}  // namespace treadle::augmentation
