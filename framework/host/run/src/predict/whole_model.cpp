#include "predict/whole_model.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>

#include "fit/fit.h"
#include "resources/run_device.h"

namespace treadle::internal {

WholeModel::WholeModel(const Runtime& runtime, SavedModel stored)
    : WholeModel(runtime,
                 Others{std::move(stored.members), std::move(stored.pool), std::move(stored.folds)},
                 std::move(stored)) {}

WholeModel::WholeModel(const Runtime& runtime, Others others, SavedModel&& stored)
    : RestoredModel(runtime, std::move(stored), Use::kWholeBatches), pool_(std::move(others.pool)) {
  for (SavedModel& member : others.members)
    members_.push_back(std::make_unique<WholeModel>(runtime, std::move(member)));
  if (!outputs.need_folds())
    return;
  for (SavedModel& fold : others.folds)
    folds_.push_back(std::make_unique<WholeModel>(runtime, std::move(fold)));
  if (folds_.empty()) {
    throw StorageError(
        "the models of the folds are missing, with which its outputs predict; restore \"folds\" "
        "from a copy of the run, or train it again");
  }
}

Predictions WholeModel::predict_rows(const Batch& rows, const FurtherPredictions& further) const {
  return outputs.apply(predict_without_outputs(rows, further), rows);
}

Predictions WholeModel::predict_without_outputs(const Batch& rows,
                                                const FurtherPredictions& further) const {
  if (is_ensemble())
    return pooled(rows, further);
  const at::NoGradGuard no_gradients;
  Predictions all;
  const std::int64_t most = pipeline_options(further).batch_size;
  for (std::int64_t begin = 0; begin < rows.size(); begin += most) {
    Batch some = rows.slice(begin, std::min(most, rows.size() - begin));
    for (at::Tensor& input : some.inputs)
      input = input.clone();  // transforms change rows in place
    engine::BatchPreparation::Memory memory;
    preparation.before_transfer(some, ApplyContext{}, memory);
    Predictions part = within_memory_of(
        components.device(), [&] { return engine::predict(setup(preparation, further), some); });
    if (all.empty()) {
      all = std::move(part);
      continue;
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      append(all[i], part[i]);
  }
  add_folds(rows, all);
  return all;
}

void WholeModel::add_folds(const Batch& rows, Predictions& predictions) const {
  std::vector<std::vector<at::Tensor>> of_targets(predictions.size());
  for (const auto& fold : folds_) {
    const Predictions of_fold = fold->predict_without_outputs(rows, {});
    for (std::size_t target = 0; target < predictions.size(); ++target) {
      if (outputs.need_folds(target))
        of_targets[target].push_back(of_fold[target].values);
    }
  }
  for (std::size_t target = 0; target < predictions.size(); ++target) {
    if (!of_targets[target].empty())
      predictions[target].folds = at::stack(of_targets[target]);
  }
}

Predictions WholeModel::with_folds(Predictions predictions, const Batch& batch,
                                   const RowReader& rows) const {
  if (!has_folds())
    return predictions;
  const auto* const first = batch.rows.data_ptr<std::int64_t>();
  Batch read;
  rows.gather({first, static_cast<std::size_t>(batch.size())}, read);
  read.groups = batch.groups;  // in the numbers of the training, which folds share
  add_folds(read, predictions);
  return predictions;
}

void WholeModel::predict(const EvaluatedRows& data, const RowList& rows,
                         const Visit& visit_predictions) const {
  const Visit visit = [&](const Predictions& predictions, const Batch& batch) {
    visit_predictions(outputs.apply(with_folds(predictions, batch, *data.rows), batch), batch);
  };
  if (!is_ensemble()) {
    evaluate(data, rows, visit);
    return;
  }
  std::vector<at::Tensor> of_members;
  for (const auto& member : members_) {
    std::vector<at::Tensor> parts;
    member->evaluate(data, rows, [&](const Predictions& predictions, const Batch&) {
      parts.push_back(predictions.front().values.to(at::kCPU));
    });
    of_members.push_back(at::cat(parts));
  }
  const TargetKind kind = components.data_spec().targets.front().kind;
  const at::Tensor pooled = pool_(kind, of_members);
  std::int64_t done = 0;
  // Once more for the batches, which have the targets.
  members_.front()->evaluate(data, rows, [&](const Predictions&, const Batch& batch) {
    visit({{kind, pooled.narrow(0, done, batch.size())}}, batch);
    done += batch.size();
  });
}

Predictions WholeModel::pooled(const Batch& rows, const FurtherPredictions& further) const {
  std::vector<Prediction> of_members;
  std::vector<at::Tensor> values;
  for (const auto& member : members_) {
    of_members.push_back(member->predict_without_outputs(rows, further).front());
    values.push_back(of_members.back().values);
  }
  const TargetKind kind = components.data_spec().targets.front().kind;
  Prediction prediction{kind, pool_(kind, values)};
  if (further.uncertainty)
    prediction.uncertainty = pooled_uncertainty(pool_, of_members);
  return {prediction};
}

}  // namespace treadle::internal
