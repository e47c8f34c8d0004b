#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bpe_vocabulary.h"

namespace treadle::tokenizers {

/// Splits words into the tokens of a vocabulary: bytes at first, then all occurrences of the
/// earliest merge, from left to right, then those of the next, until none applies. A word of n
/// bytes takes O(n log n).
class PairMerger {
 public:
  PairMerger() = default;
  /// Expects tokens for all bytes, and for what each merge makes.
  explicit PairMerger(const BpeVocabulary& vocabulary);

  std::vector<std::int64_t> tokens_of(std::string_view word) const;

 private:
  struct Merge {
    std::uint32_t rank;
    std::uint32_t result;
  };

  const Merge* merge_of(std::uint32_t left, std::uint32_t right) const;

  std::array<std::uint32_t, 256> of_byte_{};
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace treadle::tokenizers
