#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <treadle/search/tuner.h>

namespace treadle::tuners {

/// `tpe`: the tree-structured Parzen estimator (J. Bergstra et al., "Algorithms for hyper-parameter
/// optimization", 2011; S. Watanabe, "Tree-structured Parzen estimator", 2023), by the rules of
/// Optuna 5 (optuna/samplers/_tpe/sampler.py).
///
/// The n finished trials are split: the best min(ceil(0.1 n), 25), with several objectives
/// ceil(0.1 n), are *below*; the others are *above*, and with `constant_liar` the running ones with
/// them. Both sides become mixtures of kernels (see ParzenTable), l and g. Of `n_ei_candidates`
/// draws from l the one with the largest log l - log g is suggested.
///
/// - Order: feasible complete trials by value, then pruned and paused ones by last step (later is
///   better) and value, then infeasible ones by the sum of their violations. Several objectives: by
///   rank of non-domination; of the rank that does not fit as a whole, the points with the most
///   hypervolume.
/// - Weights: within a side, by number, the newest 25 have weight 1 and older ones fall linearly to
///   1 / n. Several objectives weigh the below side by the hypervolume that each point alone adds.
/// - `multivariate`: all dimensions without condition are drawn from one kernel, so l and g are
///   mixtures of products. Otherwise, and for dimensions with a condition, each dimension has
///   mixtures of its own, of the trials in which it is active.
/// - With one objective kernels at good trials may be as narrow as `min_bandwidth_factor` of the
/// range (the name is
///   Watanabe's). Optuna's are at least 1 / (n + 2) wide, which for the ten best of a hundred
///   trials is a twelfth: too wide to come near a minimum.
/// - The first `n_startup_trials` finished trials are drawn at random.
class Tpe final : public Tuner {
 public:
  explicit Tpe(const Config& config);
  ~Tpe() override;

 private:
  struct Sides;
  class Observations;

  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                  std::int64_t number, const RandomStreams& random) const override;
  bool do_takes_several_objectives() const override { return true; }

  Sides split(std::span<const Trial> visible) const;

  std::int64_t n_startup_trials_;
  std::int64_t n_ei_candidates_;
  std::optional<bool> multivariate_;
  bool constant_liar_;
  double min_bandwidth_factor_;
  // Kernels of earlier suggestions; checked against the trials of each one.
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Observations> observations_;
};

}  // namespace treadle::tuners
