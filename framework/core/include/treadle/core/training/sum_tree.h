#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace treadle {

/// Consecutive shards of a step: [first, last).
struct ShardRange {
  std::size_t first = 0;
  std::size_t last = 0;

  std::size_t size() const { return last - first; }
  bool contains(const ShardRange& other) const {
    return first <= other.first && other.last <= last;
  }
  bool operator==(const ShardRange&) const = default;
};

/// Where the sum of some shards is divided: the left part is the largest power of two below their
/// number. The gradients of a step are added by this tree, whoever has which of them, so that their
/// sum does not depend on it. Of 2 and 3 shards it is one after the other.
inline std::size_t middle_of(const ShardRange& range) {
  return range.first + std::bit_floor(range.size() - 1);
}

/// The largest parts of the sum of `whole` that lie within `own`, in their order: the sums
/// that a process with these shards can compute alone. One, where a power of two is divided evenly.
inline std::vector<ShardRange> partial_sums(const ShardRange& whole, const ShardRange& own) {
  if (whole.last <= own.first || own.last <= whole.first)
    return {};
  if (own.contains(whole))
    return {whole};
  const std::size_t middle = middle_of(whole);
  std::vector<ShardRange> sums = partial_sums({whole.first, middle}, own);
  const std::vector<ShardRange> right = partial_sums({middle, whole.last}, own);
  sums.insert(sums.end(), right.begin(), right.end());
  return sums;
}

}  // namespace treadle
