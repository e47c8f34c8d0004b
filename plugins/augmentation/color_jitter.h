#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "augmentation.h"
#include "image_choice.h"
#include "pixel_levels.h"

namespace treadle::augmentation {

/// `color_jitter`: changes brightness, contrast, saturation and hue of each image of a training
/// batch, in an order that is drawn, by factors from [1 - x, 1 + x]; hue by [-x, x] of the circle.
/// As torchvision.transforms.ColorJitter, with draws of each row's own.
class ColorJitter final : public Augmentation {
 public:
  explicit ColorJitter(const Config& config);
  ~ColorJitter() override;

 private:
  /// One of the four changes, and the range of its factor.
  struct Kind {
    at::Tensor (*change)(const color::Levels& levels, const at::Tensor& factors);
    std::array<double, 2> range;
    bool needs_rgb = false;
    bool is_used() const { return range[0] < range[1]; }
  };
  static constexpr std::size_t kKinds = 4;

  std::vector<std::optional<ImageShape>> choose(const DataSpec& spec) const;
  void prepare(const DataSpec& before) override { images_ = choose(before); }
  void learn(const RowReader& reader, const RowList& rows) override {
    levels_.learn(reader, rows, images_);
  }
  void store(StateDict& state) const override { levels_.store(state); }
  void restore(const StateDict& state) override { levels_.restore(state); }
  void change(Batch& batch, const ApplyContext& context) const override;
  bool do_takes_bytes() const override { return true; }
  DataSpec do_output_spec(const DataSpec& before) const override;

  ImageChoice choice_;
  PixelLevels levels_;
  std::array<Kind, kKinds> kinds_;
  std::vector<std::optional<ImageShape>> images_;  // one per port
};

}  // namespace treadle::augmentation
