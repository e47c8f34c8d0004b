#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace treadle {

/// A small seeded source of random bits (SplitMix64, Steele, Lea & Flood 2014) for decisions
/// outside tensors: shuffles, splits. The sequence is the same with every compiler and library,
/// unlike std::shuffle.
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  /// Uniform in [0, bound), without modulo bias. Expects bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Standard normal (Box-Muller).
  double normal();

  /// Fisher-Yates.
  void shuffle(std::span<std::int64_t> values);

 private:
  std::uint64_t state_;
};

/// Named, independent random streams under one root seed. A stream is addressed by its purpose and
/// the place in training it belongs to, so the order in which streams are asked for, and who else
/// asks, changes nothing: `streams.seed("shuffle", {epoch})`.
class RandomStreams {
 public:
  explicit RandomStreams(std::uint64_t root) : root_(root) {}

  std::uint64_t root() const noexcept { return root_; }
  std::uint64_t seed(std::string_view purpose,
                     std::initializer_list<std::uint64_t> place = {}) const;
  RandomBits bits(std::string_view purpose, std::initializer_list<std::uint64_t> place = {}) const {
    return RandomBits(seed(purpose, place));
  }
  /// Streams for a part of the run (a fold, a trial) that is independent of all other parts.
  RandomStreams part(std::string_view name, std::uint64_t index) const {
    return RandomStreams(seed(name, {index}));
  }

 private:
  std::uint64_t root_;
};

/// 0 … count-1 in random order.
std::vector<std::int64_t> random_permutation(std::int64_t count, RandomBits bits);

}  // namespace treadle
