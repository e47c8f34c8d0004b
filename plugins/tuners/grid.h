#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <treadle/search/tuner.h>

namespace treadle::tuners {

/// `grid`: every combination of some values of each dimension, each once (see SearchGrid). Trial n
/// has the point n of a permutation that is computed from the seed, not stored.
class Grid final : public Tuner {
 public:
  explicit Grid(const Config& config);

 private:
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial>,
                                  std::int64_t number, const RandomStreams& random) const override;
  bool do_takes_several_objectives() const override { return true; }

  std::int64_t points_;
  bool shuffle_;
};

}  // namespace treadle::tuners
