#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "context/run_parts.h"
#include "fit/cross_validation.h"
#include "search/settings/search_settings.h"
#include "search/study/objectives.h"
#include "search/study/study_trial.h"

namespace treadle::internal {

/// The fits of a search's trials: their names, documents and folds.
class TrialPlan {
 public:
  /// `plan` is the run's. Throws a DocumentError if trials cannot be compared by it. Borrows the
  /// others.
  TrialPlan(RunParts& run, const SearchSettings& settings, const Objectives& objectives,
            ValidationPlan plan);

  const ValidationPlan& validation() const { return plan_; }
  const Objectives& objectives() const { return objectives_; }
  /// The paths of a trial's fits, in order: "trials/7", or "trials/7/fold-1" and so on.
  std::vector<std::string> names_of(std::int64_t trial) const;
  /// The run's document with the values of this point.
  std::shared_ptr<const ResolvedWorkflow> document_of(const Point& point) const;
  /// Throws a DocumentError for values that are not possible together.
  TrialTraining training_of(const StudyTrial& trial) const;
  /// The last training, of this document: the fits of an ordinary run.
  std::unique_ptr<CrossValidation> best_run_of(
      const std::shared_ptr<const ResolvedWorkflow>& document) const;
  /// Whether all trials that copy the checkpoint of this one have it, in whichever process. Once
  /// this one resumes, its checkpoint is another one.
  bool copies_are_made(const StudyTrial& trial, const std::vector<StudyTrial>& trials) const;

 private:
  FitId id_of(std::int64_t trial) const;

  RunParts& run_;
  const SearchSettings& settings_;
  const Objectives& objectives_;
  const ValidationPlan plan_;
};

}  // namespace treadle::internal
