#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "text_table.h"

namespace treadle::tokenizers {

/// The tokens of the first words that were encoded: in text few words make up most of it. Bounded
/// by their number and length, a few MiB. For any number of threads.
class WordCache {
 public:
  /// Whether the word is known; then its tokens are appended.
  bool append(std::string_view word, std::vector<std::int64_t>& tokens) const {
    if (word.size() > kLongest)
      return false;
    const std::shared_lock lock(mutex_);
    const auto found = words_.find(word);
    if (found == words_.end())
      return false;
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
    return true;
  }

  void keep(std::string_view word, const std::vector<std::int64_t>& tokens) {
    if (word.size() > kLongest)
      return;
    const std::unique_lock lock(mutex_);
    if (words_.size() < kMost)
      words_.emplace(word, std::vector<std::uint32_t>(tokens.begin(), tokens.end()));
  }

 private:
  static constexpr std::size_t kLongest = 32;  // bytes
  static constexpr std::size_t kMost = 1 << 15;

  mutable std::shared_mutex mutex_;
  ByText<std::vector<std::uint32_t>> words_;
};

}  // namespace treadle::tokenizers
