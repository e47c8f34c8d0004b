#include "outputs/output_stages.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <utility>

#include <treadle/base/error.h>

#include "document/document_slots.h"

namespace treadle::internal {
namespace {

constexpr const char* kOutputs = "outputs";
constexpr std::array kOrder{"calibration", "conformal", "decision"};

}  // namespace

bool has_outputs(const ResolvedWorkflow& workflow) {
  if (!workflow.resolved.contains(kOutputs))
    return false;
  const nlohmann::json& outputs = workflow.resolved.at(kOutputs);
  return std::any_of(kOrder.begin(), kOrder.end(),
                     [&](const char* key) { return outputs.contains(key); });
}

OutputStages::OutputStages(const Runtime& runtime, const ResolvedWorkflow& workflow,
                           std::vector<TargetSpec> targets)
    : targets_(std::move(targets)) {
  if (!has_outputs(workflow))
    return;
  const Config outputs = workflow.slot(kOutputs);
  for (const char* const key : kOrder) {
    if (!outputs.has(key))
      continue;
    std::exception_ptr why_not;
    const std::size_t before = stages_.size();
    for (std::size_t target = 0; target < targets_.size(); ++target) {
      auto stage = make_nested<OutputStage>(runtime, outputs.child(key));
      try {
        stage->start(targets_[target]);
      } catch (const DataError&) {
        why_not = std::current_exception();
        continue;
      }
      stages_.push_back({outputs.child(key).get<std::string>("use"), target, std::move(stage)});
    }
    if (stages_.size() == before)
      std::rethrow_exception(why_not);
  }
}

bool OutputStages::need_groups() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const Stage& one) { return one.stage->needs_groups(); });
}

bool OutputStages::need_folds() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const Stage& one) { return one.stage->needs_folds(); });
}

bool OutputStages::need_folds(std::size_t target) const {
  return std::any_of(stages_.begin(), stages_.end(), [&](const Stage& one) {
    return one.target == target && one.stage->needs_folds();
  });
}

const std::string& OutputStages::needs_folds_first() const {
  const auto found = std::find_if(stages_.begin(), stages_.end(),
                                  [](const Stage& one) { return one.stage->needs_folds(); });
  TREADLE_EXPECTS(found != stages_.end(), "a stage needs folds");
  return found->component;
}

bool OutputStages::all_need_folds() const {
  return std::all_of(stages_.begin(), stages_.end(),
                     [](const Stage& one) { return one.stage->needs_folds(); });
}

void OutputStages::expect_enough(const Batch& rows) const {
  for (const Stage& one : stages_) {
    if (rows.original_targets[one.target].defined())
      one.stage->expect_enough(TargetBatch::original(rows, one.target, targets_[one.target]));
  }
}

void OutputStages::fit(Predictions predictions, const Batch& rows) {
  for (const Stage& one : stages_) {
    Prediction& prediction = predictions.at(one.target);
    one.stage->fit(prediction, TargetBatch::original(rows, one.target, targets_[one.target]));
    prediction = one.stage->apply(std::move(prediction), rows);
  }
}

Predictions OutputStages::apply(Predictions predictions, const Batch& rows) const {
  for (const Stage& one : stages_) {
    Prediction& prediction = predictions.at(one.target);
    if (prediction.values.defined())
      prediction = one.stage->apply(std::move(prediction), rows);
  }
  for (Prediction& prediction : predictions)
    prediction.fold_numbers = prediction.folds = at::Tensor();
  return predictions;
}

std::vector<OutputStages::Learned> OutputStages::learned() const {
  std::vector<Learned> all;
  for (const Stage& one : stages_) {
    all.push_back({one.component, targets_.size() == 1 ? "" : targets_[one.target].name,
                   one.stage->learned()});
  }
  return all;
}

StateDict OutputStages::state() const {
  StateDict state;
  for (std::size_t i = 0; i < stages_.size(); ++i)
    state.put(std::to_string(i), stages_[i].stage->state());
  return state;
}

void OutputStages::load_state(const StateDict& state) {
  for (std::size_t i = 0; i < stages_.size(); ++i)
    stages_[i].stage->load_state(state.part(std::to_string(i)));
}

}  // namespace treadle::internal
