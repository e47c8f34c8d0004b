#pragma once

#include <optional>
#include <vector>

#include "augmentation.h"
#include "image_choice.h"
#include "masks.h"

namespace treadle::augmentation {

/// `random_flip`: mirrors images in place, each row of a training batch with its own chance. All
/// inputs of a row are mirrored alike, and so are masks.
class RandomFlip final : public Augmentation {
 public:
  explicit RandomFlip(const Config& config);
  ~RandomFlip() override;

 private:
  void prepare(const DataSpec& before) override;
  void change(Batch& batch, const ApplyContext& context) const override;
  bool do_takes_bytes() const override { return true; }
  bool do_works_on_device() const override { return masks_.are_none(); }
  DataSpec do_output_spec(const DataSpec& before) const override;

  ImageChoice choice_;
  double horizontal_;
  double vertical_;
  std::vector<std::optional<ImageShape>> images_;  // one per port
  Masks masks_;
};

}  // namespace treadle::augmentation
