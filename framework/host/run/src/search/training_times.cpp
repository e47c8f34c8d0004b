#include "search/training_times.h"

#include <algorithm>
#include <cmath>
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
                             Epochs epochs)
    : trials_(trials),
      folds_(folds),
      refits_(refits),
      all_rows_(refits ? kAllRows : 1),
      epochs_(epochs) {}

bool TrainingTimes::have_only_first_epochs(int workers) const {
  std::int64_t epochs = 0;
  for (const StudyTrial& trial : trials_) {
    const bool is_of_another_process = trial.timed_epochs > 0 && trial.epoch_times.count() == 0;
    if (is_complete(trial.now) || is_of_another_process)
      return false;
    epochs += trial.epoch_times.count();
  }
  return epochs <= workers;
}

/// Of one fold: what was trained of the trial, and the epochs that a training of its document has
/// besides.
double TrainingTimes::of_fit(std::int64_t trial, std::optional<double> usual_epochs) const {
  const StudyTrial& one = trials_[static_cast<std::size_t>(trial)];
  const double trained = one.seconds / static_cast<double>(folds_);
  const double of_epoch = one.epoch_times.next().value_or(
      one.timed_epochs > 0 ? trained / static_cast<double>(one.timed_epochs) : 0);
  return trained + further_epochs(one, usual_epochs) * of_epoch;
}

double TrainingTimes::of_last(std::int64_t trial) const {
  return of_fit(trial, usual_epochs()) * (static_cast<double>(folds_) + (refits_ ? all_rows_ : 0));
}

double TrainingTimes::of_member(std::int64_t trial) const {
  return of_fit(trial, usual_epochs()) * all_rows_;
}

std::function<double(std::int64_t)> TrainingTimes::ends(std::int64_t members, int workers) const {
  // The folds in turns, then all rows; members train wherever a worker is free.
  const auto at_once = static_cast<std::size_t>(workers);
  const double refit = refits_ ? all_rows_ : 0;
  const double longest = static_cast<double>((folds_ + at_once - 1) / at_once) + refit;
  const double all = static_cast<double>(folds_) + refit;
  return [this, longest, all, workers, usual_epochs = usual_epochs(),
          of_members = of_members(members)](std::int64_t trial) {
    const double fit = of_fit(trial, usual_epochs);
    return kReserve * std::max(fit * longest, (fit * all + of_members) / workers);
  };
}

/// The mean of complete trials; nothing where there is none.
std::optional<double> TrainingTimes::usual_epochs() const {
  double sum = 0;
  double count = 0;
  for (const StudyTrial& trial : trials_) {
    if (is_complete(trial.now)) {
      sum += epochs_of(trial);
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

/// How many epochs a training of its document has beside those whose time is known. As long as no
/// trial is complete, it has all that the document allows, and of trainings that stop early twice
/// as many as were trained. After the last one, of which the study is not told, the model is
/// evaluated, which takes no more than an epoch.
double TrainingTimes::further_epochs(const StudyTrial& trial,
                                     std::optional<double> usual_epochs) const {
  const auto timed = static_cast<double>(trial.timed_epochs);
  const double trained = epochs_of(trial);
  if (is_complete(trial.now))
    return trained - timed;
  const double most = epochs_.most ? static_cast<double>(*epochs_.most) : HUGE_VAL;
  const double unknown = epochs_.most && !epochs_.may_stop_early ? most : 2 * trained;
  const double usual = usual_epochs ? *usual_epochs + 1 : unknown;
  return std::max(trained, std::min(usual, most)) - timed + 1;
}

/// Half as many trainings, as some are added more than once.
double TrainingTimes::of_members(std::int64_t members) const {
  std::vector<std::pair<double, double>> complete;  // value, seconds
  for (const StudyTrial& trial : trials_) {
    if (is_complete(trial.now)) {
      complete.emplace_back(trial.now.values.front(),
                            of_fit(trial.now.number, std::nullopt) * all_rows_);
    }
  }
  const auto count = std::min(complete.size(), static_cast<std::size_t>((members + 1) / 2));
  std::nth_element(complete.begin(), complete.begin() + static_cast<std::ptrdiff_t>(count),
                   complete.end());
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum += complete[i].second;
  return sum;
}

}  // namespace treadle::internal
