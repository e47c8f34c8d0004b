#include "byte_bpe.h"

#include <algorithm>

#include <treadle/base/error.h>

#include "bpe_files.h"
#include "bpe_training.h"
#include "stored_values.h"
#include "text_checks.h"
#include "word_cache.h"

namespace treadle::tokenizers {
namespace {

// GPT-2's, with \s written out as Unicode's White_Space: \s of PCRE2 has U+180E, too.
constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\t-\r\x{85}\p{Z}\p{L}\p{N}]+)"
    R"(|[\t-\r\x{85}\p{Z}]+(?![^\t-\r\x{85}\p{Z}])|[\t-\r\x{85}\p{Z}]+)";
constexpr std::int64_t kBytes = 256;

}  // namespace

ByteBpe::ByteBpe(const Config& config)
    : vocabulary_file_(config.find<std::string>("vocabulary")),
      merges_file_(config.find<std::string>("merges")),
      size_(config.get_or<std::int64_t>("vocabulary_size", 0)),
      with_end_(config.get_or<bool>("end_of_text", true)),
      pattern_(kGpt2Words),
      cache_(std::make_unique<WordCache>()) {
  if (vocabulary_file_.has_value() != merges_file_.has_value()) {
    config.fail(vocabulary_file_ ? "vocabulary" : "merges",
                vocabulary_file_ ? "needs \"merges\", the file with the pairs in their order"
                                 : "needs \"vocabulary\", the file with the tokens' numbers");
  }
  if (vocabulary_file_) {
    for (const char* const key : {"vocabulary_size", "end_of_text"}) {
      if (config.has(key))
        config.fail(key, "has no effect beside \"vocabulary\", which decides it; remove it");
    }
    return;
  }
  if (size_ < kBytes + (with_end_ ? 1 : 0)) {
    config.fail("vocabulary_size",
                "must be at least 257: 256 bytes and the end of text; set \"end_of_text\": false "
                "for bytes alone");
  }
}

ByteBpe::~ByteBpe() = default;

void ByteBpe::do_fit(std::span<const std::string_view> documents) {
  use(vocabulary_file_ ? read_bpe_files(*vocabulary_file_, *merges_file_) : trained(documents));
}

BpeVocabulary ByteBpe::trained(std::span<const std::string_view> documents) const {
  expect_utf8(documents);
  ByText<std::int64_t> words;
  for (const std::string_view text : documents) {
    pattern_.for_each(text, [&](std::string_view word) {
      const auto known = words.find(word);
      if (known == words.end())
        words.emplace(word, 1);
      else
        ++known->second;
    });
  }
  BpeVocabulary vocabulary = train_bpe(words, size_ - (with_end_ ? 1 : 0));
  if (with_end_) {
    vocabulary.end_of_text = static_cast<std::int64_t>(vocabulary.tokens.size());
    vocabulary.tokens.emplace_back();
  }
  return vocabulary;
}

void ByteBpe::use(BpeVocabulary vocabulary) {
  merger_ = PairMerger(vocabulary);
  vocabulary_ = std::move(vocabulary);
}

std::int64_t ByteBpe::do_vocabulary_size() const {
  return static_cast<std::int64_t>(vocabulary_.tokens.size());
}

std::vector<std::int64_t> ByteBpe::do_encode(std::string_view text) const {
  expect_utf8(text);
  std::vector<std::int64_t> tokens;
  pattern_.for_each(text, [&](std::string_view word) {
    if (cache_->append(word, tokens))
      return;
    const std::vector<std::int64_t> pieces = merger_.tokens_of(word);
    cache_->keep(word, pieces);
    tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  });
  return tokens;
}

std::string ByteBpe::do_decode(std::span<const std::int64_t> tokens) const {
  std::string text;
  for (const std::int64_t token : tokens)
    text += vocabulary_.tokens[static_cast<std::size_t>(token)];
  return text;
}

std::string ByteBpe::do_token(std::int64_t index) const {
  return vocabulary_.tokens[static_cast<std::size_t>(index)];
}

StateDict ByteBpe::do_state() const {
  StateDict state;
  put_texts(state, "tokens", vocabulary_.tokens);
  std::vector<std::int64_t> numbers;
  for (const auto& [left, right] : vocabulary_.merges)
    numbers.insert(numbers.end(), {left, right});
  put_numbers(state, "merges", numbers);
  state.put("end_of_text", nlohmann::json(vocabulary_.end_of_text.value_or(-1)));
  return state;
}

void ByteBpe::do_load_state(const StateDict& state) {
  BpeVocabulary stored;
  stored.tokens = stored_texts(state, "tokens");
  const auto size = static_cast<std::int64_t>(stored.tokens.size());
  const std::int64_t end = stored_integer(state, "end_of_text");
  if (end < -1 || end >= size)
    refuse_state("the end of text is no token");
  if (end >= 0)
    stored.end_of_text = end;
  for (std::int64_t i = 0; i < size; ++i) {
    if (stored.tokens[static_cast<std::size_t>(i)].empty() != (i == end))
      refuse_state("token " + std::to_string(i) +
                   (i == end ? " is the end of text and has bytes" : " has no bytes"));
  }
  const TextTable table(stored.tokens);
  if (table.has_twins())
    refuse_state("two tokens have the same bytes");
  for (int byte = 0; byte < kBytes; ++byte) {
    if (!table.find(std::string(1, static_cast<char>(byte))))
      refuse_state("the byte " + std::to_string(byte) + " has no token");
  }
  const std::vector<std::int64_t> numbers = stored_numbers(state, "merges");
  if (numbers.size() % 2 != 0)
    refuse_state("a merge lacks its second token");
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const std::int64_t left = numbers[i];
    const std::int64_t right = numbers[i + 1];
    if (std::min(left, right) < 0 || std::max(left, right) >= size ||
        !table.find(table[left] + table[right]))
      refuse_state("merge " + std::to_string(i / 2) + " makes no token");
    stored.merges.emplace_back(left, right);
  }
  use(std::move(stored));
}

}  // namespace treadle::tokenizers
