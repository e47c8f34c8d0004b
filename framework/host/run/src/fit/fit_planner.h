#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/core/components/fit_id.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/host/record/fit_result.h>
#include <treadle/host/run/model_drawing.h>

#include "components/document_components.h"
#include "fit/fit.h"

namespace treadle::internal {

/// State that a new fit takes over from another one, instead of random weights.
struct WarmStart {
  enum class From {
    kWeights,     ///< the weights it ended with; it must have completed, with keeps_weights
    kCheckpoint,  ///< its newest checkpoint, with optimizer, position and transforms
    /// Its model and its result, as they are: nothing is trained. It must have completed, with
    /// keeps_weights, before the new one is planned, and on the same rows.
    kModel
  };
  std::string fit;  ///< path
  From from = From::kWeights;
};

/// One fit of a plan.
struct PlannedFit {
  FitId id;
  std::shared_ptr<const FitRows> rows;
  /// Null: the run's. Another document may differ from it in all but its data.
  std::shared_ptr<const ResolvedWorkflow> workflow = nullptr;
  /// Paths of fits that complete before it begins.
  std::vector<std::string> depends_on = {};
  /// A refit of exactly so many epochs, called when it begins: its dependencies have completed.
  /// Null: as many as in the document.
  std::function<std::int64_t()> epochs = nullptr;
  std::optional<WarmStart> start = std::nullopt;
  /// Of a baseline: its pointer in the run's document, for messages. Its model may be without
  /// parameters and is then evaluated as it is; of other fits that is an error.
  std::string baseline = {};
  /// The training ends with the epoch in which this has passed, as one that stops early does.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  bool keeps_weights = false;  ///< others will start from them
  bool is_result = false;      ///< its model is the run's
  bool is_drawn = false;       ///< its model is the report's picture
  bool counts_cost = false;    ///< its result has the cost of a forward pass
  bool is_judged = false;      ///< the planner's answers to its reports are part of the bits
  /// Where in the run's folder its model is kept, to predict with: "members/7", "folds/1". Empty:
  /// nowhere.
  std::string model_folder = {};
};

/// The kept state of a completed fit.
struct CompletedFit {
  FitResult result;
  std::vector<Metric> report_metrics;  ///< so that folds can be put together
  /// See Fit::predict_for_outputs(); empty where there are no such rows.
  std::vector<Metric> for_outputs = {};
  FittedMetrics fitted_metrics = {};
  ModelDrawing drawing = {};  ///< of a fit that is drawn
};

/// The decision on a fit after an epoch.
enum class FitVerdict {
  kContinue,
  kPause,  ///< it saves a checkpoint and gives its slot back; it may go on later, with the same
           ///< bits
  kStop    ///< it ends here, without a result
};

/// Decides which fits a run makes: cross-validation, and whoever searches. One call at a time, but
/// for reported() of fits that are borrowed from another process.
///
/// Fits end in another order whenever a run is repeated. A planner's decisions must not depend on
/// that order, or two runs of one document differ.
///
/// **Resume.** A resumed run has a fresh planner. It receives the reports of before again: the
/// epochs of every fit up to its newest checkpoint, from the history, and its answers count, so
/// that a fit is paused where it was paused; and which fits have completed. A planner that decides
/// by these reports so gets to where it was, and needs no state.
class FitPlanner {
 public:
  struct Orders {
    std::vector<PlannedFit> start = {};
    std::vector<std::string> resume = {};  ///< paths of paused fits
    /// More will be ordered when FitRunner::wake() is called: the plan has not ended.
    bool waits = false;
  };

  virtual ~FitPlanner();

  /// The fits to run beside those that run or wait already; called at the beginning and whenever a
  /// fit has given its slot back. The plan ends when nothing runs and nothing more is ordered.
  virtual Orders next() = 0;
  /// A slot is free for a fit. False: it is not to be trained now, and is paused as it is.
  virtual bool begins(const FitId& fit);
  /// After each epoch but the last that its document plans: a row of its history. find_value()
  /// (history.h) has its numbers by name. A fit that has ended with this epoch by itself completes,
  /// whatever the answer is.
  virtual FitVerdict reported(const FitId& fit, const EpochSummary& epoch);
  virtual void paused(const FitId& fit);
  virtual void stopped(const FitId& fit);
  virtual void completed(const FitId& fit, CompletedFit result) = 0;
  /// A training that cannot be done, or a model that does not fit the data. True: the plan goes on
  /// without a result of this fit; by default the run fails. A resumed run tries it again.
  virtual bool failed(const FitId& fit, const Error& error);
};

}  // namespace treadle::internal
