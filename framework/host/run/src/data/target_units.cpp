#include "data/target_units.h"

#include <algorithm>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <treadle/core/data/abilities/fits_groups.h>

namespace treadle::internal {

namespace {

/// The rows that both probes have: one, or one of each group where a transform has statistics for
/// each.
struct Probe {
  explicit Probe(const Transform& transform) {
    if (const auto* const by_group = transform.ask<FitsGroups>())
      groups = by_group->groups();
  }

  bool is_changed(const Transform& transform, const TargetSpec& target, double value,
                  c10::ScalarType dtype) const {
    const std::int64_t rows = groups.defined() ? groups.size(0) : 1;
    const at::Tensor probe = at::full({rows, target.width()}, value, dtype);
    return !at::equal(transform.invert(probe.clone(), target.name, groups), probe);
  }

  at::Tensor groups;
};

bool change_target(std::span<const Transform* const> transforms, const TargetSpec& target,
                   c10::ScalarType dtype) {
  if (target.kind != TargetKind::kNumbers)
    return false;
  // Two points tell a scale and an offset apart from nothing.
  return std::any_of(transforms.begin(), transforms.end(), [&](const Transform* transform) {
    const Probe probe(*transform);
    return probe.is_changed(*transform, target, 0, dtype) ||
           probe.is_changed(*transform, target, 1, dtype);
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
