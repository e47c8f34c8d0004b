#include "class_metrics.h"

#include <string>

#include <ATen/ops/dot.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {
namespace {

double ratio_or_zero(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

double precision(const Counts& counts) {
  return ratio_or_zero(counts.hits, counts.predicted);
}
double recall(const Counts& counts) {
  return ratio_or_zero(counts.hits, counts.actual);
}
double f1(const Counts& counts) {
  return ratio_or_zero(2 * counts.hits, counts.predicted + counts.actual);
}

double iou(const Counts& counts) {
  return ratio_or_zero(counts.hits, counts.predicted + counts.actual - counts.hits);
}

CountMetric::CountMetric(const CountScore& score, const Config& config)
    : score_(score), per_class_(config.get_or<bool>("per_class", false)) {}

void CountMetric::do_start(const TargetSpec& target) {
  if (score_.takes_labels)
    expect_kind(score_.name, {TargetKind::kClasses, TargetKind::kLabels}, target);
  else
    expect_classes(score_.name, target);
  is_labels_ = target.kind == TargetKind::kLabels;
  class_names_ = target.class_names;
  const bool macro = score_.average == CountScore::Average::kMacro;
  counts_ = at::zeros({4, macro ? target.class_count() : 1}, at::kDouble);
}

void CountMetric::do_reset() {
  counts_.zero_();
}

void CountMetric::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  if (score_.average == CountScore::Average::kMacro)
    return add_class_counts(counts_, positions);
  const at::Tensor& weights = positions.weights();
  const at::Tensor& actual = positions.actual();
  const at::Tensor predicted = positions.decided();
  const at::Tensor hits =
      is_labels_ ? at::eq(predicted, actual.gt(0.5)).all(1) : at::eq(predicted, actual);
  // Each position is one prediction and one target, so all totals are the same.
  counts_[3].add_(positions.total_weight());
  counts_[0].add_(weights.defined() ? at::dot(hits.to(at::kDouble), weights) : hits.sum());
  counts_[1].copy_(counts_[3]);
  counts_[2].copy_(counts_[3]);
}

void CountMetric::do_merge(const MetricComputer& other) {
  counts_.add_(static_cast<const CountMetric&>(other).counts_);
}

MetricResult CountMetric::do_compute() const {
  const auto counts = counts_.accessor<double, 2>();
  MetricResult result;
  double sum = 0;
  std::int64_t occurring = 0;
  for (std::int64_t c = 0; c < counts.size(1); ++c) {
    const Counts of_class{counts[0][c], counts[1][c], counts[2][c], counts[3][c]};
    const bool occurs = (is_labels_ ? of_class.all : of_class.predicted + of_class.actual) > 0;
    const Number score = occurs ? Number(score_.score(of_class))
                         : counts_[3].gt(0).any().item<bool>()
                             ? Number::undefined("no row is of this class or predicted to be")
                             : weighted_mean(0, 0);
    if (occurs) {
      sum += score;
      ++occurring;
    }
    if (per_class_) {
      result.values.push_back(
          {std::string(score_.class_name) + "." + class_names_[static_cast<std::size_t>(c)], score,
           Direction::kHigherIsBetter});
    }
  }
  const Number mean = weighted_mean(sum, static_cast<double>(occurring));
  result.values.insert(result.values.begin(),
                       {std::string(score_.name), mean, Direction::kHigherIsBetter});
  return result;
}

StateDict CountMetric::do_state() const {
  StateDict state;
  state.put("counts", counts_);
  return state;
}

void CountMetric::do_load_state(const StateDict& state) {
  load_counts(counts_, state);
}

ConfusionMatrix::ConfusionMatrix(const Config&) {}

void ConfusionMatrix::do_start(const TargetSpec& target) {
  expect_classes("confusion_matrix", target);
  if (target.class_count() > kMaxClasses) {
    throw DataError("metric \"confusion_matrix\" takes at most " + std::to_string(kMaxClasses) +
                    " classes, but the target \"" + target.name + "\" has " +
                    std::to_string(target.class_count()));
  }
  class_names_ = target.class_names;
  cells_ = at::zeros({target.class_count() * target.class_count()}, at::kDouble);
}

void ConfusionMatrix::do_reset() {
  cells_.zero_();
}

void ConfusionMatrix::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const auto classes = static_cast<std::int64_t>(class_names_.size());
  const at::Tensor cell = positions.actual().mul(classes).add_(positions.decided());
  add_counts(cells_, cell, positions.weights());
}

void ConfusionMatrix::do_merge(const MetricComputer& other) {
  cells_.add_(static_cast<const ConfusionMatrix&>(other).cells_);
}

MetricResult ConfusionMatrix::do_compute() const {
  const auto classes = static_cast<std::int64_t>(class_names_.size());
  MetricResult result;
  result.tables.push_back(
      {"confusion_matrix", class_names_, class_names_, cells_.view({classes, classes}).clone()});
  return result;
}

StateDict ConfusionMatrix::do_state() const {
  StateDict state;
  state.put("counts", cells_);
  return state;
}

void ConfusionMatrix::do_load_state(const StateDict& state) {
  load_counts(cells_, state);
}

}  // namespace treadle::metrics
