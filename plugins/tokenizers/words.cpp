#include "words.h"

#include <algorithm>

#include <treadle/base/error.h>

#include "stored_values.h"
#include "text_checks.h"

namespace treadle::tokenizers {
namespace {

// Whitespace is Unicode's White_Space: \s of PCRE2 has U+180E, too.
constexpr const char* kWords =
    R"([\p{L}\p{M}\p{N}_]+(?:['’][\p{L}\p{M}\p{N}_]+)*|[^\t-\r\x{85}\p{Z}])";
constexpr std::string_view kMissing = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

Words::Words(const Config& config)
    : lowercase_(config.get<bool>("lowercase")),
      max_vocabulary_(config.find<std::int64_t>("max_vocabulary")),
      min_count_(config.get<std::int64_t>("min_count")),
      with_end_(config.get<bool>("end_of_text")),
      pattern_(kWords) {}

Words::~Words() = default;

template <typename Each>
void Words::for_each_word(std::string_view text, Each&& each) const {
  if (!lowercase_)
    return pattern_.for_each(text, each);
  const std::string lower = in_lower_case(text);
  pattern_.for_each(lower, each);
}

void Words::do_fit(std::span<const std::string_view> documents) {
  expect_utf8(documents);
  ByText<std::int64_t> counts;
  for (const std::string_view text : documents) {
    for_each_word(text, [&](std::string_view word) {
      const auto known = counts.find(word);
      if (known == counts.end())
        counts.emplace(word, 1);
      else
        ++known->second;
    });
  }
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const auto& [word, count] : counts) {
    if (count >= min_count_)
      found.emplace_back(-count, word);
  }
  std::sort(found.begin(), found.end());
  const std::int64_t others = with_end_ ? 2 : 1;
  const std::int64_t most = max_vocabulary_.value_or(kMostTokens) - others;
  if (static_cast<std::int64_t>(found.size()) > most) {
    if (!max_vocabulary_) {
      throw DataError("the tokenizer words: the training documents have " +
                      std::to_string(found.size()) + " words, and a vocabulary has at most " +
                      std::to_string(kMostTokens) +
                      " tokens; set \"max_vocabulary\" or a higher \"min_count\"");
    }
    found.resize(static_cast<std::size_t>(most));
  }
  std::vector<std::string> texts;
  for (auto& [count, word] : found)
    texts.push_back(std::move(word));
  words_ = TextTable(std::move(texts));
  is_fitted_ = true;
}

std::int64_t Words::do_vocabulary_size() const {
  return is_fitted_ ? 1 + words_.size() + (with_end_ ? 1 : 0) : 0;
}

std::vector<std::int64_t> Words::do_encode(std::string_view text) const {
  expect_utf8(text);
  std::vector<std::int64_t> tokens;
  for_each_word(text, [&](std::string_view word) {
    const std::optional<std::int64_t> found = words_.find(word);
    tokens.push_back(found ? *found + 1 : kUnknown);
  });
  return tokens;
}

std::string Words::do_decode(std::span<const std::int64_t> tokens) const {
  std::string text;
  bool is_first = true;
  for (const std::int64_t token : tokens) {
    if (with_end_ && token == do_vocabulary_size() - 1)
      continue;
    if (!is_first)
      text += ' ';
    is_first = false;
    text += token == kUnknown ? kMissing : std::string_view(words_[token - 1]);
  }
  return text;
}

std::optional<std::int64_t> Words::do_end_of_text() const {
  return with_end_ ? std::optional(do_vocabulary_size() - 1) : std::nullopt;
}

std::string Words::do_token(std::int64_t index) const {
  return index >= 1 && index <= words_.size() ? words_[index - 1] : std::string();
}

StateDict Words::do_state() const {
  StateDict state;
  put_texts(state, "words", words_.texts());
  state.put("lowercase", nlohmann::json(lowercase_));
  state.put("end_of_text", nlohmann::json(with_end_));
  return state;
}

void Words::do_load_state(const StateDict& state) {
  TextTable words(stored_texts(state, "words"));
  if (words.has_twins() || words.find(""))
    refuse_state("\"words\" are not all different, or one is empty");
  lowercase_ = stored_bool(state, "lowercase");
  with_end_ = stored_bool(state, "end_of_text");
  words_ = std::move(words);
  is_fitted_ = true;
}

}  // namespace treadle::tokenizers
