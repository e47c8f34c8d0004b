#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <treadle/base/random.h>
#include <treadle/search/search_space.h>

namespace treadle::tuners {

/// One dimension of a Parzen estimator, on the scale where its kernels are normal distributions:
/// logarithmic ranges by their logarithm, stepped values with half a step around each.
class Axis {
 public:
  enum class Kind { kContinuous, kStepped, kCategorical };

  explicit Axis(const Dimension& dimension);

  Kind kind() const noexcept { return kind_; }
  double low() const noexcept { return low_; }
  double high() const noexcept { return high_; }
  std::size_t choices() const noexcept { return choices_; }
  /// How many times as often as on the mean of all choices one is drawn.
  double emphasis(std::size_t choice) const;
  /// A choice by its weight.
  double draw(RandomBits& bits) const;

  double coordinate(double value) const;
  /// The part of the axis that belongs to a stepped value.
  std::pair<double, double> interval(double value) const;
  /// The value nearest to a coordinate.
  double value(double coordinate) const;

 private:
  Dimension dimension_;
  Kind kind_;
  double low_ = 0;
  double high_ = 1;
  std::size_t choices_ = 0;
};

class ParzenTable;

/// A mixture of products of kernels: one kernel per observation, and a prior in the middle of the
/// space. Made by ParzenTable; valid until the table makes another one of the same side.
class ParzenMixture {
 public:
  /// One per observation, and the prior as the last.
  std::size_t kernels() const noexcept { return weights_.size(); }

  /// One value per axis, all of one kernel.
  std::vector<double> sample(RandomBits& bits) const;
  /// log sum_i w_i prod_d k_id(x_d) for each of the points, which have one value per axis.
  std::vector<double> log_densities(std::span<const std::vector<double>> points) const;

  double mean(std::size_t axis, std::size_t kernel) const;
  double deviation(std::size_t axis, std::size_t kernel) const;
  double weight(std::size_t kernel) const { return weights_[kernel]; }

 private:
  friend class ParzenTable;

  /// The logarithms of a categorical kernel's probabilities, by choice.
  struct Categorical {
    std::vector<double> log_hit;   // where it was observed
    std::vector<double> log_miss;  // where another one was
    double excess = 0;             // of a hit over a miss
  };

  /// The logarithm of a kernel of an observation; `at` is the point's coordinate.
  double log_kernel(std::size_t axis, std::size_t observation, double at,
                    const std::pair<double, double>& interval) const;
  double log_prior(std::size_t axis, double at, const std::pair<double, double>& interval) const;

  const ParzenTable* table_ = nullptr;
  std::size_t side_ = 0;
  std::vector<std::size_t> members_;
  std::vector<double> weights_;
  std::vector<double> log_weights_;
  std::vector<Categorical> categorical_;  // by axis
  std::vector<double> most_;              // by axis: a bound of every kernel's log density
};

/// The observations of a study, kept in the order of each axis, from which Parzen estimators of any
/// part of them are made. Deviations and factors of kernels are kept from one estimator to the next
/// and computed again where neighbours have changed, so that an estimator that differs by a few
/// observations is cheap. Each is the same function of its observations whatever was made before.
///
/// Kernels are those of Optuna 5 (optuna/samplers/_tpe/parzen_estimator.py): the deviation of
/// observation i is the larger distance to its neighbours among the observations and the prior's
/// mean, at the ends the only one, clipped to [range / min(100, n + 2), range] for n observations;
/// the prior has the deviation `range`. The below side, of a tenth of the trials, may have narrower
/// ones: from `min_bandwidth_factor` of the range on, where that is less than 1 / (n + 2). Normal
/// distributions are truncated to the range. A
/// categorical kernel has 1 + 1 / (n + 1) on the observed choice and 1 / (n + 1) on every other,
/// normalized. Where choices have weights, each 1 / (n + 1) is multiplied by the choice's weight as
/// a multiple of the mean, and the prior is the weights, as for hyperopt's `hp.pchoice`.
class ParzenTable {
 public:
  /// With a factor of 1 the kernels of both sides are Optuna's.
  explicit ParzenTable(std::vector<Axis> axes, double min_bandwidth_factor = 1);
  ParzenTable(const ParzenTable&) = delete;
  ParzenTable& operator=(const ParzenTable&) = delete;

  const std::vector<Axis>& axes() const noexcept { return axes_; }
  std::size_t size() const noexcept { return numbers_.size(); }

  /// Adds an observation: one value per axis. Its index is size() before the call. `number` orders
  /// equal values.
  void add(std::int64_t number, std::span<const double> values);

  /// Which of two estimators is made; each has kernels of its own that are kept.
  enum Side : std::size_t { kBelow, kAbove };

  /// The estimator of `members`, indices of observations, with these weights, which are normalized
  /// together with the prior's weight of 1.
  ParzenMixture mixture(Side side, std::vector<std::size_t> members,
                        std::span<const double> weights);

 private:
  friend class ParzenMixture;

  static constexpr std::size_t kPrior = static_cast<std::size_t>(-1);

  /// Normal kernels of one axis, by observation.
  struct Kernels {
    std::vector<double> deviation;
    std::vector<double> precision;  // 1 / (2 deviation^2)
    std::vector<double> log_norm;   // log of the factor in front of exp(-precision (x - mean)^2)
    double log_norm_of_prior = 0;
  };
  struct SideKernels {
    std::vector<bool> is_member;
    std::vector<std::size_t> members;
    std::vector<Kernels> axes;
  };

  double coordinate(std::size_t axis, std::size_t observation) const;
  double log_norm(std::size_t axis, double mean, double deviation) const;
  bool is_before(std::size_t axis, std::size_t a, std::size_t b) const;
  void refresh(SideKernels& side, std::size_t axis, const std::vector<std::size_t>& changed);
  void refresh_all(SideKernels& side, std::size_t axis);
  void set(SideKernels& side, std::size_t axis, std::size_t observation, double left, double right);

  std::vector<Axis> axes_;
  double min_bandwidth_factor_;
  std::vector<std::size_t> order_;  // of axes: cheap ones first
  std::vector<std::int64_t> numbers_;
  std::vector<std::vector<double>> coordinates_;  // by axis, observation
  std::vector<std::vector<std::size_t>> sorted_;  // by axis; kPrior among them
  std::vector<SideKernels> sides_;
};

}  // namespace treadle::tuners
