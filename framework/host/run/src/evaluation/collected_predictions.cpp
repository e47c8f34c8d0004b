#include "evaluation/collected_predictions.h"

#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>

#include <treadle/base/error.h>
#include <treadle/core/data/port_spec.h>

namespace treadle::internal {
namespace {

void append(std::vector<at::Tensor>& parts, const std::vector<at::Tensor>& others) {
  parts.insert(parts.end(), others.begin(), others.end());
}

}  // namespace

CollectedPredictions::~CollectedPredictions() = default;

void CollectedPredictions::do_start(const TargetSpec& target) {
  for (const std::int64_t size : target.shape) {
    if (size == kVaries)
      throw DataError("predictions of a target of varying length cannot be averaged row by row");
  }
}

void CollectedPredictions::do_reset() {
  rows_.clear();
  values_.clear();
  targets_.clear();
  weights_.clear();
}

void CollectedPredictions::do_update(const Prediction& prediction, const TargetBatch& target) {
  // Copies: the memory of a batch is used again for the next one.
  rows_.push_back(target.batch().rows.clone());
  values_.push_back(prediction.values.clone());
  targets_.push_back(target.values().clone());
  if (target.weights().defined())
    weights_.push_back(target.weights().clone());
}

void CollectedPredictions::do_merge(const MetricComputer& other) {
  const auto& more = dynamic_cast<const CollectedPredictions&>(other);
  append(rows_, more.rows_);
  append(values_, more.values_);
  append(targets_, more.targets_);
  append(weights_, more.weights_);
}

CollectedPredictions::Rows CollectedPredictions::collected() const {
  TREADLE_EXPECTS(!rows_.empty(), "predictions have been collected");
  const at::Tensor rows = at::cat(rows_);
  const at::Tensor order = at::argsort(rows, /*stable=*/true);
  const auto ordered = [&](const std::vector<at::Tensor>& parts) {
    return at::index_select(at::cat(parts), 0, order);
  };
  return {at::index_select(rows, 0, order), ordered(values_), ordered(targets_),
          weights_.empty() ? at::Tensor() : ordered(weights_)};
}

StateDict CollectedPredictions::do_state() const {
  StateDict state;
  if (rows_.empty())
    return state;
  state.put("rows", at::cat(rows_));
  state.put("values", at::cat(values_));
  state.put("targets", at::cat(targets_));
  if (!weights_.empty())
    state.put("weights", at::cat(weights_));
  return state;
}

void CollectedPredictions::do_load_state(const StateDict& state) {
  do_reset();
  if (!state.has_tensor("rows"))
    return;
  rows_ = {state.tensor("rows")};
  values_ = {state.tensor("values")};
  targets_ = {state.tensor("targets")};
  if (state.has_tensor("weights"))
    weights_ = {state.tensor("weights")};
  const std::int64_t count = rows_[0].numel();
  const bool fits = rows_[0].dim() == 1 && rows_[0].scalar_type() == at::kLong &&
                    values_[0].dim() >= 1 && values_[0].size(0) == count &&
                    targets_[0].dim() >= 1 && targets_[0].size(0) == count &&
                    (weights_.empty() || (weights_[0].dim() >= 1 && weights_[0].size(0) == count));
  if (!fits)
    throw StorageError("saved predictions are not one for each row");
}

}  // namespace treadle::internal
