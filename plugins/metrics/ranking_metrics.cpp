#include "ranking_metrics.h"

#include <cmath>
#include <limits>

#include <ATen/ops/cat.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/json_words.h>

#include "target_check.h"

namespace treadle::metrics {
namespace {

/// The share of each score in a cumulative sum.
at::Tensor steps_of(const at::Tensor& cumulative) {
  return cumulative.diff(1, 0, at::zeros({1}, at::kDouble));
}

/// Expects positives.
double average_precision(const Ranking& ranking) {
  if (ranking.has_nan())
    return std::numeric_limits<double>::quiet_NaN();
  const at::Tensor precision = ranking.positives.div(ranking.positives.add(ranking.negatives));
  return at::dot(steps_of(ranking.positives), precision).item<double>() / ranking.all_positives();
}

}  // namespace

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
  const at::Tensor scores = rank_scores(prediction, positions);
  seen_.add(class_names_.size() == 2 ? scores.narrow(1, 1, 1) : scores, positions.actual(),
            positions.weights());
}

void Auc::do_merge(const MetricComputer& other) {
  seen_.append(static_cast<const Auc&>(other).seen_);
}

Number Auc::area(const KeptScores::Rows& rows, std::int64_t column, std::int64_t positive) const {
  const Ranking ranking =
      ranked(rows.scores.select(1, column), is_of_class(rows.actual, positive), rows.weights);
  const double positives = ranking.all_positives();
  const double negatives = ranking.all_negatives();
  if (positives > 0 && negatives > 0) {
    if (ranking.has_nan())
      return std::numeric_limits<double>::quiet_NaN();
    // Each positive, times the negatives below it and half of those beside it.
    const at::Tensor below =
        ranking.negatives.neg().add(negatives).add(steps_of(ranking.negatives), 0.5);
    const double area = at::dot(steps_of(ranking.positives), below).item<double>();
    return area / (positives * negatives);
  }
  if (positives + negatives == 0)
    return weighted_mean(0, 0);
  const std::string name = quote_text(class_names_[static_cast<std::size_t>(positive)]);
  return Number::undefined(positives > 0 ? "all rows are of class " + name
                                         : "no row is of class " + name);
}

Number Auc::value() const {
  const KeptScores::Rows rows = seen_.rows();
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
    } else if (!last.is_undefined() || rows.actual.eq(c).any().item<bool>()) {
      last = one;  // the class of all rows says more than those that are not there
    }
  }
  return defined > 0 ? Number(sum / defined) : last;
}

MetricResult Auc::do_compute() const {
  return {{{"auc", value(), Direction::kHigherIsBetter}}, {}};
}

StateDict Auc::do_state() const {
  return seen_.state();
}

void Auc::do_load_state(const StateDict& state) {
  seen_.load_state(state);
}

AveragePrecision::AveragePrecision(const Config& config) : choice_(config) {}

void AveragePrecision::do_start(const TargetSpec& target) {
  expect_kind("average_precision", {TargetKind::kClasses, TargetKind::kLabels}, target);
  choice_.start(target);
}

void AveragePrecision::do_reset() {
  seen_.clear();
}

void AveragePrecision::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor scores = rank_scores(prediction, positions);
  seen_.add(choice_.one() ? scores.narrow(1, *choice_.one(), 1) : scores, positions.actual(),
            positions.weights());
}

void AveragePrecision::do_merge(const MetricComputer& other) {
  seen_.append(static_cast<const AveragePrecision&>(other).seen_);
}

Number AveragePrecision::micro(const KeptScores::Rows& rows) const {
  const std::int64_t classes = rows.scores.size(1);
  std::vector<at::Tensor> is_of;
  for (std::int64_t c = 0; c < classes; ++c)
    is_of.push_back(is_of_class(rows.actual, c));
  const at::Tensor weights = rows.weights.defined()
                                 ? rows.weights.unsqueeze(1).expand({-1, classes}).reshape(-1)
                                 : rows.weights;
  const Ranking ranking = ranked(rows.scores.reshape(-1), at::stack(is_of, 1).reshape(-1), weights);
  if (ranking.is_empty())
    return weighted_mean(0, 0);
  return ranking.all_positives() > 0 ? Number(average_precision(ranking))
                                     : Number::undefined("no row has a label");
}

Number AveragePrecision::value() const {
  const KeptScores::Rows rows = seen_.rows();
  if (!rows.scores.defined())
    return weighted_mean(0, 0);
  if (!choice_.one() && choice_.average() == ClassChoice::Average::kMicro)
    return micro(rows);
  const bool is_weighted = choice_.average() == ClassChoice::Average::kWeighted;
  double sum = 0;
  double weight = 0;
  bool any = false;
  for (std::int64_t column = 0; column < rows.scores.size(1); ++column) {
    const Ranking ranking =
        ranked(rows.scores.select(1, column),
               is_of_class(rows.actual, choice_.one().value_or(column)), rows.weights);
    any = any || !ranking.is_empty();
    if (ranking.all_positives() > 0) {
      const double of_one = is_weighted ? ranking.all_positives() : 1;
      sum += of_one * average_precision(ranking);
      weight += of_one;
    }
  }
  if (weight > 0)
    return sum / weight;
  if (!any)
    return weighted_mean(0, 0);
  return Number::undefined(choice_.one()
                               ? "no row is of class " + choice_.quoted_class(*choice_.one())
                               : "no row has a label");
}

MetricResult AveragePrecision::do_compute() const {
  return {{{choice_.value_name("average_precision"), value(), Direction::kHigherIsBetter}}, {}};
}

StateDict AveragePrecision::do_state() const {
  return seen_.state();
}

void AveragePrecision::do_load_state(const StateDict& state) {
  seen_.load_state(state);
}

}  // namespace treadle::metrics
