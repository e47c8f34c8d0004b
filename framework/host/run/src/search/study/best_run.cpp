#include "search/study/best_run.h"

#include <algorithm>
#include <utility>

#include <treadle/search/trial_order.h>

#include "search/study/best_trials.h"

namespace treadle::internal {
namespace {

/// After so many failures in a row, the training is at fault rather than the trials.
constexpr std::size_t kMostLastTrainings = 3;

}  // namespace

BestRun::BestRun(StudyJournal& journal, std::vector<Trial> trials,
                 std::optional<std::int64_t> chosen)
    : journal_(journal), trials_(std::move(trials)), chosen_(chosen) {}

bool BestRun::has_failed(std::int64_t trial) const {
  const std::vector<std::int64_t>& failed = journal_.failed_last_trainings();
  return std::find(failed.begin(), failed.end(), trial) != failed.end();
}

std::optional<std::int64_t> BestRun::choose() const {
  if (chosen_ && *chosen_ < static_cast<std::int64_t>(trials_.size()) && !has_failed(*chosen_))
    return chosen_;
  std::vector<Trial> left = trials_;
  std::erase_if(left, [&](const Trial& trial) { return has_failed(trial.number); });
  const std::optional<std::int64_t> complete = best_complete(left);
  return complete ? complete : best_paused(left);
}

FitPlanner::Orders BestRun::begin(std::int64_t trial,
                                  std::shared_ptr<const ResolvedWorkflow> document,
                                  std::unique_ptr<CrossValidation> fits,
                                  std::optional<std::chrono::steady_clock::time_point> deadline) {
  trial_ = trial;
  document_ = std::move(document);
  fits_ = std::move(fits);
  FitPlanner::Orders orders = fits_->next();
  for (PlannedFit& fit : orders.start) {
    if (fit.is_result)
      fit.deadline = deadline;
  }
  return orders;
}

std::string BestRun::failed(const FitId& fit, const Error& error) {
  const bool is_of_trial =
      !CrossValidation::is_baseline(fit) && dynamic_cast<const TrainingError*>(&error) != nullptr;
  if (!is_of_trial || has_next_best_)
    return "";
  journal_.last_training_failed(trial_);
  const std::optional<std::int64_t> next = choose();
  has_next_best_ = next && journal_.failed_last_trainings().size() < kMostLastTrainings;
  return "search: the last training of trial " + std::to_string(trial_) +
         " failed: " + error.what() +
         (has_next_best_ ? "; that of trial " + std::to_string(*next) + ", the next best, begins"
                         : std::string());
}

std::vector<std::int64_t> BestRun::candidates(std::vector<std::int64_t> kept) const {
  const bool some_satisfy = violation(trials_[static_cast<std::size_t>(trial_)]) <= 0;
  std::erase_if(kept, [&](std::int64_t number) {
    const auto index = static_cast<std::size_t>(number);
    return index >= trials_.size() || !is_complete(trials_[index]) ||
           (some_satisfy && violation(trials_[index]) > 0);
  });
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace treadle::internal
