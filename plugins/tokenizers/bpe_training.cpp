#include "bpe_training.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace treadle::tokenizers {
namespace {

using Number = std::uint32_t;
using Pair = std::uint64_t;

Pair pair_of(Number left, Number right) {
  return Pair{left} << 32 | right;
}
Number left_of(Pair pair) {
  return static_cast<Number>(pair >> 32);
}
Number right_of(Pair pair) {
  return static_cast<Number>(pair);
}

/// Keeps the counts of all pairs while words change: a merge costs as much as the words it changes.
class Trainer {
 public:
  explicit Trainer(const ByText<std::int64_t>& words) {
    for (int byte = 0; byte < 256; ++byte)
      tokens_.emplace_back(1, static_cast<char>(byte));
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      numbers_.emplace(tokens_[i], static_cast<Number>(i));
    for (const auto& [text, count] : words) {
      Word word{{}, count};
      for (const char byte : text)
        word.tokens.push_back(static_cast<unsigned char>(byte));
      words_.push_back(std::move(word));
    }
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::vector<Number>& word = words_[i].tokens;
      for (std::size_t at = 1; at < word.size(); ++at)
        add(pair_of(word[at - 1], word[at]), i);
    }
    queue_changed();
  }

  BpeVocabulary trained(std::int64_t size) {
    BpeVocabulary learned;
    while (static_cast<std::int64_t>(tokens_.size()) < size) {
      const std::optional<Pair> pair = most_frequent();
      if (!pair)
        break;
      learned.merges.emplace_back(left_of(*pair), right_of(*pair));
      merge(*pair);
    }
    learned.tokens = std::move(tokens_);
    return learned;
  }

 private:
  struct Word {
    std::vector<Number> tokens;
    std::int64_t count;
  };
  struct Occurrences {
    std::int64_t count = 0;
    std::vector<std::size_t> words;  ///< that have the pair, or had it
  };
  struct Candidate {
    std::int64_t count;
    Pair pair;
  };

  void add(Pair pair, std::size_t word) {
    Occurrences& found = pairs_[pair];
    found.count += words_[word].count;
    if (found.words.empty() || found.words.back() != word)
      found.words.push_back(word);
    grown_.insert(pair);
  }
  void remove(Pair pair, std::size_t word) { pairs_[pair].count -= words_[word].count; }

  void queue_changed() {
    for (const Pair pair : grown_)
      push({pairs_[pair].count, pair});
    grown_.clear();
  }

  bool is_worse(const Candidate& a, const Candidate& b) const {
    if (a.count != b.count)
      return a.count < b.count;
    if (left_of(a.pair) != left_of(b.pair))
      return tokens_[left_of(a.pair)] > tokens_[left_of(b.pair)];
    return tokens_[right_of(a.pair)] > tokens_[right_of(b.pair)];
  }

  void push(Candidate candidate) {
    if (candidate.count < 2)
      return;
    queue_.push_back(candidate);
    std::push_heap(queue_.begin(), queue_.end(),
                   [this](const auto& a, const auto& b) { return is_worse(a, b); });
  }

  // Counts that fell stay in the queue until they come up: then they get their new place.
  std::optional<Pair> most_frequent() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(),
                    [this](const auto& a, const auto& b) { return is_worse(a, b); });
      const Candidate best = queue_.back();
      queue_.pop_back();
      const auto found = pairs_.find(best.pair);
      if (found == pairs_.end())
        continue;
      if (found->second.count == best.count)
        return best.pair;
      push({found->second.count, best.pair});
    }
    return std::nullopt;
  }

  void merge(Pair pair) {
    const Number left = left_of(pair);
    const Number right = right_of(pair);
    const std::string text = tokens_[left] + tokens_[right];
    const auto [known, is_new] = numbers_.emplace(text, static_cast<Number>(tokens_.size()));
    if (is_new)
      tokens_.push_back(text);
    const Number merged = known->second;
    const std::vector<std::size_t> words = std::move(pairs_[pair].words);
    for (const std::size_t i : words)
      merge_in(i, left, right, merged);
    pairs_.erase(pair);
    grown_.erase(pair);
    queue_changed();
  }

  void merge_in(std::size_t index, Number left, Number right, Number merged) {
    std::vector<Number>& word = words_[index].tokens;
    std::size_t kept = 0;
    for (std::size_t at = 0; at < word.size();) {
      if (at + 1 == word.size() || word[at] != left || word[at + 1] != right) {
        word[kept++] = word[at++];
        continue;
      }
      // Counts are those of the word as it is now: merged before here, not yet after it.
      if (kept > 0) {
        remove(pair_of(word[kept - 1], left), index);
        add(pair_of(word[kept - 1], merged), index);
      }
      if (at + 2 < word.size()) {
        remove(pair_of(right, word[at + 2]), index);
        add(pair_of(merged, word[at + 2]), index);
      }
      word[kept++] = merged;
      at += 2;
    }
    word.resize(kept);
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, Number> numbers_;
  std::vector<Word> words_;
  std::unordered_map<Pair, Occurrences> pairs_;
  std::unordered_set<Pair> grown_;
  std::vector<Candidate> queue_;  ///< a heap
};

}  // namespace

BpeVocabulary train_bpe(const ByText<std::int64_t>& words, std::int64_t size) {
  return Trainer(words).trained(size);
}

}  // namespace treadle::tokenizers
