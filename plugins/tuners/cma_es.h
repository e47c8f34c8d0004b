#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include <treadle/search/tuner.h>

namespace treadle::tuners {

/// `cma_es`: the covariance matrix adaptation evolution strategy, with the constants and the active
/// covariance update of N. Hansen ("The CMA evolution strategy: a tutorial", 2016), in the unit
/// cube of the space.
///
/// The finished trials behind the first `n_startup_trials`, in the order of their numbers, are cut
/// into generations of `popsize`; the distribution after all whole generations is the one drawn
/// from. With a lag the first trials of a generation are drawn from the distribution before: they
/// count as injected solutions, whose steps are shortened to a length of sqrt(d) + 2 d / (d + 2)
/// (N. Hansen, "Injecting external solutions into CMA-ES", 2011). A draw outside the cube is
/// repeated, 99 times at most, and then moved to its nearer side.
///
/// Trials are ordered as by `tpe`, so constraints and pruned trials are taken account of.
/// Dimensions that are inactive in a trial do not move the distribution; choices are parts of an
/// interval, which suits few of them.
class CmaEs final : public Tuner {
 public:
  explicit CmaEs(const Config& config);
  ~CmaEs() override;

 private:
  struct Distribution;
  struct Told;

  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                  std::int64_t number, const RandomStreams& random) const override;

  std::int64_t n_startup_trials_;
  double sigma0_;
  std::optional<std::int64_t> popsize_;
  // The distribution of the last call, and the trials it was made of.
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Told> told_;
};

}  // namespace treadle::tuners
