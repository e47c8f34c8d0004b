#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/search/pruner.h>

/// Successive halving: trials are compared at rungs, which are numbers of epochs, pause there, and
/// only the best go on (K. Jamieson & A. Talwalkar, "Non-stochastic best arm identification and
/// hyperparameter optimization", 2016).
namespace treadle::pruners {

/// Ascending.
using Rungs = std::vector<std::int64_t>;

/// `min_resource`, and each `reduction_factor` times the one before, the first
/// `min_early_stopping_rate` of them left out. Ends behind any training's length. Throws a
/// DocumentError where none is left.
Rungs geometric_rungs(const Config& config);

/// The first rung behind `after`; nothing behind the last one.
std::optional<std::int64_t> next_rung(const Rungs& rungs, std::int64_t after);

/// For a study that can start no trial, and no rule has one to promote: waits for what runs. When
/// nothing runs and nothing is complete, goes on with the paused trial that has come furthest, of
/// several with the best, so that a study ends with a complete trial.
NextJob wait_or_complete_one(const StudyView& study);

}  // namespace treadle::pruners
