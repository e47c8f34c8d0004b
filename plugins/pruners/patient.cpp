#include "patient.h"

#include <span>

#include "trial_values.h"

namespace treadle::pruners {

Patient::Patient(const Config& config, const ComponentContext& context)
    : patience_(config.get<std::int64_t>("patience")),
      min_delta_(config.get<double>("min_delta")),
      pruner_(make_nested<Pruner>(context, config, "pruner")) {}

std::optional<std::int64_t> Patient::do_next_step(std::int64_t trial, std::int64_t after) const {
  return pruner_ != nullptr ? pruner_->next_step(trial, after) : after + 1;
}

bool Patient::has_stopped_improving(const Trial& trial) const {
  const auto count = static_cast<std::int64_t>(trial.intermediate.size());
  if (count <= patience_ + 1)
    return false;
  const std::span<const IntermediateValue> all(trial.intermediate);
  const auto before = static_cast<std::size_t>(count - patience_ - 1);
  return is_better(best_of(all.first(before)) + min_delta_, best_of(all.subspan(before)));
}

PrunerVerdict Patient::do_judge(const Trial& trial, const StudyView& study) const {
  if (!has_stopped_improving(trial))
    return PrunerVerdict::kContinue;
  return pruner_ != nullptr ? pruner_->judge(trial, study) : PrunerVerdict::kPrune;
}

NextJob Patient::do_next_job(const StudyView& study) const {
  return pruner_ != nullptr ? pruner_->next_job(study) : NextJob{};
}

}  // namespace treadle::pruners
