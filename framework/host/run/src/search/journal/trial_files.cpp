#include "search/journal/trial_files.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "search/study/best_trials.h"
#include "store/trial_paths.h"

namespace treadle::internal {

namespace fs = std::filesystem;

namespace {

/// In one instant: a process that lost this trial while it was frozen may be writing there, and
/// finds either all its files or none. RunFolder::open() removes the rest after a kill.
void remove_at_once(const fs::path& folder) {
  fs::path gone = folder.parent_path();
  gone += "-" + folder.filename().string() + "." + std::to_string(getpid()) + ".tmp";
  std::error_code ignored;  // of files that are in nobody's way
  fs::rename(folder, gone, ignored);
  fs::remove_all(gone, ignored);
}

}  // namespace

void TrialFiles::ended(const StudyTrial& trial, const std::vector<StudyTrial>& trials) {
  const std::int64_t number = trial.now.number;
  if (!is_complete(trial.now))
    return remove(number, /*keeps_result=*/false);
  const auto rank = [&](std::int64_t other) {
    return rank_of(trials[static_cast<std::size_t>(other)].now);
  };
  const auto place =
      std::upper_bound(kept_.begin(), kept_.end(), number,
                       [&](std::int64_t a, std::int64_t b) { return rank(a) < rank(b); });
  kept_.insert(place, number);
  if (static_cast<std::int64_t>(kept_.size()) > keep_) {
    remove(kept_.back(), /*keeps_result=*/false);
    kept_.pop_back();
  }
  if (std::find(kept_.begin(), kept_.end(), number) != kept_.end())
    remove(number, /*keeps_result=*/true);
}

void TrialFiles::remove(std::int64_t number, bool keeps_result) {
  const std::string path = trial_path(number);
  remove_at_once(folder_.checkpoints(path));
  if (!keeps_result)
    remove_at_once(folder_.fit_result(path));
}

void TrialFiles::remove(const std::vector<std::string>& fits) const {
  for (const std::string& fit : fits) {
    fs::remove_all(folder_.checkpoints(fit));
    fs::remove_all(folder_.fit_result(fit));
  }
}

bool TrialFiles::any_is_cancelled() const {
  std::error_code ignored;
  return fs::exists(folder_.cancelled(0).parent_path(), ignored);
}

bool TrialFiles::is_cancelled(std::int64_t number) const {
  std::error_code ignored;
  return fs::exists(folder_.cancelled(number), ignored);
}

}  // namespace treadle::internal
