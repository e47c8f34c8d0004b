#include "search/study/cancelled_trials.h"

#include <cstddef>

namespace treadle::internal {

std::optional<std::int64_t> cancelled_while_paused(const TrialFiles& files,
                                                   const StudyJournal& journal,
                                                   const std::vector<Trial>& shown,
                                                   const std::vector<StudyTrial>& trials,
                                                   std::int64_t job) {
  if (!files.any_is_cancelled())
    return std::nullopt;
  const std::vector<JournaledTrial>& earlier = journal.earlier();
  for (const Trial& seen : shown) {
    const auto number = static_cast<std::size_t>(seen.number);
    const StudyTrial& trial = trials[number];
    if (seen.state != TrialState::kPaused || trial.now.state != TrialState::kPaused ||
        !files.is_cancelled(seen.number))
      continue;
    const bool is_known = number < earlier.size() && trial.jobs < earlier[number].jobs.size();
    if (is_known
            ? earlier[number].jobs[trial.jobs].number == job && earlier[number].error == kCancelled
            : job >= journal.earlier_jobs())
      return seen.number;
  }
  return std::nullopt;
}

}  // namespace treadle::internal
