#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/host/run/report.h>
#include <treadle/search/search_space.h>

namespace treadle::report {

/// The search of a run as its report needs it: its trials as points of the space, their order and
/// their curves. Borrows the result.
struct SearchRecord {
  /// A value at each of some epochs, in their order; NaN where there is none.
  struct Curve {
    std::vector<double> epochs;
    std::vector<double> values;
  };

  struct Trial {
    const SearchResult::Trial* result = nullptr;
    std::optional<Point> point;  ///< in the space; nothing where the values do not fit it
    std::vector<double> values;  ///< of a complete trial, by objective; NaN where it has none
    double violation = 0;        ///< the sum of the constraints that do not hold; 0: feasible
    Curve intermediate;          ///< of the first objective, as the pruner saw it

    bool is_complete() const { return result->state == "complete"; }
    bool is_feasible() const noexcept { return violation == 0; }
  };

  const SearchResult* result = nullptr;
  std::vector<Trial> trials;
  std::optional<SearchSpace> space;
  std::optional<std::size_t> best;  ///< index of the trial that the run's model was trained by
  std::vector<std::size_t> pareto;  ///< indices of the trials that no other one dominates
  bool has_constraints = false;

  const std::vector<SearchResult::Objective>& objectives() const { return result->objectives; }
  /// The value of a trial, to be minimized; NaN where it has none.
  double loss(std::size_t trial, std::size_t objective) const;
};

SearchRecord read_search(const SearchResult& result);

/// The trials, the best first: complete ones that are feasible by their value (of several
/// objectives those of the Pareto front first, then by their number), complete ones by how far they
/// are from feasible, then paused and pruned ones by how far they came, then the others.
std::vector<std::size_t> best_first(const SearchRecord& search);

/// The values of an objective by epoch, for each trial; empty where nothing is known.
///
/// For the first objective these are a trial's intermediate values, if it has any: the values
/// that the pruner compared, so that the picture explains its decisions. Otherwise they are read
/// from the history of the trial's fits: the mean over its folds, for the epochs that each of them
/// has. Of a complete trial, a fold that ended before the others keeps its last value.
std::vector<SearchRecord::Curve> trial_curves(const SearchRecord& search, const ReportInput& input,
                                              std::size_t objective);

}  // namespace treadle::report
