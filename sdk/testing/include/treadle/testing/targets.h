#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <treadle/core/data_spec.h>

/// Targets for the cases of contract suites.
namespace treadle::testing {

/// "price": `width` numbers.
inline TargetSpec number_target(std::int64_t width) {
  return {"price", TargetKind::kNumbers, width, {}};
}

/// "species": one of "class-0", "class-1", …
inline TargetSpec class_target(std::int64_t count) {
  TargetSpec target{"species", TargetKind::kClasses, 1, {}};
  for (std::int64_t c = 0; c < count; ++c)
    target.class_names.push_back("class-" + std::to_string(c));
  return target;
}

/// The other kind of target than `target` is.
inline TargetSpec other_kind_of(const TargetSpec& target) {
  return target.kind == TargetKind::kClasses ? number_target(1) : class_target(3);
}

/// As Batch has them, from the task's random stream.
inline at::Tensor random_targets(const TargetSpec& target, std::int64_t rows,
                                 at::ScalarType dtype = at::kDouble) {
  return target.kind == TargetKind::kClasses ? at::randint(target.class_count(), {rows}, at::kLong)
                                             : at::randn({rows, target.width}, dtype);
}

}  // namespace treadle::testing
