#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <treadle/search/search_space.h>

namespace treadle::report {

/// Importances of the dimensions of a search; see ped_anova().
struct Importances {
  std::vector<double> shares;  ///< by dimension; they add up to 1, or are all 0 where nothing sets
                               ///< the best trials apart
  std::size_t trials = 0;      ///< the trials that were looked at
  std::size_t best = 0;        ///< of these, the ones that count as best
};

/// The importance of each dimension for being among the best tenth of the trials: PED-ANOVA
/// (Watanabe et al. 2023, "PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in
/// Arbitrary Subspaces", arXiv:2304.10255), with the settings of Optuna 5's default evaluator.
///
/// With p the distribution of a dimension's values over all trials, and q over the best ones, the
/// importance is the Pearson divergence of the two on a grid of the values,
///
///     D(q || p) = sum_x p(x) (q(x) / p(x) - 1)^2,
///
/// which is, up to a factor that all dimensions share, the variance of the probability to be among
/// the best, given x. A conditional dimension has it for the trials in which it is active:
///
///     (share of the best that have it)^2 / (share of all that have it) * D(q || p),
///
/// as condPED-ANOVA has it (Baba et al. 2026, arXiv:2601.20800, one regime for each condition), so
/// that the importance of being active stays with the choice that decides about it. For a dimension
/// that is always active the factor is 1.
///
/// - The best: the ceil(n / 10) trials with the smallest values, at least 2, and all that are equal
///   to the last of them.
/// - The grid: a logarithmic range by its logarithm; 50 points, or fewer where the dimension has
///   fewer steps; ceil(log2(high - low + 1)) + 1 for logarithmic integers.
/// - The distributions: Parzen estimators, a discrete truncated normal per grid point that has
///   trials, with the bandwidth of Scott's rule, and a prior of the weight of one trial.
///
/// `values` has one number per point; smaller is better, and only their order counts. Trials whose
/// value is not finite are left out. With two trials or fewer, and where all are among the best,
/// every importance is 0.
Importances ped_anova(const SearchSpace& space, std::span<const Point> points,
                      std::span<const double> values);

}  // namespace treadle::report
