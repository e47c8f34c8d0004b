#include "purged_k_fold.h"

#include <algorithm>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/validation/leaks.h>
#include <treadle/core/validation/time_steps.h>

namespace treadle::validation {

PurgedKFold::PurgedKFold(const Config& config)
    : folds_(config.get_or("folds", std::int64_t{5})),
      gap_(config.get_or("gap", std::int64_t{0})),
      embargo_(find_size(config, "embargo")),
      refit_(config.get_or("refit", true)),
      test_(config, std::nullopt) {
  test_.expect_model(config, refit_);
}

PurgedKFold::~PurgedKFold() = default;

ValidationPlan PurgedKFold::do_plan(const SplitRequest& request) const {
  return purged(request, test_.plan(request, {SetAside::By::kTime},
                                    [&](const SplitRequest& rest) { return folds_of(rest); }));
}

ValidationPlan PurgedKFold::folds_of(const SplitRequest& request) const {
  const TimeSteps steps(request, TimeSteps::Axis::kRows);
  const std::int64_t count = steps.count();
  if (folds_ > count) {
    throw DataError("\"folds\": " + std::to_string(folds_) +
                    " requires at least as many time steps, got " + std::to_string(count));
  }
  const std::int64_t embargo = embargo_ ? embargo_->of(count) : 0;
  ValidationPlan plan;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < folds_; ++i) {
    const std::int64_t end = begin + count / folds_ + (i < count % folds_ ? 1 : 0);
    Fold fold;
    fold.name = "fold-" + std::to_string(i + 1);
    fold.validation = steps.beginning_in(begin, end);
    std::int64_t labels_end = end;
    for (const std::int64_t row : embargo > 0 ? fold.validation : RowList())
      labels_end = std::max(labels_end, steps.last(row) + 1);
    RowList::Builder training;
    training.add(steps.beginning_in(0, begin - gap_));
    training.add(
        steps.beginning_in(std::max(end + gap_, embargo > 0 ? labels_end + embargo : end), count));
    fold.training = training.done();
    if (fold.training.empty()) {
      throw DataError("\"gap\" and \"embargo\" leave no rows to train " + fold.name +
                      " on; take smaller ones, or fewer folds");
    }
    plan.folds.push_back(std::move(fold));
    begin = end;
  }
  if (refit_)
    plan.refit = refit_on(steps.beginning_in(0, count));
  return plan;
}

}  // namespace treadle::validation
