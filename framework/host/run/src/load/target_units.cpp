#include "load/target_units.h"

#include <algorithm>
#include <array>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace treadle::internal {

namespace {

bool change_target(std::span<const Transform* const> transforms, const TargetSpec& target,
                   c10::ScalarType dtype) {
  if (target.kind != TargetKind::kNumbers)
    return false;
  // Two points tell a scale and an offset apart from nothing.
  const std::array probes{at::zeros({1, target.width()}, dtype),
                          at::ones({1, target.width()}, dtype)};
  return std::any_of(transforms.begin(), transforms.end(), [&](const Transform* transform) {
    return std::any_of(probes.begin(), probes.end(), [&](const at::Tensor& probe) {
      return !at::equal(transform->invert(probe.clone(), target.name), probe);
    });
  });
}

}  // namespace

bool change_targets(std::span<const Transform* const> transforms,
                    std::span<const TargetSpec> targets, c10::ScalarType dtype) {
  return std::any_of(targets.begin(), targets.end(), [&](const TargetSpec& target) {
    return change_target(transforms, target, dtype);
  });
}

}  // namespace treadle::internal
