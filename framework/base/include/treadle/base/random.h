#pragma once

#include <array>
#include <cstddef>
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
/// the place in training it belongs to, so the order in which streams are requested, and other
/// requests, change nothing: `streams.seed("shuffle", {epoch})`.
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

/// One of the orders of 0 … size-1, as a function: the element at any position is computed from the
/// position alone, in the same time. So an order of a billion rows takes no memory, and going on in
/// the middle of it needs nothing but the position.
///
/// A generalized Feistel cipher with cycle walking (J. Black & P. Rogaway, "Ciphers with Arbitrary
/// Finite Domains", 2002), its round function the finalizer of SplitMix64.
class Permutation {
 public:
  /// Another seed gives another order. Expects size >= 1.
  Permutation(std::int64_t size, std::uint64_t seed);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(size_); }
  /// Expects 0 <= position < size().
  std::int64_t operator[](std::int64_t position) const;

 private:
  // Pairs of few numbers mix slowly.
  static constexpr std::int64_t kFew = 1024;
  static constexpr std::size_t kRoundsOfFew = 32;
  static constexpr std::size_t kRounds = 8;

  std::uint64_t size_;
  // The numbers below left_ * right_ >= size_ are pairs; each round changes one of the two.
  std::uint64_t left_;
  std::uint64_t right_;
  std::array<std::uint64_t, kRoundsOfFew> keys_;
  std::size_t rounds_;
};

/// 0 … count-1 in random order.
std::vector<std::int64_t> random_permutation(std::int64_t count, RandomBits bits);

}  // namespace treadle
