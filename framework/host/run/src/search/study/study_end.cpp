#include "search/study/study_end.h"

namespace treadle::internal {

nlohmann::json ended_with_trials(const SearchSettings& settings, std::int64_t trials,
                                 bool is_exhausted, bool has_lost_patience) {
  if (trials >= settings.trials)
    return {{"reason", "trials"}, {"text", "all trials were made"}};
  if (has_lost_patience) {
    return {{"reason", "patience"},
            {"text", "no new best in " + std::to_string(*settings.patience) +
                         (*settings.patience == 1 ? " trial" : " trials")}};
  }
  if (is_exhausted)
    return {{"reason", "space"}, {"text", "the tuner had no more points"}};
  return {{"reason", "pruner"}, {"text", settings.pruner_name + " had no more trials to begin"}};
}

std::string why_none_is_complete(const std::vector<StudyTrial>& trials, const std::string& pruner) {
  if (trials.empty())
    return "the search has no trials, as its tuner found no point in the space";
  std::size_t failed = 0;
  std::size_t cancelled = 0;
  std::string first;
  for (const StudyTrial& trial : trials) {
    if (trial.is_cancelled) {
      ++cancelled;
    } else if (trial.now.state == TrialState::kFailed) {
      ++failed;
      if (first.empty())
        first = trial.error;
    }
  }
  const std::size_t pruned = trials.size() - failed - cancelled;
  const std::string all = std::to_string(trials.size());
  if (failed == trials.size())
    return "all " + all + " trials of the search failed, the first with: " + first;
  std::string text = "no trial of the search was trained to its end: of " + all + " trials " +
                     std::to_string(pruned) + " were pruned, " + std::to_string(cancelled) +
                     " were cancelled and " + std::to_string(failed) + " failed";
  if (pruned > 0)
    text += "; give " + pruner + " bounds that good trials keep, or leave it out";
  return first.empty() ? text : text + ". The first that failed: " + first;
}

}  // namespace treadle::internal
