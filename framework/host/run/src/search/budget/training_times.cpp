#include "search/budget/training_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "search/study/best_trials.h"

namespace treadle::internal {
namespace {

/// Rows that validate the folds are about a fifth, and train the model of all rows, too.
constexpr double kAllRows = 1.25;
/// Trainings of one document differ: another order of the rows, another number of epochs.
constexpr double kReserve = 1.1;
/// How many times as many epochs a training has that stops early, as it has when it is paused and
/// still learns: of friedman1's from 60 epochs on 1.1 to 1.9.
constexpr double kGrowth = 1.5;

double epochs_of(const StudyTrial& trial) {
  const std::vector<IntermediateValue>& values = trial.now.intermediate;
  return values.empty() ? 0 : static_cast<double>(values.back().step);
}

/// The share of its folds that have not ended by themselves.
double open_folds(const StudyTrial& trial) {
  if (!trial.training || trial.training->fits.empty())
    return 1;
  const std::vector<TrialFit>& fits = trial.training->fits;
  const auto open = std::count_if(fits.begin(), fits.end(), [](const TrialFit& fit) {
    return fit.state != TrialFit::State::kEnded;
  });
  return static_cast<double>(open) / static_cast<double>(fits.size());
}

}  // namespace

class TrainingTimes::Lengths {
 public:
  explicit Lengths(const std::vector<StudyTrial>& trials) {
    for (const StudyTrial& trial : trials) {
      if (is_complete(trial.now))
        epochs_.push_back(epochs_of(trial));
    }
    std::sort(epochs_.begin(), epochs_.end());
    sums_.resize(epochs_.size() + 1);
    for (std::size_t i = epochs_.size(); i-- > 0;)
      sums_[i] = sums_[i + 1] + epochs_[i];
  }

  /// Their mean, of those that have more than so many; nothing where none has.
  std::optional<double> mean_above(double epochs) const {
    const auto first = std::upper_bound(epochs_.begin(), epochs_.end(), epochs);
    const auto count = static_cast<double>(epochs_.end() - first);
    if (first == epochs_.end())
      return std::nullopt;
    return sums_[static_cast<std::size_t>(first - epochs_.begin())] / count;
  }

 private:
  std::vector<double> epochs_;  // sorted
  std::vector<double> sums_;    // of epochs_ from each on
};

TrainingTimes::TrainingTimes(const std::vector<StudyTrial>& trials, std::size_t folds, bool refits,
                             Epochs epochs)
    : trials_(trials), folds_(folds), all_rows_(refits ? kAllRows : 0), epochs_(epochs) {}

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

/// Of one fold: the epochs that the trial was trained, and those that a training of its document
/// has besides.
double TrainingTimes::of_fit(std::int64_t trial, const Lengths& lengths) const {
  const StudyTrial& one = trials_[static_cast<std::size_t>(trial)];
  const double trained = one.seconds / static_cast<double>(folds_);
  const double of_epoch = one.epoch_times.next().value_or(
      one.timed_epochs > 0 ? trained / static_cast<double>(one.timed_epochs) : 0);
  return trained + further_epochs(one, lengths) * of_epoch;
}

double TrainingTimes::of_last(std::int64_t trial) const {
  return of_fit(trial, Lengths(trials_)) * (static_cast<double>(folds_) + all_rows_);
}

double TrainingTimes::of_member(std::int64_t trial) const {
  return of_fit(trial, Lengths(trials_)) * all_rows_;
}

std::function<double(std::int64_t)> TrainingTimes::ends(std::int64_t members, int workers) const {
  // The folds in turns, then all rows; members train wherever a worker is free.
  const auto at_once = static_cast<std::size_t>(workers);
  const std::size_t turns = (folds_ + at_once - 1) / at_once;
  const double longest = static_cast<double>(turns) + all_rows_;
  const double all = static_cast<double>(folds_) + all_rows_;
  Lengths lengths(trials_);
  const double all_members = of_members(members, lengths);
  return
      [this, longest, all, workers, all_members, lengths = std::move(lengths)](std::int64_t trial) {
        const double fit = of_fit(trial, lengths);
        return kReserve * std::max(fit * longest, (fit * all + all_members) / workers);
      };
}

/// How many epochs a training of its document has beside those whose time is known: as many as the
/// complete trials that have more than it has by now. Where there is none, it has all that the
/// document allows, and of trainings that stop early half as many again as were trained. Folds that
/// have ended have no more. After the last epoch, which is not reported, the model is
/// evaluated, which takes no more than another one.
double TrainingTimes::further_epochs(const StudyTrial& trial, const Lengths& lengths) const {
  const auto timed = static_cast<double>(trial.timed_epochs);
  const double trained = epochs_of(trial);
  if (is_complete(trial.now))
    return trained - timed;
  const double most = epochs_.most ? static_cast<double>(*epochs_.most) : HUGE_VAL;
  const double unknown = epochs_.most && !epochs_.may_stop_early ? most : kGrowth * trained;
  const std::optional<double> mean = lengths.mean_above(trained);
  const double all = std::max(trained, std::min(mean ? *mean + 1 : unknown, most));
  return trained - timed + open_folds(trial) * (all - trained) + 1;
}

/// Half as many trainings, as some are added more than once.
double TrainingTimes::of_members(std::int64_t members, const Lengths& lengths) const {
  std::vector<std::pair<double, double>> complete;  // value, seconds
  for (const StudyTrial& trial : trials_) {
    if (is_complete(trial.now)) {
      complete.emplace_back(trial.now.values.front(),
                            of_fit(trial.now.number, lengths) * all_rows_);
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
