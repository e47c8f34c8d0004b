#include "components/target_defaults.h"

#include <string_view>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

constexpr TargetDefaults kDefaults[] = {
    {TargetKind::kClasses,
     "classification",
     "cross_entropy",
     {"accuracy", nullptr},
     "confusion_matrix"},
    {TargetKind::kNumbers, "regression", "mse", {"rmse", "r2"}, "residuals"},
    {TargetKind::kLabels,
     "multi-label classification",
     "bce_with_logits",
     {"macro_f1", nullptr},
     nullptr},
    {TargetKind::kDistribution,
     "prediction of a distribution",
     "cross_entropy",
     {"log_loss", nullptr},
     nullptr},
};

}  // namespace

const TargetDefaults& defaults_for(TargetKind kind) {
  for (const TargetDefaults& entry : kDefaults) {
    if (entry.kind == kind)
      return entry;
  }
  throw ContractViolation("a kind of target without defaults");
}

std::string task_of(const std::vector<TargetSpec>& targets) {
  std::string text;
  for (const TargetSpec& target : targets) {
    const std::string_view task = defaults_for(target.kind).task;
    if (text.find(task) == std::string::npos)
      text += (text.empty() ? "" : ", ") + std::string(task);
  }
  return text;
}

std::string metric_prefix(const std::vector<TargetSpec>& targets, const TargetSpec& target) {
  return targets.size() > 1 ? target.name + "/" : std::string();
}

std::size_t target_of(const std::vector<TargetSpec>& targets, const Config& slot) {
  std::string names;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (slot.has("target") && targets[i].name == slot.get<std::string>("target"))
      return i;
    names += (names.empty() ? "\"" : ", \"") + targets[i].name + "\"";
  }
  if (slot.has("target"))
    slot.fail("target", "the data has no such target; it has " + names);
  if (targets.size() > 1) {
    slot.fail("", "the data has several targets (" + names +
                      "): name the one that is meant, \"target\": …");
  }
  return 0;
}

}  // namespace treadle::internal
