#pragma once

#include <cstdint>
#include <span>

namespace treadle {

/// One sequence of random words, each of which is computed from its place alone: no state, so any
/// part of the sequence can be drawn by anyone, in any order, and again.
///
/// Philox4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1,
/// 2, 3", 2011): the key is `seed`, the counter is (block, stream), 64 bits each and low words
/// first; word i of the sequence is word i % 4 of block i / 4.
struct Philox {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< tells the sequences of one seed apart

  /// Words 4 * block, … of the sequence. Expects words.size() to be a multiple of 4. The same with
  /// every instruction set.
  void fill(std::uint64_t block, std::span<std::uint32_t> words) const;
};

}  // namespace treadle
