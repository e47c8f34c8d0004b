#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/host/run/run_folder.h>

#include "search/study/study_trial.h"

namespace treadle::internal {

/// The files of a search's trials: checkpoints as long as a trial may resume, and records of the
/// best ones.
class TrialFiles {
 public:
  /// `keep`: of how many complete trials the records are kept. Borrows `folder`.
  TrialFiles(const RunFolder& folder, std::int64_t keep) : folder_(folder), keep_(keep) {}

  /// Removes what is not needed any more of a trial that has ended. `trials` has all of them.
  void ended(const StudyTrial& trial, const std::vector<StudyTrial>& trials);
  /// Removes checkpoints and records of any fits.
  void remove(const std::vector<std::string>& fits) const;
  /// Complete trials whose records are kept, the best first.
  const std::vector<std::int64_t>& kept() const { return kept_; }
  /// People cancel a trial by a file of its number.
  bool is_cancelled(std::int64_t number) const;
  bool any_is_cancelled() const;

 private:
  void remove(std::int64_t number, bool keeps_result);

  const RunFolder& folder_;
  const std::int64_t keep_;
  std::vector<std::int64_t> kept_;
};

}  // namespace treadle::internal
