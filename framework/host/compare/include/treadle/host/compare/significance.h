#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// Statistics of measured numbers: spreads, intervals and tests of differences.
///
/// Every test is two-sided: its p is the probability of a difference at least as large if there
/// were none. Functions without state: any thread. They expect finite numbers.
namespace treadle::compare {

/// Ends of a 95 % confidence interval.
using Interval = std::pair<double, double>;

/// The significance level of every statement: p below it, or an interval without 0.
inline constexpr double kSignificance = 0.05;

/// Of repeated measurements.
struct Spread {
  std::int64_t n = 0;
  double mean = 0;                  ///< NaN of none
  std::optional<double> deviation;  ///< of the sample, divided by n - 1; nothing below two
  /// Of the mean: mean ± t(0.975, n - 1) deviation / sqrt(n), Student's t, which takes the
  /// measurements as independent and normally distributed.
  std::optional<Interval> interval;
};
Spread spread_of(std::span<const double> values);

/// A t test of a mean difference.
struct DifferenceTest {
  double difference = 0;
  Interval interval;
  double t = 0;
  double degrees_of_freedom = 0;
  double p = 1;
};

// Nothing below two measurements, and where the differences are all the same but not 0: without
// spread nothing measures them, and two equal differences would be called certain.

/// Student's t test of differences between pairs of measurements: t = mean / (s / sqrt(n)), n - 1
/// degrees of freedom.
std::optional<DifferenceTest> paired_t(std::span<const double> differences);

/// Nadeau and Bengio's corrected resampled t test (Inference for the Generalization Error, Machine
/// Learning 52, 2003). For differences on several splits of the same data, whose training rows
/// overlap: t = mean / (s sqrt(1/n + test_share)), n - 1 degrees of freedom, where `test_share` is
/// the number of evaluated rows over that of training rows. Without the correction, the test calls
/// far too many differences significant.
std::optional<DifferenceTest> corrected_resampled_t(std::span<const double> differences,
                                                    double test_share);

/// Welch's t test of two independent samples, whose variances may differ: mean(a) - mean(b).
std::optional<DifferenceTest> welch_t(std::span<const double> a, std::span<const double> b);

/// Wilcoxon's signed-rank test of differences between pairs.
struct SignedRankTest {
  std::int64_t n = 0;    ///< differences that are not 0: the others are left out (Wilcoxon 1945)
  double statistic = 0;  ///< the smaller sum of ranks; equal magnitudes share their mean rank
  double p = 1;
};
/// Exact up to 50 differences, ties included: all 2^n signs are counted. Beyond that the normal
/// approximation, corrected for ties. Nothing where all are 0.
std::optional<SignedRankTest> wilcoxon_signed_rank(std::span<const double> differences);

/// McNemar's exact test of two classifiers on the same rows, by the rows that only one of them has
/// right: p = min(1, 2 P(X <= min(only_a, only_b))), X ~ Binomial(only_a + only_b, 1/2).
double mcnemar_exact(std::int64_t only_a, std::int64_t only_b);

/// Of the mean of `differences`: the percentile bootstrap with 2000 draws; from 10 000 differences
/// on mean ± 1.96 s / sqrt(n), which is the same by then. The same seed gives the same interval.
/// Nothing below two differences.
std::optional<Interval> bootstrap_interval(std::span<const double> differences, std::uint64_t seed);

/// Holm's step-down correction of p values that are looked at together (Holm 1979): the chance of
/// any false rejection stays below the level. In the order given.
std::vector<double> holm(std::span<const double> p);

}  // namespace treadle::compare
