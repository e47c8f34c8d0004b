#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "augmentation.h"
#include "image_choice.h"
#include "masks.h"

namespace treadle::augmentation {

/// The base of `mixup` and `cutmix`: each row of a training batch is mixed with the row in
/// front of it, the first with the last, as torchvision.transforms.v2 pairs them; one share from
/// Beta(alpha, alpha) for the batch, or one for each row. The loss is that of both rows (Mixture).
///
/// A batch is mixed once: where another transform has mixed it, it stays as it is. So of `mixup`
/// with a probability and `cutmix` behind it, each batch has one.
class Mixing : public Augmentation {
 public:
  ~Mixing() override;

 protected:
  /// Reads "alpha", "probability" and "per_row".
  Mixing(const Config& config, std::string component, double alpha);

  /// One row, or all rows of a batch.
  struct Drawn {
    double share = 1;  ///< of the row itself
    double right = 0;  ///< where a patch lies, as fractions of the image
    double down = 0;
  };

 private:
  /// Mixes the inputs of rows with those of their partners; may change the shares.
  virtual void mix(Batch& batch, std::vector<Drawn>& rows, const ApplyContext& context) const = 0;
  void change(Batch& batch, const ApplyContext& context) const final;
  Drawn draw(RandomBits& bits) const;

  double alpha_;
  double probability_;
  bool per_row_;
};

/// `mixup` (Zhang et al. 2018): share * x + (1 - share) * x of the partner, in all inputs, or in
/// those that are named.
class Mixup final : public Mixing {
 public:
  explicit Mixup(const Config& config);
  ~Mixup() override;

 private:
  void prepare(const DataSpec& before) override { is_mixed_ = choose(before); }
  std::vector<bool> choose(const DataSpec& spec) const;
  void mix(Batch& batch, std::vector<Drawn>& rows, const ApplyContext& context) const override;
  DataSpec do_output_spec(const DataSpec& before) const override;

  std::optional<std::vector<std::string>> names_;
  std::vector<bool> is_mixed_;  // one per port
};

/// `cutmix` (Yun et al. 2019): a patch of each image is that of its partner's, and the share is the
/// area that is left. Masks have the partner's patch as well.
class Cutmix final : public Mixing {
 public:
  explicit Cutmix(const Config& config);
  ~Cutmix() override;

 private:
  std::vector<std::optional<ImageShape>> choose(const DataSpec& spec) const;
  void prepare(const DataSpec& before) override;
  void mix(Batch& batch, std::vector<Drawn>& rows, const ApplyContext& context) const override;
  bool do_takes_bytes() const override { return true; }
  bool do_works_on_device() const override { return masks_.are_none(); }
  DataSpec do_output_spec(const DataSpec& before) const override;

  ImageChoice choice_;
  std::vector<std::optional<ImageShape>> images_;  // one per port
  Masks masks_;
};

}  // namespace treadle::augmentation
