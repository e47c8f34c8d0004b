#include "predict/whole_model.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include "fit/fit.h"
#include "resources/run_device.h"

namespace treadle::internal {

WholeModel::WholeModel(const Runtime& runtime, SavedModel stored)
    : WholeModel(runtime, std::move(stored.members), std::move(stored.pool), std::move(stored)) {}

WholeModel::WholeModel(const Runtime& runtime, std::vector<SavedModel> members, PredictionPool pool,
                       SavedModel&& stored)
    : RestoredModel(runtime, std::move(stored), Use::kWholeBatches), pool_(std::move(pool)) {
  for (SavedModel& member : members)
    members_.push_back(std::make_unique<WholeModel>(runtime, std::move(member)));
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
  return all;
}

void WholeModel::predict(const EvaluatedRows& data, const RowList& rows,
                         const Visit& visit_predictions) const {
  const Visit visit = [&](const Predictions& predictions, const Batch& batch) {
    visit_predictions(outputs.apply(predictions, batch), batch);
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
