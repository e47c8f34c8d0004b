#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <treadle/search/tuner.h>

namespace treadle::tuners {

/// `sobol`: trial n has the point n of a Sobol sequence, which fills the space more evenly than
/// random points: each half, quarter, eighth of a dimension gets the same number of trials.
///
/// The direction numbers are those of S. Joe & F. Y. Kuo ("Constructing Sobol sequences with better
/// two-dimensional projections", 2008), from Boost. `scramble` multiplies the bits of each
/// dimension by a random lower triangular matrix and adds a random shift (J. Matousek, "On the
/// L2-discrepancy for anchored boxes", 1998), as scipy.stats.qmc.Sobol does: the points stay a
/// Sobol sequence, another one for each seed.
class Sobol final : public Tuner {
 public:
  explicit Sobol(const Config& config);

  /// The position of point `number` in a unit cube. Throws UsageError above 3667 dimensions, for
  /// which there are no direction numbers.
  static std::vector<double> position(std::size_t dimensions, std::uint64_t number, bool scramble,
                                      const RandomStreams& random);

 private:
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial>,
                                  std::int64_t number, const RandomStreams& random) const override;
  bool do_takes_several_objectives() const override { return true; }

  bool scramble_;
};

}  // namespace treadle::tuners
