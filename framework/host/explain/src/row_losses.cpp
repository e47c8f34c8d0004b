#include <treadle/host/explain/row_losses.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/base/error.h>

namespace treadle::explain {
namespace {

constexpr double kLeastProbability = 1e-15;

at::Tensor log_of(const at::Tensor& probabilities) {
  return probabilities.clamp(kLeastProbability, 1 - kLeastProbability).log();
}

/// Of each position: [B, positions].
at::Tensor position_losses(const at::Tensor& predicted, const at::Tensor& actual, TargetKind kind) {
  const std::int64_t rows = predicted.size(0);
  if (kind == TargetKind::kClasses) {
    const at::Tensor classes = actual.to(at::kLong).reshape({rows, -1, 1}).clamp_min(0);
    const at::Tensor values = predicted.reshape({rows, -1, predicted.size(-1)});
    return -log_of(values.gather(2, classes)).squeeze(2);
  }
  const at::Tensor target = actual.to(at::kDouble).reshape({rows, -1, predicted.size(-1)});
  const at::Tensor values = predicted.reshape(target.sizes());
  if (kind == TargetKind::kNumbers)
    return (values - target).square().mean(2);
  if (kind == TargetKind::kDistribution)
    return -(target * log_of(values)).sum(2);
  return -(target * log_of(values) + (1 - target) * log_of(1 - values)).mean(2);
}

bool is_one_class(const TargetSpec& spec) {
  return spec.kind == TargetKind::kClasses && spec.position_dimensions() == 0;
}

}  // namespace

std::string_view loss_name(const TargetSpec& target) {
  return target.kind == TargetKind::kNumbers ? "squared_error" : "log_loss";
}

at::Tensor row_losses(const Prediction& prediction, const Batch& rows, std::size_t target,
                      const TargetSpec& spec) {
  const TargetBatch actual = TargetBatch::original(rows, target, spec);
  const at::Tensor losses =
      position_losses(prediction.values.to(at::kDouble), actual.values(), spec.kind);
  const at::Tensor given = actual.weights();
  const at::Tensor weights =
      given.defined() ? given.to(at::kDouble).reshape({losses.size(0), -1}).expand_as(losses)
                      : at::ones_like(losses);
  const at::Tensor counted = at::where(weights.gt(0), losses * weights, at::zeros_like(losses));
  return counted.sum(1) / weights.sum(1);  // 0 / 0 is NaN
}

at::Tensor largest(const at::Tensor& values, std::int64_t count) {
  const at::Tensor keys = at::where(at::isnan(values), at::full_like(values, -INFINITY), values);
  const at::Tensor order = std::get<1>(keys.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  const std::int64_t known = at::isnan(values).logical_not().sum().item<std::int64_t>();
  return order.narrow(0, 0, std::min(count, known));
}

at::Tensor wrong_confidence(const Prediction& prediction, const at::Tensor& actual,
                            const TargetSpec& spec) {
  if (!is_one_class(spec))
    return {};
  const at::Tensor predicted = decided(prediction);
  const at::Tensor confidence =
      prediction.values.to(at::kDouble).gather(1, predicted.unsqueeze(1)).squeeze(1);
  return at::where(predicted.ne(actual.to(at::kLong)), confidence,
                   at::full_like(confidence, std::nan("")));
}

at::Tensor doubts(const Prediction& prediction, const TargetSpec& spec) {
  if (is_one_class(spec)) {
    const at::Tensor two = std::get<0>(prediction.values.to(at::kDouble).topk(2, 1));
    return 1 - (two.select(1, 0) - two.select(1, 1));
  }
  if (spec.kind != TargetKind::kNumbers || spec.position_dimensions() > 0 || spec.width() != 1)
    return {};
  const Prediction::Extra* lowest = nullptr;
  const Prediction::Extra* highest = nullptr;
  for (const Prediction::Extra& extra : prediction.extras) {
    if (std::isnan(extra.level))
      continue;
    lowest = lowest == nullptr || extra.level < lowest->level ? &extra : lowest;
    highest = highest == nullptr || extra.level > highest->level ? &extra : highest;
  }
  if (lowest == highest)
    return {};
  return (highest->values - lowest->values).to(at::kDouble).reshape({-1});
}

std::vector<LossBucket> loss_buckets(const at::Tensor& losses) {
  static constexpr std::array<double, 7> kQuantiles{0, 0.5, 0.75, 0.9, 0.95, 0.99, 1};
  const at::Tensor known = at::isnan(losses).logical_not().nonzero().squeeze(1);
  std::vector<LossBucket> buckets;
  if (known.size(0) == 0)
    return buckets;
  const at::Tensor sorted = std::get<0>(losses.index_select(0, known).sort());
  const auto at_quantile = [&](double quantile) {
    const auto last = static_cast<double>(sorted.size(0) - 1);
    return sorted[static_cast<std::int64_t>(std::floor(quantile * last))].item<double>();
  };
  for (std::size_t i = 0; i + 1 < kQuantiles.size(); ++i) {
    LossBucket bucket{at_quantile(kQuantiles[i]), at_quantile(kQuantiles[i + 1]), {}};
    const bool is_last = i + 2 == kQuantiles.size();
    const at::Tensor is_below = is_last ? losses.le(bucket.to) : losses.lt(bucket.to);
    const at::Tensor inside = losses.ge(bucket.from).logical_and(is_below).nonzero().squeeze(1);
    const at::Tensor flat = inside.contiguous();
    bucket.places.assign(flat.data_ptr<std::int64_t>(),
                         flat.data_ptr<std::int64_t>() + flat.numel());
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

}  // namespace treadle::explain
