#include "score_histogram.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {

void ScoreHistogram::do_start(const TargetSpec& target) {
  expect_two_classes("score_histogram", target);
  class_names_ = target.class_names;
}

void ScoreHistogram::do_reset() {
  weights_ = at::zeros({2, kBins}, at::kDouble);
}

void ScoreHistogram::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor scores = positions.predicted().select(1, 1).to(at::kDouble).contiguous();
  // i / kBins belongs to the bin that it begins.
  const at::Tensor edges = at::arange(1, kBins, at::kDouble).mul(1.0 / kBins);
  const at::Tensor bin = at::bucketize(scores, edges, /*out_int32=*/false, /*right=*/true);
  const at::Tensor cell = positions.actual().mul(kBins).add_(bin);
  const at::Tensor weights =
      positions.weights().defined() ? positions.weights() : at::ones({cell.size(0)}, at::kDouble);
  weights_.add_(at::bincount(cell, weights, 2 * kBins).view({2, kBins}));
}

void ScoreHistogram::do_merge(const MetricComputer& other) {
  weights_.add_(static_cast<const ScoreHistogram&>(other).weights_);
}

MetricResult ScoreHistogram::do_compute() const {
  const at::Tensor edges = at::arange(0, kBins + 1, at::kDouble).div(static_cast<double>(kBins));
  MetricResult result;
  result.tables.push_back(
      {"score_histogram",
       {},
       {"from", "to", class_names_[0], class_names_[1]},
       at::stack({edges.slice(0, 0, kBins), edges.slice(0, 1), weights_[0], weights_[1]}, 1)});
  return result;
}

StateDict ScoreHistogram::do_state() const {
  StateDict state;
  state.put("weights", weights_);
  return state;
}

void ScoreHistogram::do_load_state(const StateDict& state) {
  weights_ = state.tensor("weights").clone();
}

}  // namespace treadle::metrics
