#include "random_search.h"

namespace treadle::tuners {

Point random_point(const SearchSpace& space, std::int64_t number, const RandomStreams& random) {
  RandomBits bits = random.bits("random", {static_cast<std::uint64_t>(number)});
  return space.random(bits);
}

std::optional<Point> RandomSearch::do_suggest(const SearchSpace& space, std::span<const Trial>,
                                              std::int64_t number,
                                              const RandomStreams& random) const {
  return random_point(space, number, random);
}

}  // namespace treadle::tuners
