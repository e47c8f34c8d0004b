#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace treadle::engine {

/// How many fits run at the same time.
struct FitLimits {
  std::size_t at_once = 1;
  /// Whether there is memory for one more fit beside the running ones, all of which are settled.
  /// Null: always. Called by one thread at a time, and not for a fit that would run alone.
  std::function<bool()> fits = nullptr;
};

/// A fit as its scheduling sees it.
struct FitJob {
  std::string path;  ///< its name; see FitId::path()
  /// It begins when these have completed.
  std::vector<std::string> depends_on = {};
  /// It begins with a copy of the checkpoint of this one, if any: when that has completed, stopped
  /// or paused, and that does not go on before the copy is made (this one has settled or ended).
  std::string copies = {};
};

/// The next orders of a plan.
struct FitOrders {
  std::vector<FitJob> start = {};        ///< new ones
  std::vector<std::string> resume = {};  ///< those that are to go on, paused or about to be
  /// More may be asked for without a fit of this process having ended: the plan goes on although
  /// nothing runs, until it is asked again and this is false.
  bool waits = false;
};

/// Has a plan asked again from outside, as by another process.
class FitWaker {
 public:
  FitWaker();
  ~FitWaker();
  FitWaker(const FitWaker&) = delete;
  FitWaker& operator=(const FitWaker&) = delete;

  /// FitSchedule::next() is called soon, on a thread of the plan. Nothing unless a plan waits. Any
  /// thread.
  void wake();

 private:
  friend class WakerLink;
  std::mutex mutex_;
  std::function<void()> wake_;
};

/// How a fit gave its slot back.
enum class FitEnd { kCompleted, kPaused, kStopped };

using Settled = std::function<void()>;

/// A plan of fits, which may grow while it runs.
class FitSchedule {
 public:
  virtual ~FitSchedule();

  /// Fits to run beside those that run and wait. Called at the beginning and after every fit
  /// that has given its slot back, by one thread at a time.
  virtual FitOrders next() = 0;

  /// Runs a fit, or goes on with a paused one. Several at once.
  ///
  /// Calls `settled()` when the fit has taken all the memory it will need, or returns; only then
  /// may the next one start beside it. So FitLimits::fits can measure a fit before it admits a
  /// second one.
  virtual FitEnd run(const std::string& path, const Settled& settled) = 0;
};

/// Runs all fits of a plan as a flow graph in the current ThreadBudget: folds, refits, tuning
/// trials. Each owns its model, streams and folder, so nothing depends on how many run together.
/// Those that may begin do so in the order in which they were planned.
///
/// Returns when nothing runs and next() has no more, nor waits for more; paused fits are then left
/// as they are. A plan that waits needs a `waker`. When
/// fits throw, those not yet started are left out, those running finish, and the failure of the one
/// planned first is rethrown. A TrainingError names a fit that could not begin, as one it depends
/// on was stopped or left paused.
///
/// Throws ContractViolation for orders that make no sense: a name used twice, a dependency that
/// was never planned, a cycle (as a path of names), a fit to resume that is not paused. Expects
/// at_once >= 1; `fits` and `settled()` throw nothing.
void run_fits(FitSchedule& schedule, FitLimits limits, FitWaker* waker = nullptr);

}  // namespace treadle::engine
