#include "trial_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace treadle::tuners {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// (class, first key, second key): smaller is better.
using RankKey = std::tuple<int, double, double>;

RankKey rank_key(const Trial& trial) {
  const double broken = violation(trial);
  if (broken > 0)
    return {2, broken, 0};
  if (trial.state == TrialState::kComplete)
    return {0, trial.values[0], 0};
  if (trial.intermediate.empty())
    return {1, 1, 0};  // behind every trial that has reported, whose first key is -step
  const IntermediateValue& last = trial.intermediate.back();
  return {1, -static_cast<double>(last.step), std::isnan(last.value) ? kInfinity : last.value};
}

// Of a front of two objectives: left to right, each point adds a rectangle.
double area(std::vector<Objectives>& points, const Objectives& reference) {
  std::sort(points.begin(), points.end());
  double sum = 0;
  double lowest = reference[1];
  for (const Objectives& point : points) {
    if (point[1] < lowest) {
      sum += (reference[0] - point[0]) * (lowest - point[1]);
      lowest = point[1];
    }
  }
  return sum;
}

double volume(const Objectives& point, const Objectives& reference) {
  double product = 1;
  for (std::size_t i = 0; i < point.size(); ++i)
    product *= reference[i] - point[i];
  return product;
}

double volume_of(std::vector<Objectives> points, const Objectives& reference) {
  if (points.empty())
    return 0;
  if (reference.size() == 1)
    return reference[0] - std::min_element(points.begin(), points.end())->front();
  if (reference.size() == 2)
    return area(points, reference);
  std::sort(points.begin(), points.end());
  double sum = 0;
  while (!points.empty()) {
    const Objectives point = std::move(points.back());
    points.pop_back();
    // What the others dominate of this point's box.
    std::vector<Objectives> within;
    for (const Objectives& other : points) {
      Objectives corner(other.size());
      for (std::size_t i = 0; i < other.size(); ++i)
        corner[i] = std::max(other[i], point[i]);
      within.push_back(std::move(corner));
    }
    std::vector<Objectives> front;
    for (const Objectives& candidate : within) {
      const bool is_covered = std::any_of(within.begin(), within.end(), [&](const auto& other) {
        return dominates(other, candidate);
      });
      if (!is_covered && std::find(front.begin(), front.end(), candidate) == front.end())
        front.push_back(candidate);
    }
    sum += volume(point, reference) - volume_of(std::move(front), reference);
  }
  return sum;
}

}  // namespace

bool has_values(const Trial& trial) {
  return trial.state == TrialState::kComplete && !trial.values.empty() &&
         std::none_of(trial.values.begin(), trial.values.end(),
                      [](double value) { return std::isnan(value); });
}

bool is_finished(const Trial& trial) {
  switch (trial.state) {
    case TrialState::kPaused:
    case TrialState::kPruned:
      return true;
    case TrialState::kRunning:
      return !trial.intermediate.empty();
    case TrialState::kComplete:
      return has_values(trial);
    case TrialState::kFailed:
      return false;
  }
  return false;
}

std::vector<std::size_t> ranked(std::span<const Trial> trials, std::size_t count) {
  std::vector<std::pair<RankKey, std::size_t>> keys;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (is_finished(trials[i]))
      keys.emplace_back(rank_key(trials[i]), i);
  }
  const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(std::min(count, keys.size()));
  std::partial_sort(keys.begin(), middle, keys.end());
  std::vector<std::size_t> order;
  order.reserve(keys.size());
  for (const auto& [key, index] : keys)
    order.push_back(index);
  return order;
}

std::vector<std::size_t> domination_ranks(std::span<const Objectives> points) {
  // In this order no point is dominated by a later one.
  std::vector<std::size_t> order(points.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return points[a] != points[b] ? points[a] < points[b] : a < b;
  });
  std::vector<std::size_t> ranks(points.size());
  std::vector<std::vector<std::size_t>> fronts;
  for (const std::size_t i : order) {
    std::size_t rank = 0;
    while (rank < fronts.size() &&
           std::any_of(fronts[rank].begin(), fronts[rank].end(),
                       [&](std::size_t other) { return dominates(points[other], points[i]); }))
      ++rank;
    if (rank == fronts.size())
      fronts.emplace_back();
    fronts[rank].push_back(i);
    ranks[i] = rank;
  }
  return ranks;
}

double hypervolume(std::vector<Objectives> points, const Objectives& reference) {
  std::erase_if(points, [&](const Objectives& point) {
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (!(point[i] < reference[i]))
        return true;
    }
    return false;
  });
  return volume_of(std::move(points), reference);
}

std::vector<std::size_t> largest_hypervolume(std::span<const Objectives> points, std::size_t count,
                                             const Objectives& reference) {
  std::vector<std::size_t> chosen;
  std::vector<Objectives> set;
  std::vector<bool> is_chosen(points.size());
  // What a point adds only shrinks as others are chosen: a bound that is stale is large enough.
  std::vector<double> bounds(points.size(), kInfinity);
  double covered = 0;
  while (chosen.size() < std::min(count, points.size())) {
    std::size_t best = points.size();
    double most = -1;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (is_chosen[i] || (best < points.size() && bounds[i] <= most))
        continue;
      set.push_back(points[i]);
      const double added = hypervolume(set, reference) - covered;
      set.pop_back();
      bounds[i] = std::isnan(added) ? 0 : added;
      if (best == points.size() || bounds[i] > most) {
        most = bounds[i];
        best = i;
      }
    }
    is_chosen[best] = true;
    chosen.push_back(best);
    set.push_back(points[best]);
    covered = hypervolume(set, reference);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace treadle::tuners
