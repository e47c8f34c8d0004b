#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <treadle/search/tuner.h>

namespace treadle::tuners {

/// `gp`: Bayesian optimization with a Gaussian process and expected improvement (D. Jones et al.,
/// "Efficient global optimization of expensive black-box functions", 1998).
///
/// The process is exact, in the unit cube of the space, with a constant mean and the Matern 5/2
/// kernel with a length scale for each dimension (C. Rasmussen & C. Williams, "Gaussian processes
/// for machine learning", 2006, equations 4.17, 2.30 and 5.9); two different choices have the
/// distance 1. Length scales, signal and noise maximize the marginal likelihood, within bounds, by
/// iRprop- (C. Igel & M. Huesken, 2000) from two fixed starts.
///
/// Expected improvement is taken over the best posterior mean at a trial, and maximized over points
/// of a Sobol sequence and points near the best trials, then by shrinking random steps from the
/// best of them.
///
/// Running trials count with the value that the process predicts for them, and raise no hope there
/// (the kriging believer of D. Ginsbourger et al., 2010). Pruned and infeasible trials and infinite
/// values count as the worst finite value. One suggestion takes time in proportion to the cube of
/// the number of trials: on average 40 ms for each of the first 100.
class Gp final : public Tuner {
 public:
  explicit Gp(const Config& config);

 private:
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                  std::int64_t number, const RandomStreams& random) const override;

  std::int64_t n_startup_trials_;
  bool deterministic_objective_;
};

}  // namespace treadle::tuners
