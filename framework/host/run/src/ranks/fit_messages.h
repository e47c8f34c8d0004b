#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/base/epoch_summary.h>
#include <treadle/core/components/fit_id.h>
#include <treadle/core/history/run_observer.h>

#include "fit/fit_planner.h"

/// The messages between processes that divide the fits of a run, as JSON with bytes. Numbers keep
/// their bits.
namespace treadle::internal {

enum class FitMessage {
  // To rank 0.
  kSlots,   ///< how many fits this process trains at once
  kBegun,   ///< a fit has a slot
  kReport,  ///< an epoch of a fit, for the planner
  kEnded,   ///< a fit has given its slot back
  kFailed,  ///< the process can train no more
  kFiles,   ///< a checkpoint, a record or a member
  kEvent,   ///< for the observers of the run
  // From rank 0.
  kLend,     ///< a fit to train
  kVerdict,  ///< the planner's answer to a report
  kStop,     ///< ends a fit
  kOver      ///< the plan has ended
};

nlohmann::json message(FitMessage kind, nlohmann::json content);
FitMessage kind_of(const nlohmann::json& message);
inline bool is_of_lender(FitMessage kind) {
  return kind >= FitMessage::kLend;
}

nlohmann::json to_json(const FitId& id);
FitId fit_id_from(const nlohmann::json& json);

nlohmann::json to_json(const EpochSummary& epoch);
EpochSummary epoch_from(const nlohmann::json& json);

nlohmann::json to_json(const FitSummary& summary);
FitSummary fit_summary_from(const nlohmann::json& json);

/// Expects a fit whose epochs are known. A deadline is one of this process: that of the run's
/// model, which is trained where the plan is.
nlohmann::json to_json(const PlannedFit& fit);
/// `workflow_of` makes a document of its resolved JSON.
PlannedFit planned_fit_from(
    const nlohmann::json& json,
    const std::function<std::shared_ptr<const ResolvedWorkflow>(const nlohmann::json&)>&
        workflow_of);

nlohmann::json to_json(const std::exception& error);
nlohmann::json to_json(const std::exception_ptr& error);
/// An error of the same kind, with the same text.
std::exception_ptr error_from(const nlohmann::json& json);

}  // namespace treadle::internal
