#include "characters.h"

#include <algorithm>
#include <set>

#include <treadle/base/error.h>
#include <treadle/base/utf8.h>

#include "stored_values.h"
#include "text_checks.h"

namespace treadle::tokenizers {
namespace {

constexpr std::int64_t kLastCodePoint = 0x10FFFF;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

Characters::Characters(const Config& config)
    : with_unknown_(config.get<std::string>("unknown") == "token"),
      with_end_(config.get<bool>("end_of_text")) {}

Characters::~Characters() = default;

void Characters::do_fit(std::span<const std::string_view> documents) {
  expect_utf8(documents);
  std::set<char32_t> found;
  for (std::string_view text : documents) {
    while (!text.empty()) {
      const std::size_t length = utf8_character(text);
      found.insert(code_point_of(text.substr(0, length)));
      text.remove_prefix(length);
    }
  }
  if (found.empty()) {
    throw DataError(
        "the tokenizer characters: the training documents are empty; give it a text with the "
        "characters to know, or use the tokenizer \"bytes\"");
  }
  characters_.assign(found.begin(), found.end());
  index();
}

void Characters::index() {
  numbers_.clear();
  for (std::size_t i = 0; i < characters_.size(); ++i)
    numbers_.emplace(characters_[i], static_cast<std::int64_t>(i));
}

std::int64_t Characters::do_vocabulary_size() const {
  return characters_.empty() ? 0 : characters() + (with_unknown_ ? 1 : 0) + (with_end_ ? 1 : 0);
}

std::vector<std::int64_t> Characters::do_encode(std::string_view text) const {
  expect_utf8(text);
  std::vector<std::int64_t> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_character(text.substr(at));
    const std::string_view character = text.substr(at, length);
    const auto found = numbers_.find(code_point_of(character));
    if (found == numbers_.end() && !with_unknown_) {
      throw DataError("the text cannot be encoded: the character at byte " + std::to_string(at) +
                      ", " + describe_character(character) +
                      ", is not in the training documents; set \"unknown\": \"token\", or use the "
                      "tokenizer \"bytes\" or \"byte_bpe\"");
    }
    tokens.push_back(found == numbers_.end() ? characters() : found->second);
    at += length;
  }
  return tokens;
}

std::string Characters::do_decode(std::span<const std::int64_t> tokens) const {
  std::string text;
  for (const std::int64_t token : tokens) {
    if (token < characters())
      text += utf8_of(characters_[static_cast<std::size_t>(token)]);
    else if (with_unknown_ && token == characters())
      text += kReplacement;
  }
  return text;
}

std::optional<std::int64_t> Characters::do_end_of_text() const {
  return with_end_ ? std::optional(do_vocabulary_size() - 1) : std::nullopt;
}

std::string Characters::do_token(std::int64_t index) const {
  return index < characters() ? utf8_of(characters_[static_cast<std::size_t>(index)])
                              : std::string();
}

StateDict Characters::do_state() const {
  StateDict state;
  put_numbers(state, "characters",
              std::vector<std::int64_t>(characters_.begin(), characters_.end()));
  state.put("unknown", nlohmann::json(with_unknown_));
  state.put("end_of_text", nlohmann::json(with_end_));
  return state;
}

void Characters::do_load_state(const StateDict& state) {
  const std::vector<std::int64_t> stored = stored_numbers(state, "characters");
  const auto is_none = [](std::int64_t value) {
    return value < 0 || value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF);
  };
  if (stored.empty() || std::any_of(stored.begin(), stored.end(), is_none))
    refuse_state("\"characters\" are not code points");
  if (std::adjacent_find(stored.begin(), stored.end(), std::greater_equal<>()) != stored.end())
    refuse_state("\"characters\" are not in ascending order");
  with_unknown_ = stored_bool(state, "unknown");
  with_end_ = stored_bool(state, "end_of_text");
  characters_.assign(stored.begin(), stored.end());
  index();
}

}  // namespace treadle::tokenizers
