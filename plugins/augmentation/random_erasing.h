#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "augmentation.h"
#include "boxes.h"
#include "image_choice.h"

namespace treadle::augmentation {

/// `random_erasing` (Zhong et al. 2020): a box of each image of a training batch becomes `value`,
/// with a probability. Area and aspect ratio are drawn as torchvision.transforms.RandomErasing
/// does: up to ten times, until the box is smaller than the image; else nothing is erased. Inputs
/// of one row have boxes at the same place, as shares of their sizes.
class RandomErasing final : public Augmentation {
 public:
  explicit RandomErasing(const Config& config);
  ~RandomErasing() override;

 private:
  void prepare(const DataSpec& before) override { images_ = choose(before); }
  std::vector<std::optional<ImageShape>> choose(const DataSpec& spec) const;
  Box draw(RandomBits bits, const ImageShape& image) const;
  void change(Batch& batch, const ApplyContext& context) const override;
  /// Where the values are bytes.
  bool do_takes_bytes() const override;
  DataSpec do_output_spec(const DataSpec& before) const override;

  ImageChoice choice_;
  double probability_;
  std::array<double, 2> scale_;
  std::array<double, 2> ratio_;
  std::vector<double> values_;                     // one, or one per channel
  std::vector<std::optional<ImageShape>> images_;  // one per port
};

}  // namespace treadle::augmentation
