#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

namespace treadle {

/// The problems of the rows of a data set: the first few in words, the rest as a number. One per
/// reading; not thread-safe.
class RowProblems {
 public:
  static constexpr std::size_t kMostListed = 5;

  bool is_full() const { return listed_.size() == kMostListed; }

  /// `sentence`, a function, gives the words: "points.csv:7: column \"x\": expected a number, got
  /// \"?\"". It is called for what will be listed alone.
  template <typename Sentence>
  void add(Sentence&& sentence) {
    if (!is_full())
      listed_.push_back(std::forward<Sentence>(sentence)());
    ++count_;
  }

  /// More of them, when is_full().
  void add_unlisted(std::int64_t count) { count_ += count; }

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

}  // namespace treadle
