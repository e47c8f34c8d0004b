#include "search/study/study_record.h"

#include <cmath>
#include <string>

#include "search/study/best_trials.h"
#include "search/study/job_result.h"

namespace treadle::internal {

std::vector<double> StudyRecord::in_document(const std::vector<double>& values) const {
  std::vector<double> shown;
  for (std::size_t i = 0; i < values.size(); ++i)
    shown.push_back(objectives_.in_document(i, values[i]));
  return shown;
}

TrialSummary StudyRecord::summary(const StudyTrial& trial) const {
  TrialSummary summary;
  summary.number = trial.now.number;
  summary.state = trial.is_cancelled() ? "cancelled" : state_text(trial.now.state);
  const nlohmann::json params = settings_.space.to_json(trial.now.point);
  for (const auto& [name, value] : params.items())
    summary.params.emplace_back(name, value.dump());
  summary.values = in_document(trial.now.values);
  summary.epochs = trial.now.intermediate.empty() ? 0 : trial.now.intermediate.back().step;
  summary.error = trial.error;
  return summary;
}

SearchProgress StudyRecord::progress(const std::vector<StudyTrial>& trials, double seconds) const {
  SearchProgress progress;
  progress.objectives = settings_.objectives;
  progress.trials = settings_.trials;
  progress.seconds = seconds;
  progress.budget = settings_.seconds;
  const Trial* best = nullptr;
  for (const StudyTrial& trial : trials) {
    switch (trial.now.state) {
      case TrialState::kRunning:
        ++progress.running;
        break;
      case TrialState::kPaused:
        ++progress.paused;
        break;
      case TrialState::kComplete:
        ++progress.complete;
        if (best == nullptr || rank_of(trial.now) < rank_of(*best))
          best = &trial.now;
        break;
      case TrialState::kPruned:
        ++progress.pruned;
        break;
      case TrialState::kFailed:
        ++progress.failed;
        break;
    }
  }
  if (best != nullptr) {
    progress.best_trial = best->number;
    progress.best_values = in_document(best->values);
  }
  return progress;
}

nlohmann::json StudyRecord::of_trial(const Trial& shown, const StudyTrial& trial) const {
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
  };
  nlohmann::json record{{"number", shown.number},
                        {"state", trial.is_cancelled() ? "cancelled" : state_text(shown.state)},
                        {"params", settings_.space.to_json(shown.point)}};
  if (is_complete(shown)) {
    record["values"] = in_document(shown.values);
    if (!shown.constraints.empty())
      record["constraints"] = shown.constraints;
  }
  if (shown.state == TrialState::kFailed)
    record["error"] = trial.error;
  if (shown.copied_from)
    record["copied_from"] = *shown.copied_from;
  nlohmann::json& intermediate = record["intermediate"] = nlohmann::json::array();
  for (const IntermediateValue& value : shown.intermediate) {
    intermediate.push_back(
        {{"step", value.step}, {"value", number(objectives_.in_document(0, value.value))}});
  }
  return record;
}

nlohmann::json StudyRecord::of_search(const std::vector<Trial>& shown,
                                      const std::vector<StudyTrial>& trials, std::int64_t best,
                                      const nlohmann::json& ended) const {
  nlohmann::json all = nlohmann::json::array();
  for (const Trial& trial : shown)
    all.push_back(of_trial(trial, trials[static_cast<std::size_t>(trial.number)]));
  nlohmann::json record{{"tuner", settings_.tuner_name},
                        {"objectives", objectives_.record()},
                        {"best_trial", best},
                        {"ended", ended},
                        {"trials", std::move(all)}};
  if (settings_.pruner)
    record["pruner"] = settings_.pruner_name;
  if (objectives_.size() > 1)
    record["pareto_trials"] = pareto_front(shown);
  if (settings_.asynchronous)
    record["asynchronous"] = true;
  return record;
}

}  // namespace treadle::internal
