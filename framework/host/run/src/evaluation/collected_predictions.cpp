#include "evaluation/collected_predictions.h"

#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>

#include <treadle/base/error.h>
#include <treadle/core/data/port_spec.h>
#include <treadle/core/validation/prediction_state.h>

namespace treadle::internal {
namespace {

template <typename Part>
void append_all(std::vector<Part>& parts, const std::vector<Part>& others) {
  parts.insert(parts.end(), others.begin(), others.end());
}

/// All in one: adding one after the other would copy the first ones again and again.
Prediction joined(const std::vector<Prediction>& parts) {
  std::vector<std::vector<at::Tensor>> tensors;
  for (const Prediction& part : parts) {
    std::size_t place = 0;
    for_each_tensor(part, [&](const at::Tensor& tensor, std::int64_t /*rows*/) {
      if (tensors.size() <= place)
        tensors.emplace_back();
      tensors[place++].push_back(tensor);
    });
  }
  Prediction all = parts.front();
  auto next = tensors.begin();
  for_each_tensor(all,
                  [&](at::Tensor& tensor, std::int64_t rows) { tensor = at::cat(*next++, rows); });
  return all;
}

}  // namespace

CollectedPredictions::~CollectedPredictions() = default;

void CollectedPredictions::do_start(const TargetSpec& target) {
  for (const std::int64_t size : target.shape) {
    if (size == kVaries)
      throw DataError("predictions of a target of varying length cannot be kept row by row");
  }
}

void CollectedPredictions::do_reset() {
  rows_.clear();
  groups_.clear();
  predictions_.clear();
  targets_.clear();
  weights_.clear();
}

void CollectedPredictions::do_update(const Prediction& prediction, const TargetBatch& target) {
  // Copies: the memory of a batch is used again for the next one.
  rows_.push_back(target.batch().rows.clone());
  if (target.batch().groups.defined())
    groups_.push_back(target.batch().groups.clone());
  Prediction& kept = predictions_.emplace_back(prediction);
  for_each_tensor(kept, [](at::Tensor& tensor, std::int64_t /*rows*/) { tensor = tensor.clone(); });
  targets_.push_back(target.values().clone());
  if (target.weights().defined())
    weights_.push_back(target.weights().clone());
}

void CollectedPredictions::do_merge(const MetricComputer& other) {
  const auto& more = dynamic_cast<const CollectedPredictions&>(other);
  append_all(rows_, more.rows_);
  append_all(groups_, more.groups_);
  append_all(predictions_, more.predictions_);
  append_all(targets_, more.targets_);
  append_all(weights_, more.weights_);
}

CollectedPredictions::Rows CollectedPredictions::collected() const {
  TREADLE_EXPECTS(!rows_.empty(), "predictions have been collected");
  const at::Tensor rows = at::cat(rows_);
  const at::Tensor order = at::argsort(rows, /*stable=*/true);
  const auto ordered = [&](const std::vector<at::Tensor>& parts) {
    return parts.empty() ? at::Tensor() : at::index_select(at::cat(parts), 0, order);
  };
  Prediction prediction = joined(predictions_);
  for_each_tensor(prediction, [&](at::Tensor& tensor, std::int64_t dimension) {
    tensor = at::index_select(tensor, dimension, order);
  });
  return {at::index_select(rows, 0, order), ordered(groups_), std::move(prediction),
          ordered(targets_), ordered(weights_)};
}

StateDict CollectedPredictions::do_state() const {
  StateDict state;
  if (rows_.empty())
    return state;
  state.put("rows", at::cat(rows_));
  if (!groups_.empty())
    state.put("groups", at::cat(groups_));
  state.put("prediction", state_of(joined(predictions_)));
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
  if (state.has_tensor("groups"))
    groups_ = {state.tensor("groups")};
  predictions_ = {prediction_from(state.part("prediction"))};
  targets_ = {state.tensor("targets")};
  if (state.has_tensor("weights"))
    weights_ = {state.tensor("weights")};
  const std::int64_t count = rows_[0].numel();
  bool fits = rows_[0].dim() == 1 && rows_[0].scalar_type() == at::kLong &&
              predictions_[0].values.defined();
  const auto expect = [&](const at::Tensor& tensor, std::int64_t rows) {
    fits = fits && tensor.dim() > rows && tensor.size(rows) == count;
  };
  for_each_tensor(predictions_[0], expect);
  expect(targets_[0], 0);
  for (const std::vector<at::Tensor>* const some : {&groups_, &weights_}) {
    for (const at::Tensor& tensor : *some)
      expect(tensor, 0);
  }
  if (!fits)
    throw StorageError("saved predictions are not one for each row");
}

}  // namespace treadle::internal
