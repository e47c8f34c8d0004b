#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include <treadle/search/tuner.h>

/// Which trials of a study are the best: the same whichever ended first.
namespace treadle::internal {

bool is_complete(const Trial& trial);

/// Smaller is better: of complete trials, by their constraints, then by the first objective. Of
/// equal ones the first is the best.
std::tuple<double, double, std::int64_t> rank_of(const Trial& trial);

/// The number of the best complete trial; nothing where there is none.
std::optional<std::int64_t> best_complete(const std::vector<Trial>& trials);

/// How many trials have ended, in whatever way, behind the newest best one: a complete trial, in
/// the order of numbers, than which none before it was as good (of several objectives: that none
/// dominated).
std::int64_t trials_since_best(const std::vector<Trial>& trials);

/// Of the paused trials that have come the furthest, the one with the best value.
std::optional<std::int64_t> best_paused(const std::vector<Trial>& trials);

/// The value by which a search that is not over would choose: lower is better. The first objective
/// of a complete trial, the newest value of one that may resume; nothing if it has none.
std::optional<double> newest_value(const Trial& trial);

/// Numbers of the complete trials that keep the constraints and that no other such one dominates.
std::vector<std::int64_t> pareto_front(const std::vector<Trial>& trials);

}  // namespace treadle::internal
