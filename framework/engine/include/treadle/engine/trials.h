#pragma once

#include <cstddef>
#include <functional>

namespace treadle::engine {

/// How many trials run at the same time.
struct TrialLimits {
  std::size_t at_once = 1;
  /// Whether one more fits beside those that run, who have said that they are settled. Null:
  /// always. Asked by one thread at a time, and not for a trial that would run alone.
  std::function<bool()> fits = nullptr;
};

using Settled = std::function<void()>;

/// Runs `trial(0, settled)` … `trial(count - 1, settled)` as a flow graph in the current
/// ThreadBudget. Folds and tuning trials are such jobs: each owns its model, streams and folder, so
/// nothing depends on how many run together.
///
/// A trial calls `settled()` when it has taken all the memory it will need, or leaves it; only then
/// may the next one start beside it. So `fits` knows what a trial takes before it lets in a second
/// one.
///
/// When trials throw, those not yet started are left out, those running finish, and the failure of
/// the lowest index is rethrown. Expects at_once >= 1; `fits` and `settled()` throw nothing.
void run_trials(std::size_t count, TrialLimits limits,
                const std::function<void(std::size_t, const Settled&)>& trial);

}  // namespace treadle::engine
