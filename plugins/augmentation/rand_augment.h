#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "augmentation.h"
#include "image_choice.h"
#include "masks.h"
#include "pixel_levels.h"
#include "sampling.h"

namespace treadle::augmentation {

/// Operations that are drawn for each image of a training batch, one after the other.
class DrawnOperations : public Augmentation {
 public:
  ~DrawnOperations() override;

 protected:
  enum class Kind : std::uint8_t {
    kIdentity,
    kShearX,
    kShearY,
    kTranslateX,
    kTranslateY,
    kRotate,
    kBrightness,
    kColor,
    kContrast,
    kSharpness,
    kPosterize,
    kSolarize,
    kAutoContrast,
    kEqualize
  };
  static constexpr std::size_t kKinds = 14;

  /// How strong the operations are, at a bin from 0 (none) to bins - 1 (strongest).
  struct Space {
    double shear;             ///< tangent of the angle
    double translate_pixels;  ///< if above 0, else
    double translate_share;   ///< of width or height
    double rotate;            ///< degrees
    double color;             ///< how far a factor is from 1
    double posterized_bits;   ///< how many of 8 bits are left out
  };

  /// Reads "interpolation", "fill", "num_magnitude_bins", "inputs" and "max_value".
  DrawnOperations(const Config& config, std::string component, const Space& space,
                  std::int64_t operations);

  std::int64_t bins() const { return bins_; }

 private:
  struct Operation {
    Kind kind = Kind::kIdentity;
    double strength = 0;  ///< 0 to 1
    bool is_negative = false;
  };

  /// The bin of an operation.
  virtual std::int64_t draw_bin(RandomBits& bits) const = 0;

  Operation draw(RandomBits& bits) const;
  AffineMap map_of(const Operation& operation, const ImageShape& image) const;
  std::vector<AffineMap> maps_of(const std::vector<Operation>& rows, const ImageShape& image) const;
  void change_levels(const at::Tensor& images, const std::vector<Operation>& rows) const;
  void run(Batch& batch, const std::vector<Operation>& rows, bool tensors_only) const;

  void prepare(const DataSpec& before) final;
  void learn(const RowReader& reader, const RowList& rows) final {
    levels_.learn(reader, rows, images_);
  }
  void store(StateDict& state) const final { levels_.store(state); }
  void restore(const StateDict& state) final { levels_.restore(state); }
  void change(Batch& batch, const ApplyContext& context) const final;
  /// Where the fill value is one.
  bool do_takes_bytes() const final;
  bool do_works_on_device() const final { return masks_.are_none(); }
  DataSpec do_output_spec(const DataSpec& before) const final;

  ImageChoice choice_;
  PixelLevels levels_;
  Space space_;
  std::int64_t operations_;
  std::int64_t bins_;
  Sampling sampling_;
  std::vector<std::optional<ImageShape>> images_;  // one per port
  Masks masks_;
};

/// `rand_augment` (Cubuk et al. 2020): `num_ops` operations of one magnitude, with the operations
/// and ranges of torchvision.transforms.RandAugment.
class RandAugment final : public DrawnOperations {
 public:
  explicit RandAugment(const Config& config);
  ~RandAugment() override;

 private:
  std::int64_t draw_bin(RandomBits&) const override { return magnitude_; }

  std::int64_t magnitude_;
};

/// `trivial_augment` (Müller & Hutter 2021): one operation of a random magnitude, with the wider
/// ranges of torchvision.transforms.TrivialAugmentWide.
class TrivialAugment final : public DrawnOperations {
 public:
  explicit TrivialAugment(const Config& config);
  ~TrivialAugment() override;

 private:
  std::int64_t draw_bin(RandomBits& bits) const override {
    return static_cast<std::int64_t>(bits.below(static_cast<std::uint64_t>(bins())));
  }
};

}  // namespace treadle::augmentation
