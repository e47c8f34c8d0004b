#include "positions.h"

#include <ATen/ops/scalar_tensor.h>

namespace treadle::losses {
namespace {

// Row weights alone are no padding, and as they are they cost nothing here.
bool may_be_padded(const TargetBatch& target) {
  return target.weights().defined() && !target.weights().is_same(target.batch().weights);
}

}  // namespace

std::vector<std::int64_t> shape_per_position(const TargetSpec& target, std::int64_t width) {
  std::vector<std::int64_t> shape = target.positions();
  shape.push_back(width);
  return shape;
}

Positions::Positions(const at::Tensor& output_of_rows, const TargetBatch& target_of_rows)
    : output(output_of_rows), target(target_of_rows.values()), weights(target_of_rows.weights()) {
  const bool is_wide = target.dim() == output.dim();
  if (output.dim() != 2) {
    output = output.reshape({-1, output.size(-1)});
    target = is_wide ? target.reshape({-1, target.size(-1)}) : target.reshape(-1);
    if (weights.defined())
      weights = weights.reshape(-1);
  }
  if (may_be_padded(target_of_rows)) {
    const at::Tensor absent = weights.eq(0);
    const at::Tensor wide = absent.unsqueeze(1);
    output = output.masked_fill(wide, 0);
    target = target.masked_fill(is_wide ? wide : absent, 0);
  }
}

at::Tensor weight_of_values(const TargetBatch& target, std::int64_t width) {
  if (target.weights().defined())
    return width == 1 ? target.weights().sum() : target.weights().sum().mul(width);
  const at::Tensor& values = target.values();
  const bool is_float = at::isFloatingType(values.scalar_type());
  return at::scalar_tensor(static_cast<double>(target.positions() * width),
                           values.options().dtype(is_float ? values.scalar_type() : at::kFloat));
}

}  // namespace treadle::losses
