#include "search/study/study_record.h"

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

SearchResult::Trial StudyRecord::of_trial(const Trial& shown, const StudyTrial& trial) const {
  SearchResult::Trial result;
  result.number = shown.number;
  result.state = trial.is_cancelled() ? "cancelled" : state_text(shown.state);
  result.params = settings_.space.to_json(shown.point);
  if (is_complete(shown)) {
    const std::vector<double> values = in_document(shown.values);
    result.values.assign(values.begin(), values.end());
    result.constraints.assign(shown.constraints.begin(), shown.constraints.end());
  }
  if (shown.state == TrialState::kFailed)
    result.error = trial.error;
  result.copied_from = shown.copied_from;
  for (const IntermediateValue& value : shown.intermediate)
    result.intermediate.push_back({value.step, objectives_.in_document(0, value.value)});
  return result;
}

SearchResult StudyRecord::of_search(const std::vector<Trial>& shown,
                                    const std::vector<StudyTrial>& trials, std::int64_t best,
                                    const nlohmann::json& ended) const {
  SearchResult result;
  result.tuner = settings_.tuner_name;
  if (settings_.pruner)
    result.pruner = settings_.pruner_name;
  result.objectives = objectives_.record();
  result.best_trial = best;
  result.ended = {ended.at("reason").get<std::string>(), ended.at("text").get<std::string>()};
  for (const Trial& trial : shown)
    result.trials.push_back(of_trial(trial, trials[static_cast<std::size_t>(trial.number)]));
  if (objectives_.size() > 1)
    result.pareto_trials = pareto_front(shown);
  result.asynchronous = settings_.asynchronous;
  return result;
}

}  // namespace treadle::internal
