#include <treadle/core/validation/mean_of_members.h>

#include <cstddef>

#include <ATen/TensorOperators.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

at::Tensor exact(const at::Tensor& values) {
  return values.to(at::kDouble);
}

void add_to(at::Tensor& sum, const at::Tensor& part) {
  sum = sum.defined() ? sum.add_(part) : part;
}

at::Tensor square_if_defined(const at::Tensor& deviation) {
  return deviation.defined() ? exact(deviation).square() : deviation;
}

}  // namespace

at::Tensor entropy(TargetKind kind, const at::Tensor& probabilities) {
  const at::Tensor each = at::xlogy(probabilities, probabilities);  // 0 at 0
  if (kind != TargetKind::kLabels)
    return each.sum(-1).neg();
  const at::Tensor others = 1 - probabilities;
  return each.add(at::xlogy(others, others)).neg();
}

void MeanOfMembers::add(const Prediction& member, const at::Tensor& weight) {
  if (members_++ == 0) {
    first_ = member;
    extras_.resize(member.extras.size());
  }
  TREADLE_EXPECTS(
      member.values.defined() == first_.values.defined() && member.extras.size() == extras_.size(),
      "members predict the same");
  if (!member.values.defined())
    return;
  const bool are_numbers = member.kind == TargetKind::kNumbers;
  const at::Tensor w = exact(weight);
  const at::Tensor x = exact(member.values);
  weights_ = weights_.defined() ? weights_ + w : w.clone();
  if (are_numbers) {
    // D. West, "Updating mean and variance estimates: an improved method", 1979.
    const at::Tensor share = at::where(weights_ > 0, w / weights_, at::zeros_like(w));
    if (!mean_.defined()) {
      mean_ = x.clone();
      squares_ = at::zeros_like(x);
    } else {
      const at::Tensor apart = x - mean_;
      mean_ = mean_ + apart * share;
      squares_ = squares_ + w * apart * (x - mean_);
    }
  } else {
    add_to(sums_.values, x * w);
  }
  for (std::size_t i = 0; i < extras_.size(); ++i)
    add_to(extras_[i], exact(member.extras[i].values) * w);
  if (member.crossed.defined() && members_ > 1)
    first_.crossed = first_.crossed.logical_or(member.crossed);

  const Prediction::Uncertainty& own = member.uncertainty;
  const at::Tensor aleatoric = are_numbers               ? square_if_defined(own.aleatoric)
                               : own.aleatoric.defined() ? exact(own.aleatoric)
                                                         : entropy(member.kind, x);
  if (aleatoric.defined())
    add_to(sums_.aleatoric, aleatoric * w);
  if (are_numbers && own.epistemic.defined())
    add_to(sums_.epistemic, exact(own.epistemic).square() * w);
}

Prediction MeanOfMembers::mean() const {
  TREADLE_EXPECTS(members_ > 0, "a mean has members");
  Prediction mean{first_.kind, {}};
  if (!first_.values.defined())
    return mean;
  const auto like = [](const at::Tensor& values, const at::Tensor& first) {
    return values.to(first.scalar_type());
  };
  mean.values = like(mean_.defined() ? mean_ : sums_.values / weights_, first_.values);
  for (std::size_t i = 0; i < extras_.size(); ++i) {
    const Prediction::Extra& extra = first_.extras[i];
    mean.extras.push_back({extra.name, like(extras_[i] / weights_, extra.values), extra.level});
  }
  mean.crossed = first_.crossed;
  mean.uncertainty = uncertainty();
  return mean;
}

Prediction::Uncertainty MeanOfMembers::uncertainty() const {
  Prediction::Uncertainty result;
  if (!first_.values.defined())
    return result;
  const auto like_values = [&](const at::Tensor& values) {
    return values.to(first_.values.scalar_type());
  };
  if (first_.kind == TargetKind::kNumbers) {
    at::Tensor epistemic = squares_ / weights_;
    if (sums_.epistemic.defined())
      epistemic = epistemic + sums_.epistemic / weights_;
    result.epistemic = like_values(epistemic.sqrt());
    if (sums_.aleatoric.defined()) {
      const at::Tensor aleatoric = sums_.aleatoric / weights_;
      result.aleatoric = like_values(aleatoric.sqrt());
      result.total = like_values((aleatoric + epistemic).sqrt());
    }
    return result;
  }
  const at::Tensor total = entropy(first_.kind, sums_.values / weights_);
  // Jensen's inequality, but for rounding.
  const at::Tensor aleatoric = at::minimum(sums_.aleatoric / weights_, total);
  result.total = like_values(total);
  result.aleatoric = like_values(aleatoric);
  result.epistemic = like_values(total - aleatoric);
  return result;
}

}  // namespace treadle
