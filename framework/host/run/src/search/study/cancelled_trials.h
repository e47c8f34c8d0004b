#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "search/journal/study_journal.h"
#include "search/journal/trial_files.h"
#include "search/study/study_trial.h"

namespace treadle::internal {

/// Trials that people have cancelled. They count as failed; their error is one word.
inline constexpr const char* kCancelled = "cancelled";

/// The first paused trial that is cancelled, at the job at which an earlier process has cancelled
/// it, as `journal` has that. `job` is the next one; `shown` are the trials as decisions see them.
std::optional<std::int64_t> cancelled_while_paused(const TrialFiles& files,
                                                   const StudyJournal& journal,
                                                   const std::vector<Trial>& shown,
                                                   const std::vector<StudyTrial>& trials,
                                                   std::int64_t job);

}  // namespace treadle::internal
