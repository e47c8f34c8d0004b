#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/engine/fits.h>

#include "fit/fit_planner.h"

namespace treadle::internal {

class FitRunner;

/// Has the fits of a plan trained elsewhere, for a FitRunner that trains none itself: the runner
/// prepares a fit, lends it, and takes it back with its result.
///
/// Borrowers receive what a fit needs, and send its checkpoints and its record to the run's folder.
/// They report its epochs to FitRunner::reported_elsewhere(). Called by the runner, one call at a
/// time but for stop().
class FitLender {
 public:
  struct Loan {
    PlannedFit fit;                    ///< what it depends on has completed; it has no `epochs`
    std::int64_t epochs_reported = 0;  ///< to the planner
  };
  struct News {
    std::vector<std::string> returned = {};  ///< paths of fits to take back
    bool has_more_room = false;
  };

  virtual ~FitLender();

  /// From now on this runner receives the epochs of fits, and is woken when there is news. Null:
  /// nobody.
  virtual void serve(FitRunner* runner) = 0;
  /// Whether a borrower is free for this fit.
  virtual bool has_room(const PlannedFit& fit) const = 0;
  /// Expects has_room().
  virtual void lend(const Loan& loan) = 0;
  /// Since the last call. Throws once no fit comes back any more, for the reason.
  virtual News news() = 0;
  /// Expects a fit that has returned. Of a completed one the record is in the run's folder; throws
  /// its failure.
  virtual engine::FitEnd take_back(const std::string& fit) = 0;
  /// Ends a fit that is lent; it saves a checkpoint. Any thread.
  virtual void stop(const std::string& fit) = 0;
};

}  // namespace treadle::internal
