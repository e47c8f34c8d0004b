#include "report/ped_anova.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <treadle/base/error.h>

namespace treadle::report {
namespace {

constexpr double kBestShare = 0.1;
constexpr std::size_t kFewestBest = 2;
constexpr std::size_t kMostGridPoints = 50;
constexpr double kPriorWeight = 1;
/// No probability is 0, so every ratio is finite.
constexpr double kLeastProbability = 1e-12;
/// Of a kernel: 90 % of it lie within half a grid step.
constexpr double kLeastDeviation = 0.5 / 1.64;

/// The grid on which the values of one dimension are counted.
class Grid {
 public:
  explicit Grid(const Dimension& dimension) : dimension_(dimension), points_(points_of(dimension)) {
    if (!is_categorical()) {
      low_ = scaled(dimension.low);
      width_ = (scaled(dimension.high) - low_) / static_cast<double>(points_ - 1);
    }
  }

  std::size_t points() const noexcept { return points_; }
  bool is_categorical() const noexcept { return dimension_.kind == Dimension::Kind::kChoice; }

  /// The nearest grid point, of two equally near ones the lower.
  std::size_t index(double value) const {
    if (is_categorical())
      return static_cast<std::size_t>(value);
    const double nearest = std::ceil((scaled(value) - low_) / width_ - 0.5);
    return static_cast<std::size_t>(std::clamp(nearest, 0.0, static_cast<double>(points_ - 1)));
  }

 private:
  static std::size_t points_of(const Dimension& dimension) {
    if (dimension.kind == Dimension::Kind::kChoice)
      return dimension.choices.size();
    double steps = static_cast<double>(kMostGridPoints);
    if (dimension.kind == Dimension::Kind::kInteger && dimension.log)
      steps = std::ceil(std::log2(dimension.high - dimension.low + 1)) + 1;
    else if (dimension.step > 0)
      steps = std::round((dimension.high - dimension.low) / dimension.step) + 1;
    return static_cast<std::size_t>(std::min(steps, static_cast<double>(kMostGridPoints)));
  }

  double scaled(double value) const { return dimension_.log ? std::log(value) : value; }

