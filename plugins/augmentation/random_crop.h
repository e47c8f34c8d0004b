#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "augmentation.h"
#include "image_choice.h"
#include "masks.h"

namespace treadle::augmentation {

/// `random_crop`: a window of each image, at a place of its own for each row of a training batch,
/// else in the middle. Over the edges, by at most the padding, the window sees the fill value.
/// Inputs of one size, and their masks, are cut at the same place of a row. In place when the size
/// stays.
class RandomCrop final : public Augmentation {
 public:
  explicit RandomCrop(const Config& config);
  ~RandomCrop() override;

 private:
  struct Size {
    std::int64_t height = 0;
    std::int64_t width = 0;
  };

  /// The images, after checking that the window fits.
  std::vector<std::optional<ImageShape>> choose(const DataSpec& spec) const;
  Size window_of(const ImageShape& image) const {
    return size_.value_or(Size{image.height, image.width});
  }
  void prepare(const DataSpec& before) override;
  void change(Batch& batch, const ApplyContext& context) const override;
  /// Where the fill value is one.
  bool do_takes_bytes() const override;
  bool do_works_on_device() const override { return masks_.are_none(); }
  DataSpec do_output_spec(const DataSpec& before) const override;

  ImageChoice choice_;
  std::optional<Size> size_;  // absent: the image's own
  std::int64_t padding_;
  double fill_;
  std::vector<std::optional<ImageShape>> images_;  // one per port
  Masks masks_;
};

}  // namespace treadle::augmentation
