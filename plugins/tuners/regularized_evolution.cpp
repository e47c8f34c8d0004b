#include "regularized_evolution.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "random_search.h"
#include "trial_order.h"

namespace treadle::tuners {
namespace {

constexpr std::int64_t kFewValues = 10;

// Another position of the dimension.
double changed(const Dimension& dimension, double position, double deviation, RandomBits& bits) {
  const std::int64_t values = dimension.count();
  const bool is_choice = dimension.kind == Dimension::Kind::kChoice;
  if (values > 1 && (is_choice || values <= kFewValues)) {
    const std::int64_t now = dimension.index(dimension.from_unit(position));
    auto next = static_cast<std::int64_t>(bits.below(static_cast<std::uint64_t>(values - 1)));
    next += next >= now ? 1 : 0;
    return dimension.to_unit(dimension.value(next));
  }
  double moved = position + deviation * bits.normal();
  moved = std::abs(moved);
  if (moved > 1)
    moved = 2 - moved;
  return std::min(std::max(moved, 0.0), 1.0);
}

}  // namespace

RegularizedEvolution::RegularizedEvolution(const Config& config)
    : population_size_(config.get<std::int64_t>("population_size")),
      sample_size_(config.get<std::int64_t>("sample_size")),
      mutation_std_(config.get<double>("mutation_std")) {
  if (sample_size_ > population_size_) {
    config.fail("sample_size", "must be at most \"population_size\", " +
                                   std::to_string(population_size_) + ", got " +
                                   std::to_string(sample_size_));
  }
}

std::optional<Point> RegularizedEvolution::do_suggest(const SearchSpace& space,
                                                      std::span<const Trial> visible,
                                                      std::int64_t number,
                                                      const RandomStreams& random) const {
  std::vector<Trial> population;
  for (const Trial& trial : visible) {
    if (is_finished(trial))
      population.push_back(trial);
  }
  const auto size = static_cast<std::size_t>(population_size_);
  if (population.size() < size)
    return random_point(space, number, random);
  population.erase(population.begin(), population.end() - population_size_);

  RandomBits bits = random.bits("regularized_evolution", {static_cast<std::uint64_t>(number)});
  // The best of a sample without replacement is the drawn one that comes first in the order.
  const std::vector<std::size_t> order = ranked(population);
  const std::vector<std::int64_t> drawn =
      random_permutation(population_size_, RandomBits(bits.next()));
  const std::int64_t best = *std::min_element(drawn.begin(), drawn.begin() + sample_size_);
  const Point& parent = population[order[static_cast<std::size_t>(best)]].point;

  std::vector<std::size_t> active;
  std::vector<double> positions = space.to_unit(parent);
  for (std::size_t d = 0; d < space.size(); ++d) {
    if (parent.is_active(d))
      active.push_back(d);
    else
      positions[d] = bits.uniform();
  }
  const std::size_t mutated = active[bits.below(active.size())];
  positions[mutated] = changed(space[mutated], positions[mutated], mutation_std_, bits);
  return space.from_unit(positions);
}

}  // namespace treadle::tuners
