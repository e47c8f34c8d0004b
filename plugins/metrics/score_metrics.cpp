#include "score_metrics.h"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include <ATen/ops/cat.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/xlogy.h>

#include <treadle/base/json_words.h>

#include "target_check.h"

namespace treadle::metrics {
namespace {

at::Tensor logs_of(const at::Tensor& probabilities) {
  const double eps = probabilities.scalar_type() == at::kDouble
                         ? std::numeric_limits<double>::epsilon()
                         : std::numeric_limits<float>::epsilon();
  return probabilities.to(at::kDouble).clamp(eps, 1 - eps).log();
}

at::Tensor divergence(const Positions& positions) {
  const at::Tensor actual = positions.actual().to(at::kDouble);
  return at::xlogy(actual, actual).sub(logs_of(positions.predicted()).mul(actual)).sum(1);
}

at::Tensor share_of_wrong_labels(const Positions& positions) {
  return at::ne(positions.decided(), positions.actual().gt(0.5)).to(at::kDouble).mean(1);
}

double exponential(double mean) {
  return std::exp(mean);
}

/// What ranks positions [N, C] for each class: its log-odds, float64, of logits [N, C] or, for two
/// classes, [N, 1]. Probabilities of float32 are 1 above 17, and rank all those alike.
at::Tensor log_odds(const at::Tensor& logits) {
  const at::Tensor exact = logits.to(at::kDouble);
  if (exact.size(1) == 1)
    return at::cat({exact.neg(), exact}, 1);
  if (exact.size(1) == 2) {
    const at::Tensor second = exact.select(1, 1).sub(exact.select(1, 0));
    return at::stack({second.neg(), second}, 1);
  }
  const at::Tensor logs = at::log_softmax(exact, 1);
  const at::Tensor first = exact.argmax(1, /*keepdim=*/true);
  // ln p - ln(1 - p). Only the likeliest class may have a p above 1/2, whose 1 - p is the sum of
  // the others.
  at::Tensor odds = logs.sub(at::log1p(logs.exp().clamp_max(0.5).neg()));
  const at::Tensor others =
      exact.scatter(1, first, -std::numeric_limits<double>::infinity()).logsumexp(1, true);
  return odds.scatter_(1, first, exact.gather(1, first).sub(others));
}

}  // namespace

at::Tensor minus_log_likelihood(const Positions& positions) {
  const at::Tensor& actual = positions.actual();
  if (actual.dim() == 1)
    return logs_of(positions.predicted().gather(1, actual.unsqueeze(1)).squeeze(1)).neg();
  return logs_of(positions.predicted()).mul(actual.to(at::kDouble)).sum(1).neg();
}

const PositionScore kLogLoss{
    "log_loss", {TargetKind::kClasses, TargetKind::kDistribution}, &minus_log_likelihood};
const PositionScore kPerplexity{
    "perplexity", {TargetKind::kClasses}, &minus_log_likelihood, &exponential};
const PositionScore kKlDiv{"kl_div", {TargetKind::kDistribution}, &divergence};
const PositionScore kHammingLoss{"hamming_loss", {TargetKind::kLabels}, &share_of_wrong_labels};

Auc::Auc(const Config&) {}

void Auc::do_start(const TargetSpec& target) {
  expect_classes("auc", target);
  class_names_ = target.class_names;
}

void Auc::do_reset() {
  seen_.clear();
}

void Auc::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor values = prediction.logits.defined()
                                ? log_odds(positions.flat(prediction.logits))
                                : positions.predicted();
  const at::Tensor scores = class_names_.size() == 2 ? values.narrow(1, 1, 1) : values;
  const at::Tensor& weights = positions.weights();
  // Copies: the caller fills the same tensors again.
  seen_.push_back({scores.clone(at::MemoryFormat::Contiguous), positions.actual().clone(),
                   weights.defined() ? weights.clone() : at::Tensor()});
}

void Auc::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const Auc&>(other).seen_;
  seen_.insert(seen_.end(), theirs.begin(), theirs.end());
}

Auc::Rows Auc::all_rows() const {
  std::vector<at::Tensor> scores;
  std::vector<at::Tensor> classes;
  std::vector<at::Tensor> weights;
  bool weighted = false;
  for (const Rows& rows : seen_) {
    scores.push_back(rows.scores);
    classes.push_back(rows.classes);
    weighted = weighted || rows.weights.defined();
  }
  if (scores.empty())
    return {};
  if (weighted) {
    for (const Rows& rows : seen_)
      weights.push_back(rows.weights.defined() ? rows.weights
                                               : at::ones({rows.classes.size(0)}, at::kDouble));
  }
  return {at::cat(scores), at::cat(classes), weighted ? at::cat(weights) : at::Tensor()};
}

