#include "grid.h"

#include <algorithm>

namespace treadle::tuners {
namespace {

/// Points, for each suggestion.
constexpr std::int64_t kMostLookedThrough = 4096;

}  // namespace

Grid::Grid(const Config& config)
    : points_(config.get<std::int64_t>("points")), shuffle_(config.get<bool>("shuffle")) {}

std::optional<Point> Grid::do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                      std::int64_t number, const RandomStreams& random) const {
  const SearchGrid grid(space, points_);
  const Permutation order(grid.size(), random.seed("grid"));
  const auto point_at = [&](std::int64_t place) {
    return grid.at(shuffle_ ? order[place] : place);
  };
  const std::int64_t suggestion = suggestion_number(visible, number);
  // A grid that is searched to its end leaves out what was tried without it.
  if (suggestion == number || grid.size() > kMostLookedThrough)
    return suggestion < grid.size() ? std::optional(point_at(suggestion)) : std::nullopt;
  std::int64_t others = 0;
  for (std::int64_t place = 0; place < grid.size(); ++place) {
    const Point point = point_at(place);
    const bool was_tried = std::any_of(visible.begin(), visible.end(), [&](const Trial& trial) {
      return !trial.is_suggested && trial.point == point;
    });
    if (!was_tried && others++ == suggestion)
      return point;
  }
  return std::nullopt;
}

}  // namespace treadle::tuners
