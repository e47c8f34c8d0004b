#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>

#include "image_choice.h"

namespace treadle::augmentation {

/// The targets that have a value for each pixel of an image, such as the masks of a segmentation:
/// their positions are [height, width]. A transform that moves an image moves its mask.
///
/// Pixels from outside of the image have weight 0, so that losses and metrics leave them out; their
/// class is the first, and their numbers are 0.
class Masks {
 public:
  Masks() = default;
  /// Those of images that are chosen, by their height and width.
  /// `component` is the transform's name, for messages.
  Masks(const DataSpec& spec, const std::vector<std::optional<ImageShape>>& images,
        std::string component);

  bool are_none() const { return masks_.empty(); }
  /// Their places in DataSpec::targets.
  std::vector<std::size_t> targets() const;

  /// Moves values [B, n, height, width] as the images of this size are moved; outside is `fill`.
  using Move = std::function<at::Tensor(const at::Tensor& values, double fill)>;

  /// Moves the masks of images of this size, and their weights. `has_outside`: some pixels may come
  /// from outside of the image, so that weights are needed. Throws a DataError where rows are mixed
  /// with others whose masks are moved otherwise.
  void move(Batch& batch, const ImageShape& image, bool has_outside, const Move& move) const;

  /// As move(), for what also changes the sizes of evaluation: metrics then compare with the masks
  /// as they are now.
  void resize(Batch& batch, const ImageShape& image, bool has_outside, const Move& move) const;

  /// The specification behind a change of their size.
  void resize(DataSpec& spec, const ImageShape& from, std::int64_t height,
              std::int64_t width) const;

 private:
  struct Mask {
    std::size_t target = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;
    bool is_of_classes = false;

    bool fits(const ImageShape& image) const {
      return height == image.height && width == image.width;
    }
  };

  std::string component_;
  std::vector<Mask> masks_;
};

}  // namespace treadle::augmentation
