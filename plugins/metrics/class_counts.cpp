#include "class_counts.h"

#include <ATen/ops/bincount.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "target_check.h"

namespace treadle::metrics {

void add_counts(at::Tensor counts, const at::Tensor& classes, const at::Tensor& weights) {
  counts.add_(weights.defined() ? at::bincount(classes, weights, counts.size(0))
                                : at::bincount(classes, {}, counts.size(0)));
}

void add_class_counts(at::Tensor& counts, const Positions& positions) {
  const at::Tensor& weights = positions.weights();
  counts[3].add_(positions.total_weight());
  if (positions.actual().dim() > 1) {
    const at::Tensor predicted = positions.decided().to(at::kDouble);
    const at::Tensor actual = positions.actual().to(at::kDouble);
    counts[0].add_(weighted_sum(predicted.mul(actual), weights));
    counts[1].add_(weighted_sum(predicted, weights));
    counts[2].add_(weighted_sum(actual, weights));
    return;
  }
  const at::Tensor& actual = positions.actual();
  const at::Tensor predicted = positions.decided();
  const at::Tensor hits = at::eq(predicted, actual).to(at::kDouble);
  add_counts(counts[0], actual, weights.defined() ? hits.mul(weights) : hits);
  add_counts(counts[1], predicted, weights);
  add_counts(counts[2], actual, weights);
}

void load_counts(at::Tensor& counts, const StateDict& state) {
  const at::Tensor& stored = state.tensor("counts");
  if (stored.sizes() != counts.sizes())
    throw StorageError("the saved metric belongs to data with another number of classes");
  counts.copy_(stored);
}

void ClassCountsMetric::do_start(const TargetSpec& target) {
  if (takes_labels_)
    expect_kind(name_, {TargetKind::kClasses, TargetKind::kLabels}, target);
  else
    expect_classes(name_, target);
  is_of_labels_ = target.kind == TargetKind::kLabels;
  class_names_ = target.class_names;
  counts_ = at::zeros({4, target.class_count()}, at::kDouble);
}

void ClassCountsMetric::do_reset() {
  counts_.zero_();
}

void ClassCountsMetric::do_update(const Prediction& prediction, const TargetBatch& target) {
  add_class_counts(counts_, Positions(prediction, target));
}

void ClassCountsMetric::do_merge(const MetricComputer& other) {
  counts_.add_(static_cast<const ClassCountsMetric&>(other).counts_);
}

StateDict ClassCountsMetric::do_state() const {
  StateDict state;
  state.put("counts", counts_);
  return state;
}

void ClassCountsMetric::do_load_state(const StateDict& state) {
  load_counts(counts_, state);
}

std::vector<Counts> ClassCountsMetric::counts() const {
  const auto cells = counts_.accessor<double, 2>();
  std::vector<Counts> all;
  for (std::int64_t c = 0; c < cells.size(1); ++c)
    all.push_back({cells[0][c], cells[1][c], cells[2][c], cells[3][c]});
  return all;
}

std::string ClassCountsMetric::quoted_class(std::size_t index) const {
  return quote_text(class_names_[index]);
}

}  // namespace treadle::metrics
