#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/compare/run_measures.h>
#include <treadle/host/compare/run_records.h>
#include <treadle/host/compare/significance.h>

namespace treadle::compare {

/// Runs of the same method, repeated: their documents are the same but for the name and the seed.
struct Method {
  std::string label;              ///< "method 2"; of a single run its folder
  std::vector<std::size_t> runs;  ///< indices
  /// Runs whose seed another one before them has. They repeat it and measure nothing new, so they
  /// are left out.
  std::vector<std::size_t> repeats;
  std::vector<nlohmann::json> settings;  ///< of MethodComparison::keys; null where it has none
  std::vector<Spread> spreads;           ///< of MethodComparison::numbers, over the runs
};

/// A number of two methods: by how much the first is above the second, and whether that is more
/// than chance.
struct PairComparison {
  std::size_t first = 0;
  std::size_t second = 0;
  enum class Design {
    kNone,     ///< too few runs for a test
    kSeeds,    ///< pairs of runs with one seed, on one split or on data of their own: paired t
    kSplits,   ///< the same splits of the same data (folds, or a split for each seed): corrected t
    kUnpaired  ///< runs with other seeds or other rows: Welch's t
  };
  Design design = Design::kNone;
  std::int64_t pairs = 0;               ///< of seeds or splits
  std::optional<DifferenceTest> test;   ///< nothing where it cannot be made
  std::optional<double> p_holm;         ///< test->p, corrected for all pairs of methods
  std::optional<SignedRankTest> ranks;  ///< of pairs of seeds

  /// Whether the difference is called one: p_holm is below kSignificance, and so the interval is
  /// without 0.
  bool is_significant() const { return p_holm && *p_holm < kSignificance; }
};

/// The verdict on a number of all methods that has a direction.
struct NumberVerdict {
  std::size_t number = 0;             ///< its index in MethodComparison::numbers
  std::vector<PairComparison> pairs;  ///< each two methods, in order
  std::size_t best = 0;               ///< the method with the best mean, the first of equal ones
  /// Methods whose difference from the best one is not significant, and itself. Unlike "within one
  /// point of each other" this depends on no order. The only one is the winner.
  std::vector<std::size_t> not_distinguishable;

  bool has_winner() const { return not_distinguishable.size() == 1; }
};

/// Methods side by side, in the order of their first runs.
struct MethodComparison {
  std::vector<MetricValue> numbers;  ///< "loss", then metrics, "time"; without values
  std::vector<std::string> keys;     ///< settings that are not the same in all methods
  std::vector<Method> methods;
  std::vector<NumberVerdict> verdicts;

  bool has_repeated_runs() const;
};

/// `measured` has one for each of `runs`. Without `losses_are_comparable` losses get no verdict.
MethodComparison compare_methods(const std::vector<RunRecord>& runs,
                                 const std::vector<MeasuredRun>& measured,
                                 bool losses_are_comparable);

}  // namespace treadle::compare
