#include "session/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <treadle/core/set_aside.h>

// The simplest planner: all fits are known at once, and nothing is decided while they run. It also
// has the default answers of FitPlanner, for planners that never pause.
//
// Numbers matter. The index of a fit gives its random streams and its place in the report, so a
// fold keeps its index whatever else is planned, and the refit comes after all folds. Results are
// stored by index, because fits complete in any order.

namespace treadle::internal {

FitPlanner::~FitPlanner() = default;
FitVerdict FitPlanner::reported(const FitId&, const EpochSummary&) {
  return FitVerdict::kContinue;
}
void FitPlanner::paused(const FitId&) {}
void FitPlanner::stopped(const FitId&) {}

CrossValidation::CrossValidation(ValidationPlan plan, std::int64_t rows,
                                 const TrainingPlan& training)
    : plan_(std::move(plan)),
      rows_(rows),
      // With a limit of steps the document's epochs are no fixed length: the folds show how many it
      // takes.
      epochs_(training.max_steps ? std::nullopt : training.epochs),
      folds_(plan_.folds.size()) {}

std::vector<std::string> CrossValidation::names() const {
  // A single training is always "final", so its files have the same names as those of a refit.
  if (!plan_.refit && plan_.folds.size() == 1)
    return {"final"};
  std::vector<std::string> names;
  for (const Fold& fold : plan_.folds)
    names.push_back(fold.name);
  if (plan_.refit)
    names.push_back("final");
  return names;
}

FitPlanner::Orders CrossValidation::next() {
  Orders orders;
  // Called again whenever a fit has ended; nothing is added.
  if (std::exchange(is_planned_, true))
    return orders;
  const std::vector<std::string> names = this->names();
  const auto count = static_cast<std::int64_t>(names.size());
  // Test rows measure one model, the run's: the refit, or the single fold.
  const bool is_single = !plan_.refit && plan_.folds.size() == 1;
  std::vector<std::string> folds;
  for (std::size_t i = 0; i < plan_.folds.size(); ++i) {
    folds.push_back(names[i]);
    PlannedFit fit{FitId(names[i], static_cast<std::int64_t>(i), count),
                   std::make_shared<const FitRows>(
                       FitRows{plan_.folds[i].training, plan_.folds[i].validation, 0,
                               is_single ? plan_.test : std::vector<std::int64_t>()})};
    fit.is_result = is_single;
    fit.is_drawn = !plan_.refit && i == 0;
    orders.start.push_back(std::move(fit));
  }
  if (plan_.refit) {
    PlannedFit fit{FitId("final", count - 1, count),
                   std::make_shared<const FitRows>(
                       FitRows{all_rows_but(rows_, plan_.test), {}, 0, plan_.test})};
    fit.depends_on = std::move(folds);
    // Asked for when the refit begins: it depends on all folds, which have completed by then.
    fit.epochs = [this] { return epochs_of_refit(); };
    fit.is_result = true;
    fit.is_drawn = true;
    orders.start.push_back(std::move(fit));
  }
  return orders;
}

void CrossValidation::completed(const FitId& fit, FitResult result) {
  const auto index = static_cast<std::size_t>(fit.index());
  if (index < folds_.size()) {
    folds_[index] = std::move(result);
  } else {
    final_ = std::move(result);
  }
}

std::int64_t CrossValidation::epochs_of_refit() const {
  const auto selects_best = [](const FitResult& fold) { return fold.selects_best; };
  if (epochs_ && std::none_of(folds_.begin(), folds_.end(), selects_best))
    return *epochs_;
  // The epochs whose weights each fold ended with: a fold that selected none has its last ones,
  // and a best epoch by its loss alone. Integers, so the sum is exact. The refit has no validation
  // rows to stop by.
  double sum = 0;
  for (const FitResult& fold : folds_)
    sum += fold.result.at(fold.selects_best ? "best_epoch" : "total_epochs").get<double>();
  return std::max<std::int64_t>(1, std::llround(sum / static_cast<double>(folds_.size())));
}

}  // namespace treadle::internal
