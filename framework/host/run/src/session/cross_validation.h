#pragma once

#include <optional>
#include <string>
#include <vector>

#include <treadle/core/cross_validator.h>

#include "session/fit_planner.h"

namespace treadle::internal {

/// The folds of a validation plan and, where it refits, "final" after them: one model of all rows,
/// with as many epochs as the folds' models had on average. With one fold and no refit that fold is
/// "final".
class CrossValidation final : public FitPlanner {
 public:
  /// `training` is what the document plans.
  CrossValidation(ValidationPlan plan, std::int64_t rows, const TrainingPlan& training);

  Orders next() override;
  void completed(const FitId& fit, FitResult result) override;

  /// The paths of its fits, in order.
  std::vector<std::string> names() const;
  bool has_single_model() const { return plan_.refit || plan_.folds.size() == 1; }

  // Once all have completed.
  const std::vector<FitResult>& folds() const { return folds_; }
  /// The refit, or the first fold where there is none.
  const FitResult& chosen() const { return final_ ? *final_ : folds_.front(); }

 private:
  std::int64_t epochs_of_refit() const;

  ValidationPlan plan_;
  const std::int64_t rows_;
  /// Of the document; nothing: a refit has as many as the folds were trained.
  const std::optional<std::int64_t> epochs_;
  bool is_planned_ = false;
  std::vector<FitResult> folds_;
  std::optional<FitResult> final_;
};

}  // namespace treadle::internal
