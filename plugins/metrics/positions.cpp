#include "positions.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/mv.h>

namespace treadle::metrics {
namespace {

// Row weights alone are no padding.
bool may_be_padded(const TargetBatch& target) {
  return target.weights().defined() && !target.weights().is_same(target.batch().weights);
}

}  // namespace

Positions::Positions(const Prediction& prediction, const TargetBatch& target)
    : prediction_(prediction),
      target_(target),
      sizes_(prediction.values.sizes().slice(0, prediction.values.dim() - 1)) {
  if (may_be_padded(target))
    counted_ = target.weights().reshape(-1).nonzero().squeeze(1);
  predicted_ = flat(prediction.values);
  const at::Tensor& values = target.values();
  const bool is_wide = values.dim() == prediction.values.dim();
  actual_ = is_wide ? flat(values) : counted(sizes_.size() == 1 ? values : values.reshape(-1));
  if (target.weights().defined())
    weights_ = counted(target.weights().reshape(-1)).to(at::kDouble);
}

at::Tensor Positions::decided() const {
  const at::Tensor all = treadle::decided(prediction_);
  if (all.dim() == prediction_.values.dim())
    return flat(all);
  return counted(sizes_.size() == 1 ? all : all.reshape(-1));
}

at::Tensor Positions::counted(const at::Tensor& flat) const {
  return counted_.defined() ? flat.index_select(0, counted_) : flat;
}

at::Tensor Positions::flat(const at::Tensor& wide) const {
  return counted(sizes_.size() == 1 ? wide : wide.reshape({-1, wide.size(-1)}));
}

double Positions::total_weight() const {
  return weights_.defined() ? weights_.sum().item<double>() : static_cast<double>(count());
}

at::Tensor Positions::rows() const {
  at::Tensor rows = target_.batch().rows;
  for (std::size_t i = 1; i < sizes_.size(); ++i)
    rows = rows.unsqueeze(-1);
  return counted(rows.expand(sizes_).reshape(-1).to(predicted_.device())).cpu();
}

at::Tensor Positions::numbers() const {
  // More than the longest row: then no two positions share a number, and they stay in order.
  constexpr std::int64_t kStride = 1'000'003;
  at::Tensor numbers = target_.batch().rows;
  for (std::size_t i = 1; i < sizes_.size(); ++i)
    numbers = numbers.unsqueeze(-1).mul(kStride).add(at::arange(sizes_[i]));
  return counted(numbers.reshape(-1).to(predicted_.device())).cpu().contiguous();
}

at::Tensor weighted_sum(const at::Tensor& values, const at::Tensor& weights) {
  if (!weights.defined())
    return values.sum(0);
  return values.dim() == 1 ? at::dot(values, weights) : at::mv(values.t(), weights);
}

}  // namespace treadle::metrics
