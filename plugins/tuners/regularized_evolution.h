#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <treadle/search/tuner.h>

namespace treadle::tuners {

/// `regularized_evolution`: aging evolution (E. Real et al., "Regularized evolution for image
/// classifier architecture search", 2019).
///
/// The population is the last `population_size` finished trials: old ones die, good ones too. The
/// best of `sample_size` drawn from it is the parent, and the trial is the parent with one
/// dimension changed: a choice to another one, steps of up to ten values to another one, any other
/// number by a normal step of `mutation_std`, reflected at the ends of the range. Dimensions that
/// become active are drawn. Trials are random until the population is full. Order: as by `tpe`.
class RegularizedEvolution final : public Tuner {
 public:
  explicit RegularizedEvolution(const Config& config);

 private:
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                  std::int64_t number, const RandomStreams& random) const override;

  std::int64_t population_size_;
  std::int64_t sample_size_;
  double mutation_std_;
};

}  // namespace treadle::tuners
