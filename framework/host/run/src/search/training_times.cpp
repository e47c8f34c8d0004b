#include "search/training_times.h"

#include <algorithm>
#include <utility>

#include "search/best_trials.h"

namespace treadle::internal {
namespace {

/// Rows that validate the folds are about a fifth, and train the model of all rows, too.
constexpr double kAllRows = 1.25;
/// Trainings of one document differ: another order of the rows, another number of epochs.
constexpr double kReserve = 1.1;

double epochs_of(const StudyTrial& trial) {
  const std::vector<IntermediateValue>& values = trial.now.intermediate;
  return values.empty() ? 0 : static_cast<double>(values.back().step);
}

}  // namespace

TrainingTimes::TrainingTimes(const std::vector<StudyTrial>& trials, std::size_t folds, bool refits,
                             std::optional<std::int64_t> epochs)
    : trials_(trials),
      folds_(folds),
      refits_(refits),
      all_rows_(refits ? kAllRows : 1),
      epochs_(epochs) {}

/// Of one fold.
double TrainingTimes::of_fit(std::int64_t trial) const {
  const StudyTrial& one = trials_[static_cast<std::size_t>(trial)];
  return one.seconds / static_cast<double>(folds_) * times_longer(one);
}

double TrainingTimes::of_last(std::int64_t trial) const {
  return of_fit(trial) * (static_cast<double>(folds_) + (refits_ ? all_rows_ : 0));
}

double TrainingTimes::of_member(std::int64_t trial) const {
  return of_fit(trial) * all_rows_;
}

double TrainingTimes::of_end(std::int64_t trial, std::int64_t members, int workers) const {
  // The folds in turns, then all rows; members train wherever a worker is free.
  const auto at_once = static_cast<std::size_t>(workers);
  const auto turns = static_cast<double>((folds_ + at_once - 1) / at_once);
  const double longest = of_fit(trial) * (turns + (refits_ ? all_rows_ : 0));
  const double all = (of_last(trial) + of_members(members)) / workers;
  return kReserve * std::max(longest, all);
}

/// How much longer a training of its document takes than what was trained of a trial: a paused one
/// has but some of the epochs. As long as no trial is complete, they are twice as many.
double TrainingTimes::times_longer(const StudyTrial& trial) const {
  const double trained = epochs_of(trial);
  if (is_complete(trial.now) || trained == 0)
    return 1;
  double sum = 0;
  double count = 0;
  for (const StudyTrial& other : trials_) {
    if (is_complete(other.now)) {
      sum += epochs_of(other);
      ++count;
    }
  }
  double epochs = count > 0 ? sum / count : 2 * trained;
  if (epochs_)
    epochs = std::min(epochs, static_cast<double>(*epochs_));
  return std::max(1.0, epochs / trained);
}

/// Half as many trainings, as some are added more than once.
double TrainingTimes::of_members(std::int64_t members) const {
  std::vector<std::pair<double, double>> complete;  // value, seconds
  for (const StudyTrial& trial : trials_) {
    if (is_complete(trial.now))
      complete.emplace_back(trial.now.values.front(), of_member(trial.now.number));
  }
  std::sort(complete.begin(), complete.end());
  complete.resize(std::min(complete.size(), static_cast<std::size_t>((members + 1) / 2)));
  double sum = 0;
  for (const auto& [value, seconds] : complete)
    sum += seconds;
  return sum;
}

}  // namespace treadle::internal
