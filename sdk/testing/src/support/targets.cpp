#include <treadle/testing/support/targets.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace treadle::testing {

TargetSpec number_target(std::int64_t width, std::vector<std::int64_t> positions) {
  TargetSpec target = treadle::number_target("price", width);
  target.shape.insert(target.shape.begin(), positions.begin(), positions.end());
  return target;
}

TargetSpec class_target(std::int64_t count, std::vector<std::int64_t> positions) {
  TargetSpec target = treadle::class_target("species", {}, std::move(positions));
  for (std::int64_t c = 0; c < count; ++c)
    target.class_names.push_back("class-" + std::to_string(c));
  return target;
}

TargetSpec label_target(std::int64_t count, std::vector<std::int64_t> positions) {
  TargetSpec target = class_target(count, std::move(positions));
  target.name = "tags";
  target.kind = TargetKind::kLabels;
  target.shape.push_back(count);
  return target;
}

TargetSpec distribution_target(std::int64_t count, std::vector<std::int64_t> positions) {
  TargetSpec target = label_target(count, std::move(positions));
  target.name = "mixture";
  target.kind = TargetKind::kDistribution;
  return target;
}

TargetSpec other_kind_of(const TargetSpec& target) {
  return target.kind == TargetKind::kNumbers ? class_target(3) : number_target(1);
}

std::vector<std::int64_t> sizes_of(std::int64_t rows, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> sizes{rows};
  for (const std::int64_t size : shape)
    sizes.push_back(size == kVaries ? kLongest : size);
  return sizes;
}

at::Tensor random_targets(const TargetSpec& target, std::int64_t rows, at::ScalarType dtype) {
  const std::vector<std::int64_t> sizes = sizes_of(rows, target.shape);
  switch (target.kind) {
    case TargetKind::kClasses:
      return at::randint(target.class_count(), sizes, at::kLong);
    case TargetKind::kLabels:
      return at::randint(2, sizes, dtype);
    case TargetKind::kDistribution:
      return at::randn(sizes, dtype).softmax(-1);
    case TargetKind::kNumbers:
      break;
  }
  return at::randn(sizes, dtype);
}

std::int64_t length_of_row(std::int64_t row, const at::Tensor& targets) {
  return 1 + row % targets.size(1);
}

at::Tensor padding_weights(const TargetSpec& target, const at::Tensor& targets) {
  at::Tensor weights = at::ones(sizes_of(targets.size(0), target.positions()), at::kDouble);
  for (std::int64_t row = 0; row < targets.size(0); ++row) {
    if (weights.dim() == 1) {
      if (row % 4 == 3)
        weights[row] = 0;
    } else {
      weights[row].slice(0, length_of_row(row, targets)).zero_();
    }
  }
  return weights;
}

at::Tensor with_padding(const at::Tensor& values, const at::Tensor& other,
                        const at::Tensor& weights) {
  at::Tensor absent = weights.eq(0);
  while (absent.dim() < values.dim())
    absent = absent.unsqueeze(-1);
  return at::where(absent, other, values);
}

at::Tensor row_alone(const at::Tensor& values, const at::Tensor& weights, const at::Tensor& targets,
                     std::int64_t row) {
  if (weights.dim() == 1)
    return values.slice(0, row, row + (weights[row].item<double>() > 0 ? 1 : 0));
  return values.slice(0, row, row + 1).slice(1, 0, length_of_row(row, targets));
}

}  // namespace treadle::testing
