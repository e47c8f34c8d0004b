#include "nsga_ii.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "random_search.h"
#include "trial_order.h"

namespace treadle::tuners {
namespace {

constexpr double kIndex = 20;

/// A trial that may be a parent.
struct Parent {
  const Trial* trial = nullptr;
  std::size_t rank = 0;  // feasible ones by domination, infeasible ones behind them by violation
  double crowding = 0;
};

bool is_better_parent(const Parent& a, const Parent& b) {
  if (a.rank != b.rank)
    return a.rank < b.rank;
  return a.crowding != b.crowding ? a.crowding > b.crowding : a.trial->number < b.trial->number;
}

/// Within one rank: the sum over objectives of the distance between both neighbours.
void set_crowding(std::span<Parent> front) {
  for (Parent& parent : front)
    parent.crowding = 0;
  for (std::size_t m = 0; m < front.front().trial->values.size(); ++m) {
    std::sort(front.begin(), front.end(), [&](const Parent& a, const Parent& b) {
      const double at_a = a.trial->values[m];
      const double at_b = b.trial->values[m];
      return at_a != at_b ? at_a < at_b : a.trial->number < b.trial->number;
    });
    const double width = front.back().trial->values[m] - front.front().trial->values[m];
    front.front().crowding = std::numeric_limits<double>::infinity();
    front.back().crowding = std::numeric_limits<double>::infinity();
    // Equal or infinite values have no distance to speak of.
    for (std::size_t i = 1; std::isfinite(width) && width > 0 && i + 1 < front.size(); ++i) {
      front[i].crowding += (front[i + 1].trial->values[m] - front[i - 1].trial->values[m]) / width;
    }
  }
}

/// The `count` best of some trials, the best first.
std::vector<Parent> selected(const std::vector<const Trial*>& trials, std::size_t count) {
  std::vector<Parent> feasible;
  std::vector<Parent> infeasible;
  for (const Trial* trial : trials)
    (violation(*trial) > 0 ? infeasible : feasible).push_back({trial});
  std::vector<Objectives> values;
  for (const Parent& parent : feasible)
    values.push_back(parent.trial->values);
  const std::vector<std::size_t> ranks = domination_ranks(values);
  std::size_t fronts = 0;
  for (std::size_t i = 0; i < feasible.size(); ++i) {
    feasible[i].rank = ranks[i];
    fronts = std::max(fronts, ranks[i] + 1);
  }
  std::stable_sort(feasible.begin(), feasible.end(),
                   [](const Parent& a, const Parent& b) { return a.rank < b.rank; });
  for (std::size_t begin = 0; begin < feasible.size();) {
    std::size_t end = begin;
    while (end < feasible.size() && feasible[end].rank == feasible[begin].rank)
      ++end;
    set_crowding(std::span(feasible).subspan(begin, end - begin));
    begin = end;
  }
  std::sort(feasible.begin(), feasible.end(), is_better_parent);
  std::stable_sort(infeasible.begin(), infeasible.end(), [](const Parent& a, const Parent& b) {
    return violation(*a.trial) < violation(*b.trial);
  });
  for (std::size_t i = 0; i < infeasible.size(); ++i)
    infeasible[i].rank = fronts + i;
  feasible.insert(feasible.end(), infeasible.begin(), infeasible.end());
  feasible.resize(std::min(count, feasible.size()));
  return feasible;
}

// Simulated binary crossover within [0, 1]: one of the two children.
double crossed(double a, double b, RandomBits& bits) {
  const bool exchanges = bits.uniform() < 0.5;
  const double drawn = bits.uniform();
  const bool is_first = bits.uniform() < 0.5;
  if (!exchanges || std::abs(a - b) < 1e-14)
    return is_first ? a : b;
  const double low = std::min(a, b);
  const double high = std::max(a, b);
  const double room = is_first ? low : 1 - high;
  const double beta = 1 + 2 * room / (high - low);
  const double alpha = 2 - std::pow(beta, -(kIndex + 1));
  const double spread = drawn <= 1 / alpha ? std::pow(drawn * alpha, 1 / (kIndex + 1))
                                           : std::pow(1 / (2 - drawn * alpha), 1 / (kIndex + 1));
  const double child = 0.5 * (low + high + (is_first ? -1 : 1) * spread * (high - low));
  return std::min(std::max(child, 0.0), 1.0);
}

// Polynomial mutation within [0, 1].
double mutated(double x, RandomBits& bits) {
  const double drawn = bits.uniform();
  const double power = 1 / (kIndex + 1);
  const double change =
      drawn < 0.5
          ? std::pow(2 * drawn + (1 - 2 * drawn) * std::pow(1 - x, kIndex + 1), power) - 1
          : 1 - std::pow(2 * (1 - drawn) + (2 * drawn - 1) * std::pow(x, kIndex + 1), power);
  return std::min(std::max(x + change, 0.0), 1.0);
}

const Parent& tournament(const std::vector<Parent>& parents, RandomBits& bits) {
  const Parent& a = parents[bits.below(parents.size())];
  const Parent& b = parents[bits.below(parents.size())];
  return is_better_parent(b, a) ? b : a;
}

}  // namespace

NsgaII::NsgaII(const Config& config)
    : population_size_(config.get<std::int64_t>("population_size")),
      crossover_prob_(config.get<double>("crossover_prob")),
      mutation_prob_(config.find<double>("mutation_prob")) {}

std::optional<Point> NsgaII::do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                        std::int64_t number, const RandomStreams& random) const {
  const std::int64_t generation = number / population_size_;
  const auto size = static_cast<std::size_t>(population_size_);
  std::vector<Parent> parents;
  for (std::int64_t g = 0; g < generation; ++g) {
    std::vector<const Trial*> candidates;
    for (const Parent& parent : parents)
      candidates.push_back(parent.trial);
    const auto first = std::lower_bound(
        visible.begin(), visible.end(), g * population_size_,
        [](const Trial& trial, std::int64_t least) { return trial.number < least; });
    for (auto at = first; at != visible.end() && at->number < (g + 1) * population_size_; ++at) {
      if (has_values(*at))
        candidates.push_back(&*at);
    }
    parents = selected(candidates, size);
  }
  if (parents.size() < 2)
    return random_point(space, number, random);

  RandomBits bits = random.bits("nsga_ii", {static_cast<std::uint64_t>(number)});
  const Trial& first = *tournament(parents, bits).trial;
  const Trial& second = *tournament(parents, bits).trial;
  const std::vector<double> a = space.to_unit(first.point);
  const std::vector<double> b = space.to_unit(second.point);
  const bool crosses = bits.uniform() < crossover_prob_;
  const double mutation = mutation_prob_.value_or(1 / static_cast<double>(space.size()));
  std::vector<double> child = a;
  for (std::size_t d = 0; d < child.size(); ++d) {
    const bool is_choice = space[d].kind == Dimension::Kind::kChoice;
    // Where one parent has no value, the child takes the other's.
    const bool has_a = first.point.is_active(d);
    const bool has_b = second.point.is_active(d);
    if (!has_a && !has_b)
      child[d] = bits.uniform();
    else if (!has_a || !has_b)
      child[d] = has_a ? a[d] : b[d];
    else if (crosses)
      child[d] = is_choice ? (bits.uniform() < 0.5 ? a[d] : b[d]) : crossed(a[d], b[d], bits);
    if (bits.uniform() < mutation)
      child[d] = is_choice ? bits.uniform() : mutated(child[d], bits);
  }
  return space.from_unit(child);
}

}  // namespace treadle::tuners
