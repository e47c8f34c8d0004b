#pragma once

#include <span>

#include <treadle/core/data/transform.h>

namespace treadle::internal {

/// Whether the transforms change number targets, so that losses are in other units than the data's.
bool change_targets(std::span<const Transform* const> transforms,
                    std::span<const TargetSpec> targets, c10::ScalarType dtype);

}  // namespace treadle::internal
