#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace treadle::tokenizers {

/// What byte pair encoding has learned: tokens, and the pairs of them that are merged, the first
/// merge first.
struct BpeVocabulary {
  std::vector<std::string> tokens;  ///< bytes, by number; that of `end_of_text` is empty
  std::vector<std::pair<std::int64_t, std::int64_t>> merges;  ///< numbers of tokens
  std::optional<std::int64_t> end_of_text;
};

}  // namespace treadle::tokenizers
