#include "document/training_plan.h"

#include <algorithm>
#include <utility>

#include "document/document_slots.h"

namespace treadle::internal {
namespace {

/// As the document has it; else until max_steps, else 100.
std::optional<std::int64_t> planned_epochs(const Config& training, bool has_max_steps) {
  constexpr std::int64_t kUsual = 100;
  if (!training.has("epochs"))
    return has_max_steps ? std::nullopt : std::optional(kUsual);
  const nlohmann::json& given = training.json().at("epochs");
  return given.is_string() ? std::nullopt : std::optional(given.get<std::int64_t>());
}

}  // namespace

TrainingPlan training_plan_of(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const Config slot = workflow.slot("training");
  TrainingPlan plan;
  plan.steps_per_epoch = slot.find<std::int64_t>("steps_per_epoch");
  plan.max_steps = slot.find<std::int64_t>("max_steps");
  plan.epochs = planned_epochs(slot, plan.max_steps.has_value());
  if (const nlohmann::json& size = slot.json().at("batch_size"); size.is_number())
    plan.batch_size = size.get<std::int64_t>();
  LoopNeeds needs = make_in<TrainingWorkflow>(runtime, slot, "training")->needs();
  plan.rows_per_epoch = needs.rows_per_epoch;
  plan.parts = std::move(needs.parts);
  if (plan.rows_per_epoch)
    plan.steps_per_epoch = std::max<std::int64_t>(1, *plan.rows_per_epoch / plan.batch_size);
  plan.evaluation_batch_size = slot.get<std::int64_t>("evaluation_batch_size");
  plan.evaluate_every = slot.get<std::int64_t>("evaluate_every");
  plan.shuffle = slot.get_or("shuffle", true);
  plan.shuffle_buffer = slot.get_or("shuffle_buffer", plan.shuffle_buffer);
  const nlohmann::json& drop_last = slot.json().at("drop_last");
  plan.drop_last = drop_last == true;
  plan.drop_single = drop_last == "single";
  if (slot.has("clip")) {
    const Config clip = slot.child("clip");
    plan.clipping = {clip.get_or<double>("norm", 0), clip.get_or<double>("value", 0)};
  }
  const Config checkpoint = slot.child("checkpoint");
  plan.checkpoint_every = checkpoint.get<Duration>("every");
  plan.keep_checkpoints = checkpoint.get<int>("keep");
  return plan;
}

}  // namespace treadle::internal
