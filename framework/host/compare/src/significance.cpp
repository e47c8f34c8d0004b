#include <treadle/host/compare/significance.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace treadle::compare {
namespace {

constexpr double kUpperTail = 1 - kSignificance / 2;

struct Moments {
  double n = 0;
  double mean = 0;
  double deviation = 0;  // of the sample; 0 below two

  /// Whether the values are the same but for rounding.
  bool has_no_spread() const {
    constexpr double kRounding = 1e-12;
    return deviation <= kRounding * std::abs(mean);
  }
};

Moments moments_of(std::span<const double> values) {
  Moments moments;
  moments.n = static_cast<double>(values.size());
  moments.mean = std::accumulate(values.begin(), values.end(), 0.0) / moments.n;
  double squares = 0;
  for (const double value : values)
    squares += (value - moments.mean) * (value - moments.mean);
  if (values.size() > 1)
    moments.deviation = std::sqrt(squares / (moments.n - 1));
  return moments;
}

Interval interval_around(double mean, double error, double degrees_of_freedom) {
  const double half =
      boost::math::quantile(boost::math::students_t(degrees_of_freedom), kUpperTail) * error;
  return {mean - half, mean + half};
}

/// `error`: the standard error of the difference. Above 0.
DifferenceTest t_test(double difference, double error, double degrees_of_freedom) {
  DifferenceTest test;
  test.difference = difference;
  test.degrees_of_freedom = degrees_of_freedom;
  test.interval = interval_around(difference, error, degrees_of_freedom);
  test.t = difference / error;
  const boost::math::students_t distribution(degrees_of_freedom);
  test.p = 2 * boost::math::cdf(boost::math::complement(distribution, std::abs(test.t)));
  return test;
}

/// Of equal measurements: no difference, and no evidence of one.
DifferenceTest no_difference(double degrees_of_freedom) {
  DifferenceTest test;
  test.degrees_of_freedom = degrees_of_freedom;
  return test;
}

/// The variance of the mean is that of a difference times `share`.
std::optional<DifferenceTest> one_sample_t(std::span<const double> differences, double share) {
  if (differences.size() < 2)
    return std::nullopt;
  const Moments moments = moments_of(differences);
  if (!moments.has_no_spread())
    return t_test(moments.mean, moments.deviation * std::sqrt(share), moments.n - 1);
  return moments.mean == 0 ? std::optional(no_difference(moments.n - 1)) : std::nullopt;
}

/// Twice the rank of each magnitude, so that mean ranks of ties are whole numbers.
struct Ranks {
  std::vector<std::int64_t> doubled;  // in the order of the differences
  double ties = 0;                    // the sum of t³ - t over groups of t equal magnitudes
};

Ranks ranks_of(std::span<const double> differences) {
  std::vector<std::size_t> order(differences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size_of = [&](std::size_t i) { return std::abs(differences[i]); };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return size_of(a) < size_of(b); });
  Ranks ranks;
  ranks.doubled.resize(differences.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && size_of(order[end]) == size_of(order[begin]))
      ++end;
    // Ranks begin + 1, …, end.
    for (std::size_t i = begin; i < end; ++i)
      ranks.doubled[order[i]] = static_cast<std::int64_t>(begin + 1 + end);
    const auto equal = static_cast<double>(end - begin);
    ranks.ties += equal * equal * equal - equal;
    begin = end;
  }
  return ranks;
}

/// P(sum of the ranks with a positive sign <= limit), each sign as likely as the other.
double share_of_signs(const std::vector<std::int64_t>& ranks, std::int64_t limit) {
  // ways[s]: the share of signs so far whose sum is s.
  std::vector<double> ways(static_cast<std::size_t>(limit) + 1);
  ways[0] = 1;
  for (const std::int64_t rank : ranks) {
    const auto step = static_cast<std::size_t>(rank);
    for (std::size_t sum = ways.size(); sum-- > 0;)
      ways[sum] = (ways[sum] + (sum >= step ? ways[sum - step] : 0)) / 2;
  }
  return std::accumulate(ways.begin(), ways.end(), 0.0);
}

/// Uniform in [0, count), the same with every standard library.
std::size_t draw_below(std::size_t count, std::mt19937_64& random) {
  constexpr double kUnit = 0x1p-53;
  constexpr int kSpareBits = 11;
  const double uniform = static_cast<double>(random() >> kSpareBits) * kUnit;
  return static_cast<std::size_t>(uniform * static_cast<double>(count));
}

}  // namespace

