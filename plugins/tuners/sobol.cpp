#include "sobol.h"

#include <bit>
#include <string>

#include <boost/random/sobol.hpp>

#include <treadle/base/error.h>

namespace treadle::tuners {
namespace {

constexpr std::size_t kMostDimensions = 3667;
constexpr int kBits = 64;

// Row i of the matrix has random bits left of its diagonal, which is 1: bit i of the result depends
// on bit i and the more significant ones.
std::uint64_t scrambled(std::uint64_t number, RandomBits bits) {
  std::uint64_t result = 0;
  for (int bit = kBits - 1; bit >= 0; --bit) {
    const std::uint64_t diagonal = std::uint64_t{1} << bit;
    const std::uint64_t more_significant = bit == kBits - 1 ? 0 : ~(2 * diagonal - 1);
    const std::uint64_t row = (bits.next() & more_significant) | diagonal;
    if (std::popcount(row & number) % 2 != 0)
      result |= diagonal;
  }
  return result ^ bits.next();
}

}  // namespace

Sobol::Sobol(const Config& config) : scramble_(config.get<bool>("scramble")) {}

std::vector<double> Sobol::position(std::size_t dimensions, std::uint64_t number, bool scramble,
                                    const RandomStreams& random) {
  if (dimensions > kMostDimensions) {
    throw UsageError("the tuner sobol takes at most " + std::to_string(kMostDimensions) +
                     " dimensions, and the space has " + std::to_string(dimensions) +
                     "; use \"random\"");
  }
  // Boost's sequence begins behind the point whose coordinates are all 0.
  std::vector<std::uint64_t> coordinates(dimensions, 0);
  if (number > 0) {
    boost::random::sobol_engine<std::uint64_t, kBits> engine(dimensions);
    engine.seed(number - 1);
    for (std::uint64_t& coordinate : coordinates)
      coordinate = engine();
  }
  std::vector<double> position(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) {
    const std::uint64_t bits =
        scramble ? scrambled(coordinates[d], random.bits("sobol", {d})) : coordinates[d];
    position[d] = static_cast<double>(bits >> 11) * 0x1p-53;
  }
  return position;
}

std::optional<Point> Sobol::do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                       std::int64_t number, const RandomStreams& random) const {
  const auto suggestion = static_cast<std::uint64_t>(suggestion_number(visible, number));
  return space.from_unit(position(space.size(), suggestion, scramble_, random));
}

}  // namespace treadle::tuners
