#include "grid.h"

namespace treadle::tuners {

Grid::Grid(const Config& config)
    : points_(config.get<std::int64_t>("points")), shuffle_(config.get<bool>("shuffle")) {}

std::optional<Point> Grid::do_suggest(const SearchSpace& space, std::span<const Trial>,
                                      std::int64_t number, const RandomStreams& random) const {
  const SearchGrid grid(space, points_);
  if (number >= grid.size())
    return std::nullopt;
  if (!shuffle_)
    return grid.at(number);
  return grid.at(Permutation(grid.size(), random.seed("grid"))[number]);
}

}  // namespace treadle::tuners
