#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/run/report.h>
#include <treadle/search/search_space.h>

namespace treadle::report {

/// The search of a run as its report needs it: read from `search` of result.json, see
/// docs/guide/results.md. Lenient: a key that is absent or of another type is as if it had no
/// value, so that the report of an odd record lacks a section instead of failing.
struct SearchRecord {
  struct Objective {
    std::string name;
    bool maximizes = false;
  };

  /// A value at each of some epochs, in their order; NaN where there is none.
  struct Curve {
    std::vector<double> epochs;
    std::vector<double> values;
  };

  struct Trial {
    nlohmann::json written;  ///< as in result.json
    std::int64_t number = 0;
    std::string state;           ///< "complete", "pruned", "paused", "failed", "cancelled"
    std::optional<Point> point;  ///< in the space; nothing where the values do not fit it
    std::vector<double> values;  ///< of a complete trial, by objective; NaN where it has none
    double violation = 0;        ///< the sum of the constraints that do not hold; 0: feasible
    Curve intermediate;          ///< of the first objective, as the pruner saw it

    bool is_complete() const { return state == "complete"; }
    bool is_feasible() const noexcept { return violation == 0; }
  };

  std::vector<Objective> objectives;
  std::vector<Trial> trials;
  std::optional<SearchSpace> space;
  std::optional<std::size_t> best;  ///< index of the trial that the run's model was trained by
  std::vector<std::size_t> pareto;  ///< indices of the trials that no other one dominates
  bool has_constraints = false;
  nlohmann::json written;  ///< as in result.json

  /// The value of a trial, to be minimized; NaN where it has none.
  double loss(std::size_t trial, std::size_t objective) const;
};

/// Nothing where the run was no search.
std::optional<SearchRecord> read_search(const nlohmann::json& result);

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
