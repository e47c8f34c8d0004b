#include <treadle/core/batch.h>

#include <c10/util/accumulate.h>

#include <treadle/base/error.h>
#include <treadle/core/data_spec.h>

namespace treadle {
namespace {

/// [B] as [B, 1, ...], to multiply with weights of positions.
at::Tensor beside(const at::Tensor& rows, std::int64_t dimensions) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dimensions), 1);
  sizes[0] = rows.size(0);
  return rows.view(sizes);
}

}  // namespace

Batch Batch::slice(std::int64_t begin, std::int64_t count) const {
  const auto cut = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
  };
  const auto cut_each = [&](const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> parts;
    parts.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors)
      parts.push_back(cut(tensor));
    return parts;
  };
  Batch part;
  part.inputs = cut_each(inputs);
  part.targets = cut_each(targets);
  part.original_targets.reserve(original_targets.size());
  for (std::size_t i = 0; i < original_targets.size(); ++i) {
    part.original_targets.push_back(
        original_targets[i].is_same(targets[i]) ? part.targets[i] : cut(original_targets[i]));
  }
  part.position_weights = cut_each(position_weights);
  part.weights = cut(weights);
  part.rows = cut(rows);
  return part;
}

TargetBatch TargetBatch::transformed(const Batch& batch, std::size_t target,
                                     const TargetSpec& spec) {
  TREADLE_EXPECTS(target < batch.targets.size(), "the batch has no such target");
  return {batch, target, batch.targets[target], spec};
}

TargetBatch TargetBatch::original(const Batch& batch, std::size_t target, const TargetSpec& spec) {
  TREADLE_EXPECTS(target < batch.original_targets.size(), "the batch has no such target");
  return {batch, target, batch.original_targets[target], spec};
}

TargetBatch::TargetBatch(const Batch& batch, std::size_t target, const at::Tensor& values,
                         const TargetSpec& spec)
    : batch_(batch), values_(values) {
  const auto dimensions = static_cast<std::int64_t>(spec.position_dimensions()) + 1;
  TREADLE_EXPECTS(values.dim() >= dimensions, "a target has fewer dimensions than its spec");
  const at::IntArrayRef sizes = values.sizes().slice(0, static_cast<std::size_t>(dimensions));
  positions_ = c10::multiply_integers(sizes);
  const at::Tensor& rows = batch.weights;
  if (target < batch.position_weights.size() && batch.position_weights[target].defined()) {
    const at::Tensor& positions = batch.position_weights[target];
    weights_ = rows.defined() ? positions.mul(beside(rows, dimensions)) : positions;
  } else if (rows.defined()) {
    weights_ = dimensions == 1 ? rows : beside(rows, dimensions).expand(sizes);
  }
}

}  // namespace treadle
