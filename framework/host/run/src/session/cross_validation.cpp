#include "session/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <treadle/core/set_aside.h>

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
      epochs_(training.max_steps ? std::nullopt : training.epochs),
      folds_(plan_.folds.size()) {}

std::vector<std::string> CrossValidation::names() const {
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
  if (std::exchange(is_planned_, true))
    return orders;
  const std::vector<std::string> names = this->names();
  const auto count = static_cast<std::int64_t>(names.size());
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
  const bool selects_best = folds_.front().selects_best;
  if (!selects_best && epochs_)
    return *epochs_;
  double sum = 0;
  for (const FitResult& fold : folds_)
    sum += fold.result.at(selects_best ? "best_epoch" : "total_epochs").get<double>();
  return std::max<std::int64_t>(1, std::llround(sum / static_cast<double>(folds_.size())));
}

}  // namespace treadle::internal
