#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/validation/cross_validator.h>

#include "fit/baselines.h"
#include "fit/fit_planner.h"

namespace treadle::internal {

/// The folds of a validation plan and, where it refits, "final" after them: one model of all rows,
/// with as many epochs as the folds' models had on average. With one fold and no refit that fold is
/// "final".
///
/// Each baseline is a group of as many fits as there are folds, of the same rows, after all others:
/// "baselines/repeat/fold-1", or "baselines/repeat" where there is one fold.
///
/// In a group, as the folds of a trial, they are below it: "trials/7/fold-1", or "trials/7" with
/// one fold. None of them is the run's result.
///
/// A fold with inner folds is a group of fits of the same kind: "outer-1/fold-1", …, and
/// "outer-1/final", which trains on all its training rows and is tested.
class CrossValidation final : public FitPlanner {
 public:
  /// Whether the models of the folds are kept beside the run's, "folds/1" and so on, and predict
  /// its test rows.
  enum class ModelsOfFolds { kLeft, kKept };

  /// `training` is what the document plans: the run's, or `workflow`. Those in a `group` are
  /// without inner folds, refit and baselines.
  CrossValidation(ValidationPlan plan, const TrainingPlan& training,
                  std::vector<Baseline> baselines = {}, std::optional<FitId> group = {},
                  std::shared_ptr<const ResolvedWorkflow> workflow = nullptr,
                  ModelsOfFolds models = ModelsOfFolds::kLeft);

  Orders next() override;
  void completed(const FitId& fit, CompletedFit result) override;

  /// The paths of its fits, in order.
  std::vector<std::string> names() const;
  /// Of those without a group.
  static bool is_baseline(const FitId& fit);
  /// The path of the fit that has a fold's result.
  std::string path_of(std::size_t fold) const;
  bool has_single_model() const { return plan_.refit || plan_.folds.size() == 1; }
  const ValidationPlan& plan() const { return plan_; }

  // Once all have completed.
  const std::vector<CompletedFit>& folds() const { return folds_; }
  /// The refit, or the first fold where there is none.
  const CompletedFit& chosen() const { return plan_.refit ? final_.front() : folds_.front(); }
  /// The results of the inner folds of a fold; empty where it has none.
  const std::vector<CompletedFit>& inner(std::size_t fold) const { return inner_[fold]; }
  const std::vector<Baseline>& baselines() const { return baselines_; }
  /// The results of a baseline, one for each fold.
  const std::vector<CompletedFit>& baseline(std::size_t index) const {
    return of_baselines_[index];
  }

 private:
  /// A place for the result of a fit.
  struct Slot {
    std::vector<CompletedFit>* results;
    std::size_t index;
  };

  bool is_single() const { return !plan_.refit && plan_.folds.size() == 1; }
  FitId id_of(std::size_t fold) const;
  PlannedFit planned(FitId id, const Fold& fold) const;
  void keep_model(std::size_t fold, PlannedFit& fit) const;
  void add_fold(std::size_t index, Orders& orders);
  void add_inner(std::size_t index, Orders& orders);
  void add_refit(Orders& orders);
  void add_baselines(Orders& orders);
  std::string baseline_path(std::size_t baseline, std::size_t fold) const;
  /// Of a training of all rows of some folds, after those.
  std::int64_t epochs_after(const std::vector<CompletedFit>& folds) const;

  ValidationPlan plan_;
  const std::optional<FitId> group_;
  const std::shared_ptr<const ResolvedWorkflow> workflow_;  // null: the run's
  /// Of the document; nothing: a refit has as many as the folds were trained.
  const std::optional<std::int64_t> epochs_;
  const ModelsOfFolds models_;
  bool is_planned_ = false;
  std::vector<CompletedFit> folds_;
  std::vector<std::vector<CompletedFit>> inner_;  // of each fold
  std::vector<CompletedFit> final_;               // one, or none
  const std::vector<Baseline> baselines_;
  std::vector<std::vector<CompletedFit>> of_baselines_;  // for each of them, of each fold
  std::map<std::string, Slot> slots_;                    // by path of a fit
};

}  // namespace treadle::internal
