#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <treadle/search/trial_order.h>
#include <treadle/search/tuner.h>

/// How tuners compare trials: feasible before infeasible, complete before those that have come a
/// part of the way; several objectives by domination.
namespace treadle::tuners {

/// Whether a trial is complete and each of its values is a number, which may be infinite. Trials
/// that are complete without such values count as failed.
bool has_values(const Trial& trial);

/// Whether a tuner may use the trial: complete with values, pruned or paused, or going on after a
/// pause.
bool is_finished(const Trial& trial);

/// Indices of the finished trials with one objective, the best first: feasible complete ones by
/// value, then other feasible ones by (-last step, value), then infeasible ones by violation.
/// Equal trials are in the order of their numbers. Trials behind the first `count` are in any
/// order.
std::vector<std::size_t> ranked(std::span<const Trial> trials,
                                std::size_t count = static_cast<std::size_t>(-1));

using Objectives = std::vector<double>;

/// The rank of non-domination of each point: 0 for those that none dominates, 1 for those that only
/// points of rank 0 dominate, and so on (K. Deb et al., "A fast and elitist multiobjective genetic
/// algorithm: NSGA-II", 2002, section III A).
std::vector<std::size_t> domination_ranks(std::span<const Objectives> points);

/// The volume that `points` dominate below `reference`; points beyond it count nothing. Exact:
/// a sweep for two objectives, and the exclusive volumes of L. While et al. ("A fast way of
/// calculating exact hypervolumes", 2012) for more.
double hypervolume(std::vector<Objectives> points, const Objectives& reference);

/// `count` of `points`, chosen one by one so that each adds the most hypervolume (greedy subset
/// selection, A. Guerreiro et al., 2016). Indices, ascending.
std::vector<std::size_t> largest_hypervolume(std::span<const Objectives> points, std::size_t count,
                                             const Objectives& reference);

}  // namespace treadle::tuners
