#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "augmentation.h"
#include "boxes.h"
#include "image_choice.h"
#include "masks.h"

namespace treadle::augmentation {

/// `random_resized_crop`: a box of each image of a training batch, of random area, aspect ratio and
/// place, resized to one size: torchvision.transforms.RandomResizedCrop, with antialiasing. In
/// evaluation, the largest box in the middle that has the aspect ratio of the size.
///
/// Inputs of one row have the same box, as shares of their sizes; masks are resized with their
/// images. Works on the host, so that less is sent to a device.
class RandomResizedCrop final : public Augmentation {
 public:
  explicit RandomResizedCrop(const Config& config);
  ~RandomResizedCrop() override;

 private:
  struct Size {
    std::int64_t height = 0;
    std::int64_t width = 0;
  };

  Size size_of(const ImageShape& image) const {
    return size_.value_or(Size{image.height, image.width});
  }
  void prepare(const DataSpec& before) override;
  Box draw(RandomBits bits, const ImageShape& image) const;
  Box middle_of(const ImageShape& image) const;
  void change(Batch& batch, const ApplyContext& context) const override;
  bool do_takes_bytes() const override { return true; }
  bool do_works_on_device() const override { return false; }
  DataSpec do_output_spec(const DataSpec& before) const override;

  ImageChoice choice_;
  std::optional<Size> size_;  // absent: the image's own
  std::array<double, 2> scale_;
  std::array<double, 2> ratio_;
  std::vector<std::optional<ImageShape>> images_;  // one per port
  Masks masks_;
};

}  // namespace treadle::augmentation
