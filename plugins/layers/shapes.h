#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/plan/op.h>

namespace treadle::layers {

/// Offers layers that move elements about, pick some, or join them, without weights.
void add_shapes(Registrar& registrar);

/// x.mean(dims), as an operation of a plan.
std::shared_ptr<const PlanOp> plan_mean(std::vector<std::int64_t> dims);
/// at::constant_pad_nd(x, widths, value): before and behind the last dimension, then the one
/// before.
std::shared_ptr<const PlanOp> plan_pad(const std::vector<std::int64_t>& widths, double value);

}  // namespace treadle::layers
