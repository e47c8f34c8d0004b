#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "search/study_trial.h"

namespace treadle::internal {

/// Estimates of how long trainings take, by how long those of trials took: in seconds of one
/// worker, where nothing else is said.
class TrainingTimes {
 public:
  /// `refits`: whether the last training also trains on all rows. `epochs`: as many as the document
  /// has a training take at most. Borrows `trials`.
  TrainingTimes(const std::vector<StudyTrial>& trials, std::size_t folds, bool refits,
                std::optional<std::int64_t> epochs);

  /// The last training of a search, with this trial's document: all of its fits.
  double of_last(std::int64_t trial) const;
  /// A member of an ensemble, with this trial's document.
  double of_member(std::int64_t trial) const;
  /// The last training, and beside it an ensemble of at most so many members of the best trials:
  /// wall time.
  double of_end(std::int64_t trial, std::int64_t members, int workers) const;

 private:
  double of_fit(std::int64_t trial) const;
  double of_members(std::int64_t members) const;
  double times_longer(const StudyTrial& trial) const;

  const std::vector<StudyTrial>& trials_;
  const std::size_t folds_;
  const bool refits_;
  const double all_rows_;  // a training on all rows, in trainings of a fold
  const std::optional<std::int64_t> epochs_;
};

}  // namespace treadle::internal