Number Auc::area(const Rows& rows, std::int64_t column, std::int64_t positive) const {
  const auto [sorted, order] = at::sort(rows.scores.select(1, column).to(at::kDouble));
  const double* const score = sorted.data_ptr<double>();
  const std::int64_t* const row = order.data_ptr<std::int64_t>();
  const std::int64_t* const classes = rows.classes.data_ptr<std::int64_t>();
  const double* const weights = rows.weights.defined() ? rows.weights.data_ptr<double>() : nullptr;
  const std::int64_t count = sorted.size(0);

  // From the lowest score up, a group of equal scores at a time.
  double area = 0;
  double positives = 0;
  double negatives = 0;
  for (std::int64_t i = 0; i < count;) {
    const double here = score[i];
    double group_positives = 0;
    double group_negatives = 0;
    for (; i < count && score[i] == here; ++i) {
      const double weight = weights != nullptr ? weights[row[i]] : 1;
      (classes[row[i]] == positive ? group_positives : group_negatives) += weight;
    }
    area += group_positives * (negatives + 0.5 * group_negatives);
    positives += group_positives;
    negatives += group_negatives;
  }
  if (positives > 0 && negatives > 0)
    return area / (positives * negatives);
  if (positives + negatives == 0)
    return weighted_mean(0, 0);
  const std::string name = quote_text(class_names_[static_cast<std::size_t>(positive)]);
  return Number::undefined(positives > 0 ? "all rows are of class " + name
                                         : "no row is of class " + name);
}

Number Auc::value() const {
  const Rows rows = all_rows();
  if (!rows.scores.defined())
    return weighted_mean(0, 0);
  if (class_names_.size() == 2)
    return area(rows, 0, 1);
  Number last;
  double sum = 0;
  double defined = 0;
  for (std::int64_t c = 0; c < static_cast<std::int64_t>(class_names_.size()); ++c) {
    const Number one = area(rows, c, c);
    if (!one.is_undefined()) {
      sum += one;
      ++defined;
    } else if (!last.is_undefined() || rows.classes.eq(c).any().item<bool>()) {
      last = one;  // the class of all rows says more than those that are not there
    }
  }
  return defined > 0 ? Number(sum / defined) : last;
}

MetricResult Auc::do_compute() const {
  return {{{"auc", value(), Direction::kHigherIsBetter}}, {}};
}

StateDict Auc::do_state() const {
  StateDict state;
  const Rows rows = all_rows();
  if (!rows.scores.defined())
    return state;
  state.put("scores", rows.scores);
  state.put("classes", rows.classes);
  if (rows.weights.defined())
    state.put("weights", rows.weights);
  return state;
}

void Auc::do_load_state(const StateDict& state) {
  seen_.clear();
  if (state.has_tensor("scores")) {
    seen_.push_back({state.tensor("scores"), state.tensor("classes"),
                     state.has_tensor("weights") ? state.tensor("weights") : at::Tensor()});
  }
}

void PositionMetric::do_start(const TargetSpec& target) {
  expect_kind(score_.name, score_.kinds, target);
}

void PositionMetric::do_reset() {
  sum_ = 0;
  weight_ = 0;
}

void PositionMetric::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  sum_ += weighted_sum(score_.each(positions), positions.weights()).item<double>();
  weight_ += positions.total_weight();
}

void PositionMetric::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const PositionMetric&>(other);
  sum_ += theirs.sum_;
  weight_ += theirs.weight_;
}

MetricResult PositionMetric::do_compute() const {
  Number mean = weighted_mean(sum_, weight_);
  if (score_.of_mean != nullptr && !mean.is_undefined())
    mean = score_.of_mean(mean);
  return {{{std::string(score_.name), mean, Direction::kLowerIsBetter}}, {}};
}

StateDict PositionMetric::do_state() const {
  StateDict state;
  state.put_number("sum", sum_);
  state.put_number("weight", weight_);
  return state;
}

void PositionMetric::do_load_state(const StateDict& state) {
  sum_ = state.number("sum");
  weight_ = state.number("weight");
}

}  // namespace treadle::metrics