Spread spread_of(std::span<const double> values) {
  Spread spread;
  spread.n = static_cast<std::int64_t>(values.size());
  spread.mean = std::numeric_limits<double>::quiet_NaN();
  if (values.empty())
    return spread;
  const Moments moments = moments_of(values);
  spread.mean = moments.mean;
  if (values.size() < 2)
    return spread;
  spread.deviation = moments.deviation;
  spread.interval =
      interval_around(moments.mean, moments.deviation / std::sqrt(moments.n), moments.n - 1);
  return spread;
}

std::optional<DifferenceTest> paired_t(std::span<const double> differences) {
  return one_sample_t(differences, 1 / static_cast<double>(differences.size()));
}

std::optional<DifferenceTest> corrected_resampled_t(std::span<const double> differences,
                                                    double test_share) {
  return one_sample_t(differences, 1 / static_cast<double>(differences.size()) + test_share);
}

std::optional<DifferenceTest> welch_t(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2)
    return std::nullopt;
  const Moments of_a = moments_of(a);
  const Moments of_b = moments_of(b);
  const double difference = of_a.mean - of_b.mean;
  const double variance_a = of_a.deviation * of_a.deviation / of_a.n;
  const double variance_b = of_b.deviation * of_b.deviation / of_b.n;
  const double variance = variance_a + variance_b;
  if (of_a.has_no_spread() && of_b.has_no_spread()) {
    return difference == 0 ? std::optional(no_difference(of_a.n + of_b.n - 2)) : std::nullopt;
  }
  // Welch and Satterthwaite.
  const double degrees_of_freedom =
      variance * variance /
      (variance_a * variance_a / (of_a.n - 1) + variance_b * variance_b / (of_b.n - 1));
  return t_test(difference, std::sqrt(variance), degrees_of_freedom);
}

std::optional<SignedRankTest> wilcoxon_signed_rank(std::span<const double> differences) {
  constexpr std::size_t kMostCounted = 50;
  std::vector<double> kept;
  std::copy_if(differences.begin(), differences.end(), std::back_inserter(kept),
               [](double difference) { return difference != 0; });
  if (kept.empty())
    return std::nullopt;
  const Ranks ranks = ranks_of(kept);
  std::int64_t positive = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    all += ranks.doubled[i];
    positive += kept[i] > 0 ? ranks.doubled[i] : 0;
  }
  const std::int64_t smaller = std::min(positive, all - positive);
  SignedRankTest test;
  test.n = static_cast<std::int64_t>(kept.size());
  test.statistic = static_cast<double>(smaller) / 2;
  if (kept.size() <= kMostCounted) {
    test.p = std::min(1.0, 2 * share_of_signs(ranks.doubled, smaller));
    return test;
  }
  const auto n = static_cast<double>(kept.size());
  const double mean = n * (n + 1) / 4;
  const double variance = n * (n + 1) * (2 * n + 1) / 24 - ranks.ties / 48;
  const double z = (test.statistic - mean) / std::sqrt(variance);
  test.p = std::min(1.0, 2 * boost::math::cdf(boost::math::normal(), z));
  return test;
}

double mcnemar_exact(std::int64_t only_a, std::int64_t only_b) {
  const std::int64_t disagreements = only_a + only_b;
  if (disagreements == 0)
    return 1;
  const boost::math::binomial distribution(static_cast<double>(disagreements), 0.5);
  return std::min(
      1.0, 2 * boost::math::cdf(distribution, static_cast<double>(std::min(only_a, only_b))));
}

std::optional<Interval> bootstrap_interval(std::span<const double> differences,
                                           std::uint64_t seed) {
  constexpr std::size_t kDraws = 2000;
  constexpr std::size_t kEnoughToBeNormal = 10'000;
  if (differences.size() < 2)
    return std::nullopt;
  const Moments moments = moments_of(differences);
  if (differences.size() >= kEnoughToBeNormal) {
    const double half = boost::math::quantile(boost::math::normal(), kUpperTail) *
                        moments.deviation / std::sqrt(moments.n);
    return Interval(moments.mean - half, moments.mean + half);
  }
  std::mt19937_64 random(seed);
  std::vector<double> means(kDraws);
  for (double& mean : means) {
    for (std::size_t i = 0; i < differences.size(); ++i)
      mean += differences[draw_below(differences.size(), random)];
    mean /= moments.n;
  }
  std::sort(means.begin(), means.end());
  constexpr auto kBelow = static_cast<std::size_t>(kDraws * (1 - kUpperTail));
  return Interval(means[kBelow], means[kDraws - 1 - kBelow]);
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(p.size() - i) * p[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace treadle::compare
