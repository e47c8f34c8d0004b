#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/validation/cross_validator.h>

#include "context/run_parts.h"
#include "evaluation/collected_predictions.h"
#include "evaluation/fitted_metrics.h"
#include "fit/fit_planner.h"
#include "model/prediction_pool.h"
#include "outputs/kept_predictions.h"
#include "search/study/study.h"

namespace treadle::internal {

/// A study whose run ends with an ensemble of its trials beside the best one.
///
/// Once all trials have ended, some of those whose results are kept (search.keep) are chosen by
/// their predictions for their validation rows (select_ensemble()); with folds these are all
/// rows, each predicted by a model that was not trained on it. How their predictions become one is
/// found from the same predictions. "members/7" is the model of trial 7, in the folder of its path:
/// the one that the trial has trained; with a refit, one that is trained on all rows.
/// `ensemble.json` names them with their weights.
///
/// It hands everything about other fits on to the study. Trials' predictions are read from their
/// records, whichever process they ended in, so a resumed run chooses the same members. Where a
/// search has a time budget, members that are not trained when it is used up are left out.
/// Predictions of an ensemble, or of one of its members, for the test rows.
struct TestedEnsemble {
  KeptPredictions predictions;   ///< for the test rows
  FittedMetrics fitted_metrics;  ///< from the training rows
};

class StudyEnsemble final : public FitPlanner {
 public:
  /// `plan` has no inner folds, and one model. Borrows both.
  StudyEnsemble(const RunParts& run, Study& study, EnsembleSettings settings, ValidationPlan plan);

  Orders next() override;
  bool begins(const FitId& fit) override;
  FitVerdict reported(const FitId& fit, const EpochSummary& epoch) override;
  void paused(const FitId& fit) override;
  void stopped(const FitId& fit) override;
  void completed(const FitId& fit, CompletedFit result) override;
  bool failed(const FitId& fit, const Error& error) override;

  // Once the plan has ended.
  /// Paths of the members' fits, in order.
  std::vector<std::string> names() const;
  /// Nothing where there is no member.
  std::optional<EnsembleResult> record() const;
  /// The pooled predictions of the members for the rows that chose them, each by models that were
  /// not trained on the row; weights that were fitted to these rows are fitted anew without it.
  /// Nothing where there is no member.
  const std::optional<KeptPredictions>& predictions() const { return predictions_; }
  /// The pooled predictions of the members for the test rows, which chose nothing; empty without
  /// members or test rows.
  std::optional<TestedEnsemble> tested() const;

 private:
  /// A trial that may be chosen.
  struct Candidate {
    std::int64_t number = 0;
    CollectedPredictions::Rows predicted;
    std::int64_t epochs = 0;  ///< that its folds were trained for, on average
  };
  struct Member {
    std::int64_t trial = 0;
    double share = 0;  ///< how often it was added, of all times
    std::int64_t epochs = 0;
    bool has_failed = false;
    std::optional<TestedEnsemble> tested = {};  ///< by it alone
  };

  void choose();
  bool comes_too_late(const FitId& member) const;
  void leave_out(const FitId& member);
  void leave_out_slow_ones();
  void weigh();
  void leave_out_those_without_weight();
  std::vector<const Member*> usable() const;
  Candidate candidate(std::int64_t number) const;
  PlannedFit planned(const Member& member) const;

  const RunParts& run_;
  Study& study_;
  const EnsembleSettings settings_;
  const ValidationPlan plan_;
  std::vector<Member> members_;
  bool is_chosen_ = false;
  std::optional<KeptPredictions> predictions_;
  PredictionPool pool_;  // of the usable ones, in their order
  EnsembleResult::Uncertainty uncertainty_;
  double score_ = 0;             // the objective of its predictions
  double loss_ = 0;              // the same, lower is better
  double least_loss_alone_ = 0;  // of the trials that could be chosen
};

}  // namespace treadle::internal
