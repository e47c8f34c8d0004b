#include "masks.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/ones.h>

#include <treadle/base/error.h>

namespace treadle::augmentation {
namespace {

/// Values of pixels as images have them, [B, n, height, width], and back.
at::Tensor moved(const at::Tensor& values, bool is_of_classes, double fill,
                 const Masks::Move& move) {
  const at::Tensor planes =
      is_of_classes ? values.unsqueeze(1) : values.permute({0, 3, 1, 2}).contiguous();
  const at::Tensor result = move(planes, fill);
  return is_of_classes ? result.squeeze(1).contiguous() : result.permute({0, 2, 3, 1}).contiguous();
}

}  // namespace

Masks::Masks(const DataSpec& spec, const std::vector<std::optional<ImageShape>>& images,
             std::string component)
    : component_(std::move(component)) {
  for (std::size_t i = 0; i < spec.targets.size(); ++i) {
    const TargetSpec& target = spec.targets[i];
    const std::vector<std::int64_t> positions = target.positions();
    if (positions.size() != 2)
      continue;
    const Mask mask{i, positions[0], positions[1], target.kind == TargetKind::kClasses};
    const bool is_of_image = std::any_of(images.begin(), images.end(), [&](const auto& image) {
      return image && mask.fits(*image);
    });
    if (is_of_image)
      masks_.push_back(mask);
  }
}

std::vector<std::size_t> Masks::targets() const {
  std::vector<std::size_t> all;
  for (const Mask& mask : masks_)
    all.push_back(mask.target);
  return all;
}

void Masks::move(Batch& batch, const ImageShape& image, bool has_outside, const Move& move) const {
  if (batch.targets.empty())
    return;
  for (const Mask& mask : masks_) {
    if (!mask.fits(image))
      continue;
    const std::vector<std::size_t>& mixed = batch.mixture.mixed_targets;
    if (!batch.mixture.is_empty() &&
        std::find(mixed.begin(), mixed.end(), mask.target) == mixed.end()) {
      throw DataError(component_ +
                      " moves the masks of images, which mixup has mixed with others; put it in "
                      "front of mixup");
    }
    at::Tensor& target = batch.targets[mask.target];
    target = moved(target, mask.is_of_classes, 0, move);
    if (batch.position_weights.empty() && has_outside)
      batch.position_weights.resize(batch.targets.size());
    if (batch.position_weights.empty())
      continue;
    at::Tensor& weights = batch.position_weights[mask.target];
    if (!weights.defined() && !has_outside)
      continue;
    if (!weights.defined())
      weights = at::ones({target.size(0), mask.height, mask.width},
                         at::TensorOptions(at::kFloat).device(target.device()));
    weights = moved(weights, /*is_of_classes=*/true, 0, move);
  }
}

void Masks::resize(Batch& batch, const ImageShape& image, bool has_outside,
                   const Move& move) const {
  if (batch.targets.empty())
    return;
  std::vector<at::Tensor> before = batch.targets;
  this->move(batch, image, has_outside, move);
  for (const Mask& mask : masks_) {
    if (!mask.fits(image))
      continue;
    at::Tensor& original = batch.original_targets[mask.target];
    original = original.is_same(before[mask.target]) ? batch.targets[mask.target]
                                                     : moved(original, mask.is_of_classes, 0, move);
  }
}

void Masks::resize(DataSpec& spec, const ImageShape& from, std::int64_t height,
                   std::int64_t width) const {
  for (const Mask& mask : masks_) {
    if (!mask.fits(from))
      continue;
    spec.targets[mask.target].shape[0] = height;
    spec.targets[mask.target].shape[1] = width;
  }
}

}  // namespace treadle::augmentation
