#include "pair_merger.h"

#include <functional>
#include <queue>

#include <treadle/base/error.h>

#include "text_table.h"

namespace treadle::tokenizers {

PairMerger::PairMerger(const BpeVocabulary& vocabulary) {
  const TextTable table(vocabulary.tokens);
  const auto number_of = [&](std::string_view text) {
    const std::optional<std::int64_t> found = table.find(text);
    TREADLE_EXPECTS(found.has_value(), "a vocabulary has all bytes and what its merges make");
    return static_cast<std::uint32_t>(*found);
  };
  for (std::size_t byte = 0; byte < of_byte_.size(); ++byte) {
    const char text = static_cast<char>(byte);
    of_byte_[byte] = number_of({&text, 1});
  }
  merges_.reserve(vocabulary.merges.size());
  for (const auto& [left, right] : vocabulary.merges) {
    const std::string text = vocabulary.tokens[static_cast<std::size_t>(left)] +
                             vocabulary.tokens[static_cast<std::size_t>(right)];
    merges_.emplace(static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right),
                    Merge{static_cast<std::uint32_t>(merges_.size()), number_of(text)});
  }
}

const PairMerger::Merge* PairMerger::merge_of(std::uint32_t left, std::uint32_t right) const {
  const auto found = merges_.find(std::uint64_t{left} << 32 | right);
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<std::int64_t> PairMerger::tokens_of(std::string_view word) const {
  constexpr std::uint32_t kGone = 0xFFFFFFFF;
  // A list: a merge keeps its first token's place, and the second's is gone.
  struct Place {
    std::uint32_t token;
    std::size_t before;
    std::size_t after;
  };
  const std::size_t size = word.size();
  std::vector<Place> places(size);
  using Waiting = std::pair<std::uint32_t, std::size_t>;  // rank, place of the left token
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> queue;
  const auto wait = [&](std::size_t at) {
    if (at >= size || places[at].after >= size)
      return;
    if (const Merge* const merge = merge_of(places[at].token, places[places[at].after].token))
      queue.emplace(merge->rank, at);
  };
  for (std::size_t i = 0; i < size; ++i)
    places[i] = {of_byte_[static_cast<unsigned char>(word[i])], i == 0 ? size : i - 1, i + 1};
  for (std::size_t i = 0; i < size; ++i)
    wait(i);

  std::vector<std::size_t> same;
  while (!queue.empty()) {
    // All of one rank at once: what they make may be part of an earlier merge, and waits.
    const std::uint32_t rank = queue.top().first;
    same.clear();
    for (; !queue.empty() && queue.top().first == rank; queue.pop())
      same.push_back(queue.top().second);
    for (const std::size_t at : same) {
      Place& left = places[at];
      if (left.token == kGone || left.after >= size)
        continue;
      Place& right = places[left.after];
      const Merge* const merge = merge_of(left.token, right.token);
      if (merge == nullptr || merge->rank != rank)
        continue;
      left.token = merge->result;
      left.after = right.after;
      right.token = kGone;
      if (left.after < size)
        places[left.after].before = at;
      wait(left.before);
      wait(at);
    }
  }
  std::vector<std::int64_t> tokens;
  for (std::size_t at = 0; at < size; at = places[at].after)
    tokens.push_back(places[at].token);
  return tokens;
}

}  // namespace treadle::tokenizers
