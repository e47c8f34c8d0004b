#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "search/study/study_trial.h"

namespace treadle::internal {

/// Estimates of how long trainings take, by how long those of trials took: in seconds of one
/// worker, unless stated otherwise.
class TrainingTimes {
 public:
  /// How many epochs a training of the document has.
  struct Epochs {
    std::optional<std::int64_t> most = {};
    bool may_stop_early = false;
  };

  /// `refits`: whether the last training also trains on all rows. Borrows `trials`.
  TrainingTimes(const std::vector<StudyTrial>& trials, std::size_t folds, bool refits,
                Epochs epochs);

  /// Whether only the first epochs of the process were timed, one for each worker. They are slower
  /// than later ones, because they load libraries and fill caches, so they are no estimate.
  bool have_only_first_epochs(int workers) const;

  /// The last training of a search, with this trial's document: all of its fits.
  double of_last(std::int64_t trial) const;
  /// A member of an ensemble, of this trial: nothing without a refit, as the trial's model is it.
  double of_member(std::int64_t trial) const;
  /// Wall time of the last training with a trial's document, and beside it of an ensemble of at
  /// most so many members of the best trials. The terms common to all trials are computed here: the
  /// function is for the present trials.
  std::function<double(std::int64_t trial)> ends(std::int64_t members, int workers) const;

 private:
  /// The epochs of complete trials.
  class Lengths;

  double of_fit(std::int64_t trial, const Lengths& lengths) const;
  double of_members(std::int64_t members, const Lengths& lengths) const;
  double further_epochs(const StudyTrial& trial, const Lengths& lengths) const;

  const std::vector<StudyTrial>& trials_;
  const std::size_t folds_;
  const double all_rows_;  // a training on all rows, in trainings of a fold; 0: none
  const Epochs epochs_;
};

}  // namespace treadle::internal
