#pragma once

#include <array>
#include <optional>
#include <vector>

#include "augmentation.h"
#include "image_choice.h"
#include "masks.h"
#include "sampling.h"

namespace treadle::augmentation {

/// `random_affine`: rotates, moves, scales and shears each image of a training batch about its
/// middle, as torchvision.transforms.RandomAffine. Inputs and masks of a row are changed alike.
class RandomAffine final : public Augmentation {
 public:
  explicit RandomAffine(const Config& config);
  ~RandomAffine() override;

 private:
  /// The draws of one row.
  struct Drawn {
    AffineChange change;                   // without the translation
    std::array<double, 2> translate = {};  // shares of width and height
  };

  void prepare(const DataSpec& before) override;
  Drawn draw(RandomBits& bits) const;
  void change(Batch& batch, const ApplyContext& context) const override;
  /// Where the fill value is one.
  bool do_takes_bytes() const override;
  bool do_works_on_device() const override { return masks_.are_none(); }
  DataSpec do_output_spec(const DataSpec& before) const override;

  ImageChoice choice_;
  std::array<double, 2> degrees_;
  std::array<double, 2> translate_;
  std::array<double, 2> scale_;
  std::array<std::array<double, 2>, 2> shear_;  // along x and y
  Sampling sampling_;
  std::vector<std::optional<ImageShape>> images_;  // one per port
  Masks masks_;
};

}  // namespace treadle::augmentation