  const Dimension& dimension_;
  std::size_t points_;
  double low_ = 0;
  double width_ = 1;
};

using Counts = std::vector<double>;
using Probabilities = std::vector<double>;

double normal_below(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

/// Adds a normal distribution that is truncated to the grid, each point having half a step around
/// it.
void add_normal(double mean, double deviation, double weight, Probabilities& sum) {
  const auto below = [&](double x) { return normal_below((x - mean) / deviation); };
  const double whole = below(static_cast<double>(sum.size()) - 0.5) - below(-0.5);
  for (std::size_t x = 0; x < sum.size(); ++x) {
    const auto at = static_cast<double>(x);
    sum[x] += weight * (below(at + 0.5) - below(at - 0.5)) / whole;
  }
}

/// Scott's rule (Scott 1992, "Multivariate Density Estimation"), with the quartiles' distance where
/// it is the smaller measure of spread, on a grid of steps of 1.
double deviation_of_kernels(const Counts& counts, double trials) {
  double mean = 0;
  for (std::size_t x = 0; x < counts.size(); ++x)
    mean += static_cast<double>(x) * counts[x] / trials;
  double squares = 0;
  for (std::size_t x = 0; x < counts.size(); ++x)
    squares += counts[x] * (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean);
  const double deviation = std::sqrt(squares / std::max(1.0, trials - 1));

  // The first point with a quarter of the trials up to it, and the first with more than three.
  std::size_t first = counts.size();
  std::size_t last = 0;
  double up_to = 0;
  bool is_past = false;
  for (std::size_t x = 0; x < counts.size() && !is_past; ++x) {
    if (counts[x] == 0)
      continue;
    up_to += counts[x];
    if (first == counts.size() && up_to >= std::floor(trials / 4))
      first = x;
    last = x;
    is_past = up_to > std::floor(trials * 3 / 4);
  }
  const auto between_quartiles = static_cast<double>(last - first);
  return std::max(1.059 * std::min(between_quartiles / 1.34, deviation) * std::pow(trials, -0.2),
                  kLeastDeviation);
}

Probabilities numeric_density(const Counts& counts, double trials) {
  Probabilities density(counts.size(), 0);
  const double deviation = deviation_of_kernels(counts, trials);
  for (std::size_t x = 0; x < counts.size(); ++x) {
    if (counts[x] > 0)
      add_normal(static_cast<double>(x), deviation, counts[x], density);
  }
  const auto points = static_cast<double>(counts.size());
  add_normal((points - 1) / 2, points, kPriorWeight, density);
  return density;
}

/// A kernel per choice that has trials: all choices equally, and 1 more for its own.
Probabilities categorical_density(const Counts& counts) {
  const auto choices = static_cast<double>(counts.size());
  const auto kernels = static_cast<double>(counts.size()) -
                       static_cast<double>(std::count(counts.begin(), counts.end(), 0.0)) + 1;
  const double each = kPriorWeight / kernels;
  const double whole = choices * each + 1;
  const double trials = std::accumulate(counts.begin(), counts.end(), 0.0);
  Probabilities density(counts.size());
  for (std::size_t x = 0; x < counts.size(); ++x)
    density[x] = (trials * each + counts[x]) / whole + kPriorWeight / choices;
  return density;
}

Probabilities density_of(const Grid& grid, std::span<const double> values) {
  Counts counts(grid.points(), 0);
  for (const double value : values)
    counts[grid.index(value)] += 1;
  const auto trials = static_cast<double>(values.size());
  Probabilities density =
      grid.is_categorical() ? categorical_density(counts) : numeric_density(counts, trials);
  for (double& probability : density)
    probability = probability / (trials + kPriorWeight) + kLeastProbability;
  return density;
}

double pearson_divergence(const Probabilities& q, const Probabilities& p) {
  double sum = 0;
  for (std::size_t x = 0; x < p.size(); ++x)
    sum += p[x] * (q[x] / p[x] - 1) * (q[x] / p[x] - 1);
  return sum;
}

/// The values of a dimension where it is active.
std::vector<double> active_values(std::size_t dimension, std::span<const Point* const> points) {
  std::vector<double> values;
  values.reserve(points.size());
  for (const Point* point : points) {
    if (point->is_active(dimension))
      values.push_back((*point)[dimension]);
  }
  return values;
}

/// The largest value of the best trials.
double bound_of_best(std::vector<double> values) {
  const auto count = static_cast<double>(values.size());
  const auto best = std::max(kFewestBest, static_cast<std::size_t>(std::ceil(kBestShare * count)));
  const auto last = values.begin() + static_cast<std::ptrdiff_t>(best - 1);
  std::nth_element(values.begin(), last, values.end());
  return *last;
}

double importance_of(const SearchSpace& space, std::size_t dimension,
                     std::span<const Point* const> all, std::span<const Point* const> best) {
  const Grid grid(space[dimension]);
  if (grid.points() < 2)
    return 0;
  const std::vector<double> of_all = active_values(dimension, all);
  const std::vector<double> of_best = active_values(dimension, best);
  if (of_best.empty())
    return 0;
  const double share_of_best =
      static_cast<double>(of_best.size()) / static_cast<double>(best.size());
  const double share_of_all = static_cast<double>(of_all.size()) / static_cast<double>(all.size());
  return share_of_best * share_of_best / share_of_all *
         pearson_divergence(density_of(grid, of_best), density_of(grid, of_all));
}

}  // namespace

Importances ped_anova(const SearchSpace& space, std::span<const Point> points,
                      std::span<const double> values) {
  TREADLE_EXPECTS(points.size() == values.size(), "one value per point");
  std::vector<const Point*> all;
  std::vector<double> finite;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(values[i]))
      continue;
    all.push_back(&points[i]);
    finite.push_back(values[i]);
  }
  Importances importances{std::vector<double>(space.size(), 0), all.size(), 0};
  if (all.size() <= kFewestBest)
    return importances;

  const double bound = bound_of_best(finite);
  std::vector<const Point*> best;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (finite[i] <= bound)
      best.push_back(all[i]);
  }
  importances.best = best.size();
  for (std::size_t d = 0; d < space.size(); ++d)
    importances.shares[d] = importance_of(space, d, all, best);
  const double sum = std::accumulate(importances.shares.begin(), importances.shares.end(), 0.0);
  if (sum > 0) {
    for (double& share : importances.shares)
      share /= sum;
  }
  return importances;
}

}  // namespace treadle::report
