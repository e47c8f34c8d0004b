#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <treadle/search/tuner.h>

namespace treadle::tuners {

/// `nsga_ii`: the elitist genetic algorithm for several objectives (K. Deb et al., "A fast and
/// elitist multiobjective genetic algorithm: NSGA-II", 2002). It works with one objective, too.
///
/// Trials are generations of `population_size` by their numbers. After generation g the best of the
/// parents so far and its trials become the parents of g + 1: feasible before infeasible ones, by
/// rank of non-domination, then by crowding distance. The first generation is random. With a lag
/// the parents are chosen from what is visible of the generation before.
///
/// A child has two parents, each the better of two drawn ones. With `crossover_prob` its numbers
/// are made by simulated binary crossover (K. Deb & R. Agrawal, "Simulated binary crossover for
/// continuous search space", 1995, index 20) and its choices are those of either parent; then each
/// dimension changes with `mutation_prob`: numbers by polynomial mutation (index 20), choices to
/// any. All in the unit cube of the space. Pruned trials are not used.
class NsgaII final : public Tuner {
 public:
  explicit NsgaII(const Config& config);

 private:
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                  std::int64_t number, const RandomStreams& random) const override;
  bool do_takes_several_objectives() const override { return true; }

  std::int64_t population_size_;
  double crossover_prob_;
  std::optional<double> mutation_prob_;
};

}  // namespace treadle::tuners
