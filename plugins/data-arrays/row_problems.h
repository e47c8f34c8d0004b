#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

namespace treadle::arrays {

/// What is wrong with the numbers in some files: the first few in words, the rest as a number.
class RowProblems {
 public:
  static constexpr std::size_t kMostListed = 5;

  /// `sentence` is a function: words are only made of what will be listed.
  template <typename Sentence>
  void add(Sentence&& sentence) {
    if (listed_.size() < kMostListed)
      listed_.push_back(std::forward<Sentence>(sentence)());
    ++count_;
  }

  /// Throws a DataError with one line per problem when there was any.
  void throw_if_any() const {
    if (count_ == 0)
      return;
    std::string text;
    for (const std::string& sentence : listed_)
      text += (text.empty() ? "" : "\n") + sentence;
    const std::int64_t rest = count_ - static_cast<std::int64_t>(listed_.size());
    if (rest > 0)
      text += "\nand " + std::to_string(rest) + " more";
    throw DataError(text);
  }

 private:
  std::vector<std::string> listed_;
  std::int64_t count_ = 0;
};

}  // namespace treadle::arrays
