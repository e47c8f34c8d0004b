#pragma once

#include <cstddef>
#include <functional>

namespace treadle::engine {

/// Runs `trial(0)` … `trial(count - 1)`, at most `at_once` of them at the same time, as a flow graph in the current
/// ThreadBudget. Folds and tuning trials are such jobs: each owns its model, streams and folder, so
/// nothing depends on how many run together.
///
/// When trials throw, those not yet started are left out, those running finish, and the failure of the lowest index is
/// rethrown. Expects at_once >= 1.
void run_trials(std::size_t count, std::size_t at_once,
                const std::function<void(std::size_t)>& trial);

}  // namespace treadle::engine
