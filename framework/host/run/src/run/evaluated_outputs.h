#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <treadle/host/record/run_result.h>

#include "context/run_parts.h"
#include "fit/cross_validation.h"
#include "outputs/kept_predictions.h"
#include "outputs/output_stages.h"

namespace treadle::internal {

/// The output stages of a run whose fits have completed: fitted, and evaluated on rows that
/// they have not learned from.
///
/// The stages of the run's model learn from the predictions for the validation rows of all folds,
/// each by a model that was not trained on them. A fold is evaluated with stages of its own,
/// which learn from the other folds; where folds follow one another in time, from those before it
/// alone. With one split they learn from training rows that were set aside, and are evaluated on
/// the rows that measure the model.
///
/// Stages that predict with the models of folds are evaluated on test rows alone: each row of a
/// fold was trained on by the models of all others.
class EvaluatedOutputs {
 public:
  /// A fit as it is with outputs.
  struct Fit {
    FitResult result;
    std::vector<Metric> report_metrics;
  };
  /// Predictions as the model's stages leave them, and how good they are.
  struct Evaluated {
    KeptPredictions predictions;
    EvaluationResult result;  ///< without a loss
    std::vector<Metric> report_metrics;
  };

  /// Of a document without outputs: nothing is changed. `workflow`: the one that the run's model
  /// was made by. `of_ensemble`: predictions of the members that predict in its place, which its
  /// stages then learn from; may be null. Throws the DataError of a stage that cannot learn.
  EvaluatedOutputs(const RunParts& run, const ResolvedWorkflow& workflow,
                   const CrossValidation& plan, const KeptPredictions* of_ensemble);

  /// Of the run's model.
  const OutputStages& stages() const { return stages_; }
  /// Nothing: its result is as it was.
  const Fit* fold(std::size_t index) const { return folds_[index] ? &*folds_[index] : nullptr; }
  /// Likewise of the training that the run's model is from, where that is no fold.
  const Fit* refit() const { return refit_ ? &*refit_ : nullptr; }
  std::optional<OutputsResult> record() const { return record_; }

  /// Of other rows that the stages have not learned from; also without outputs.
  /// `fitted`: of the model's training rows.
  Evaluated evaluate(const KeptPredictions& kept, const FittedMetrics& fitted) const;

 private:
  OutputStages learned_from(const KeptPredictions& kept) const;
  /// `folds`: those whose models predict with the fit's; may be empty.
  Fit with_stages(const CompletedFit& fit, const OutputStages& stages,
                  std::span<const CompletedFit> folds = {}) const;
  Evaluated evaluate(const KeptPredictions& kept, const FittedMetrics& fitted,
                     const OutputStages& stages) const;
  void note_effect(const std::vector<CompletedFit>& folds);

  const RunParts& run_;
  const ResolvedWorkflow& workflow_;
  OutputStages stages_;
  std::vector<std::optional<Fit>> folds_;
  std::optional<Fit> refit_;
  std::optional<OutputsResult> record_;
};

}  // namespace treadle::internal
