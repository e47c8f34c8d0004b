#include "held_out_rows.h"

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/logit.h>
#include <ATen/ops/ones.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::outputs {
namespace {

bool is_one_for_two(const Prediction& prediction) {
  return prediction.kind != TargetKind::kLabels && prediction.values.size(-1) == 2;
}

/// Of probabilities in float32 nothing is closer to 0 or 1 than this.
double smallest_in(const at::Tensor& values) {
  return values.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                             : std::numeric_limits<float>::epsilon();
}

}  // namespace

at::Tensor flat(const at::Tensor& wide) {
  return wide.reshape({-1, wide.size(-1)}).to(at::kDouble);
}

at::Tensor logits_of(const Prediction& prediction) {
  if (prediction.logits.defined()) {
    const at::Tensor logits = flat(prediction.logits);
    const bool is_pair = is_one_for_two(prediction) && logits.size(1) == 2;
    return is_pair ? logits.narrow(1, 1, 1) - logits.narrow(1, 0, 1) : logits;
  }
  const double smallest = smallest_in(prediction.values);
  const at::Tensor values = flat(prediction.values).clamp(smallest, 1 - smallest);
  if (is_one_for_two(prediction))
    return values.narrow(1, 1, 1).logit();
  return prediction.kind == TargetKind::kLabels ? values.logit() : values.log();
}

at::Tensor log_odds_of(const Prediction& prediction) {
  const at::Tensor logits = logits_of(prediction);
  if (prediction.kind == TargetKind::kLabels || logits.size(1) == 1)
    return logits;
  // log p - log(1 - p), of the others' log-sum-exp: exact where p is 1 in float64.
  const at::Tensor all = logits.log_softmax(1);
  const at::Tensor rest = all.exp().neg().log1p();
  return all - rest.clamp_min(std::log(std::numeric_limits<double>::min()));
}

at::Tensor as_values(const at::Tensor& probabilities, const Prediction& like) {
  const at::Tensor all = probabilities.size(1) == like.values.size(-1)
                             ? probabilities
                             : at::cat({1 - probabilities, probabilities}, 1);
  return all.view(like.values.sizes()).to(like.values.scalar_type());
}

HeldOutTargets::HeldOutTargets(TargetKind kind, const TargetBatch& target) {
  actual = kind == TargetKind::kLabels ? flat(target.values()) : target.values().reshape(-1);
  weights = target.weights().defined() ? target.weights().reshape(-1).to(at::kDouble)
                                       : at::ones({actual.size(0)}, at::kDouble);
  const at::Tensor counts = weights.gt(0);
  if (counts.all().item<bool>())
    return;
  counted = counts;
  actual = actual.index({counted});
  weights = weights.index({counted});
}

HeldOutRows::HeldOutRows(const Prediction& prediction, const TargetBatch& target)
    : HeldOutTargets(prediction.kind, target),
      log_odds(log_odds_of(prediction)),
      values(flat(prediction.values)) {
  if (!counted.defined())
    return;
  log_odds = log_odds.index({counted});
  values = values.index({counted});
}

at::Tensor HeldOutTargets::is_class(std::int64_t index) const {
  return actual.dim() == 2 ? actual.select(1, index) : actual.eq(index).to(at::kDouble);
}

void expect_kind(std::string_view stage, std::initializer_list<TargetKind> kinds,
                 const TargetSpec& target) {
  treadle::expect_kind(
      "output " + quote_text(std::string(stage)), kinds, target,
      target.kind == TargetKind::kNumbers ? "conformal" : "none; leave it out of \"outputs\"");
}

void expect_each_class(std::string_view stage, const HeldOutTargets& rows,
                       const TargetSpec& target) {
  for (std::int64_t c = 0; c < target.class_count(); ++c) {
    const at::Tensor is = rows.is_class(c);
    const bool is_there = rows.count() > 0 && is.gt(0.5).any().item<bool>();
    const bool is_absent = rows.count() > 0 && is.lt(0.5).any().item<bool>();
    if (is_there && is_absent)
      continue;
    throw DataError("output " + quote_text(std::string(stage)) + ": of the " +
                    std::to_string(rows.count()) + " held-out rows " +
                    (is_there ? "every one" : "none") + " is " +
                    quote_text(target.class_names[static_cast<std::size_t>(c)]) +
                    "; set more rows aside (outputs.fraction), or leave the stage out");
  }
}

}  // namespace treadle::outputs
