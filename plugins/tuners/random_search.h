#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <treadle/search/tuner.h>

namespace treadle::tuners {

/// `random`: every trial drawn uniformly from the space, independent of all others.
class RandomSearch final : public Tuner {
 public:
  explicit RandomSearch(const Config&) {}

 private:
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial>,
                                  std::int64_t number, const RandomStreams& random) const override;
  bool do_takes_several_objectives() const override { return true; }
};

/// The uniformly drawn point of trial `number`, with which other tuners begin.
Point random_point(const SearchSpace& space, std::int64_t number, const RandomStreams& random);

}  // namespace treadle::tuners
