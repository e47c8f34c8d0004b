#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/random.h>
#include <treadle/core/search_space.h>
#include <treadle/core/tuner.h>
#include <treadle/host/run/runtime.h>

#include "session/cross_validation.h"
#include "session/fit_planner.h"
#include "session/run_parts.h"

namespace treadle::internal {

/// The document's `search`.
struct SearchSettings {
  SearchSpace space;
  std::shared_ptr<const Tuner> tuner;
  std::string objective;      ///< "val_loss", or the name of a metric
  std::int64_t trials = 0;    ///< at most: a grid may have fewer points
  std::int64_t parallel = 1;  ///< how many trials a suggestion does not see the results of
};

/// Nothing where the document has no `search`. Throws a DocumentError for a space that is none, and
/// for values of it, at the ends of each range and each choice, that no document may have.
std::optional<SearchSettings> search_of(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// The document of a trial: the run's, with the values of a point and without its `search`.
ResolvedWorkflow trial_document(const Runtime& runtime, const ResolvedWorkflow& workflow,
                                const SearchSpace& space, const Point& point);

/// The fits of a search: trials "trials/0", or "trials/0/fold-1" where there are folds, and then
/// those of an ordinary run with the document of the best one, "final" among them: with the bits of
/// such a run.
///
/// Trial k is suggested once all trials <= k - parallel have ended, and sees their results alone,
/// whatever else has ended by then. So trials, and which is the best, are the same for any number
/// of workers and after any stop. Of equal trials the first is the best. A trial whose training
/// fails counts as failed and not as a failure of the run.
class Study final : public FitPlanner {
 public:
  /// `plan` has no inner folds, and validation rows. Borrows `run`, whose data is open.
  Study(const RunParts& run, SearchSettings settings, ValidationPlan plan);

  Orders next() override;
  void completed(const FitId& fit, FitResult result) override;
  bool failed(const FitId& fit, const std::string& why) override;

  // Once the plan has ended.
  const CrossValidation& best_run() const { return *best_run_; }
  const ResolvedWorkflow& best_document() const { return *best_document_; }
  /// Paths of all fits, in order.
  std::vector<std::string> names() const;
  /// For result.json.
  nlohmann::json record() const;

 private:
  struct Trial {
    Point point;
    TrialState state = TrialState::kRunning;
    double value = 0;                       ///< to be minimized
    std::string error;                      ///< of a failed one
    std::vector<std::string> names;         ///< of its fits
    std::unique_ptr<CrossValidation> fits;  ///< while it runs
    std::vector<PlannedFit> waiting;        ///< for the fold whose weights they begin with
    std::size_t open = 0;                   ///< fits that have not ended
  };

  bool is_settled(std::int64_t trial) const;
  bool suggest(Orders& orders);
  void begin(std::int64_t number, Orders& orders);
  void end(Trial& trial);
  void begin_best(Orders& orders);
  [[noreturn]] void refuse_objective(const std::string& why);
  double objective_of(const FitResult& fit);
  Trial& trial_of(const FitId& fit);

  const RunParts& run_;
  const SearchSettings settings_;
  const ValidationPlan plan_;
  const RandomStreams random_;
  std::vector<Trial> trials_;
  std::vector<PlannedFit> ready_;       // no longer waiting, for the next orders
  bool has_unknown_objective_ = false;  // an error of the run's document, and of no trial
  bool is_exhausted_ = false;           // the tuner has no more points
  double sign_ = 1;                     // -1: the objective is maximized
  std::int64_t best_ = -1;
  std::shared_ptr<const ResolvedWorkflow> best_document_;
  std::unique_ptr<CrossValidation> best_run_;
};

}  // namespace treadle::internal
