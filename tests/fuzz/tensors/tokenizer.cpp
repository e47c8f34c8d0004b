#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/core/data/tokenizer.h>

#include "byte_bpe.h"
#include "byte_letters.h"
#include "bytes.h"
#include "characters.h"
#include "memory_file.h"
#include "stored_values.h"
#include "targets.h"
#include "words.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;
using Maker = std::function<std::unique_ptr<Tokenizer>()>;

template <typename Class>
Maker maker(Json parameters) {
  return [parameters = std::move(parameters)] {
    return std::make_unique<Class>(Config(parameters, "/data/tokenizer"));
  };
}

/// `"!":33,…`, all 256 of them: a vocabulary without them is refused.
std::string bytes_by_number() {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) {
    text += (byte == 0 ? "" : ",") +
            Json(tokenizers::letters_of(std::string(1, static_cast<char>(byte)))).dump() + ":" +
            std::to_string(byte);
  }
  return text;
}

std::string with_bytes(std::string_view written) {
  constexpr std::string_view kMark = "@BYTES@";
  static const std::string bytes = bytes_by_number();
  std::string text(written);
  if (const std::size_t at = text.find(kMark); at != std::string::npos)
    text.replace(at, kMark.size(), bytes);
  return text;
}

std::size_t longest_refusal(std::size_t size) {
  return 2000 + 6 * size;
}

/// Fits; false where what it was given is refused.
bool fits(Tokenizer& tokenizer, std::string_view document, std::size_t size) {
  const std::array documents{document};
  try {
    tokenizer.fit(documents);
    return true;
  } catch (const DataError& error) {
    promise_readable(error.what(), longest_refusal(size));
    return false;
  }
}

/// Nothing where the text is refused.
std::vector<std::int64_t> encoded(const Tokenizer& tokenizer, std::string_view text) {
  try {
    return tokenizer.encode(text);
  } catch (const DataError& error) {
    promise_readable(error.what(), longest_refusal(text.size()));
    return {-1};
  }
}

void promise_tokens(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<std::int64_t> tokens = encoded(tokenizer, text);
  if (tokens == std::vector<std::int64_t>{-1})
    return;
  std::string pieces;
  for (const std::int64_t token : tokens) {
    promise(token >= 0 && token < tokenizer.vocabulary_size(), "a token is in the vocabulary");
    promise(token != tokenizer.end_of_text(), "no text has the end of text in it");
    pieces += tokenizer.token(token);
  }
  const std::string decoded = tokenizer.decode(tokens);
  if (tokenizer.is_exact()) {
    promise(decoded == text, "decoding is the inverse of encoding");
    promise(pieces == text, "the bytes of tokens are their text");
  }
}

void promise_names(const Tokenizer& tokenizer) {
  const std::vector<std::string> names = token_names(tokenizer);
  promise(static_cast<std::int64_t>(names.size()) == tokenizer.vocabulary_size() &&
              std::set<std::string>(names.begin(), names.end()).size() == names.size(),
          "each token has a name of its own");
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    promise_readable(names[i], 8 * 16'384);
    all.push_back(static_cast<std::int64_t>(i));
  }
  static_cast<void>(tokenizer.decode(all));
}

void promise_all(const Tokenizer& tokenizer, const Maker& make, std::string_view text) {
  promise_tokens(tokenizer, text);
  promise_names(tokenizer);
  const std::unique_ptr<Tokenizer> again = make();
  again->load_state(tokenizer.state());
  promise(again->vocabulary_size() == tokenizer.vocabulary_size() &&
              again->end_of_text() == tokenizer.end_of_text() &&
              token_names(*again) == token_names(tokenizer),
          "a stored vocabulary has the same tokens");
  promise(encoded(*again, text) == encoded(tokenizer, text),
          "a stored vocabulary encodes a text to the same tokens");
}

/// A stranger's state: what is written, over what a training has stored. Lists of texts and of
/// numbers become tensors.
StateDict changed(const StateDict& stored, const Json& written) {
  StateDict state = stored;
  for (const auto& [name, value] : written.items()) {
    const auto are = [&, &list = value](bool (Json::*is)() const noexcept) {
      return list.is_array() &&
             std::all_of(list.begin(), list.end(), [&](const Json& item) { return (item.*is)(); });
    };
    if (name.empty() || name.find('/') != std::string::npos)
      continue;
    if (are(&Json::is_string))
      tokenizers::put_texts(state, name, value.get<std::vector<std::string>>());
    else if (are(&Json::is_number_integer))
      tokenizers::put_numbers(state, name, value.get<std::vector<std::int64_t>>());
    else
      state.put(name, value);
  }
  return state;
}

void load(const Maker& make, const StateDict& state, std::string_view text, std::size_t size) {
  const std::unique_ptr<Tokenizer> tokenizer = make();
  try {
    tokenizer->load_state(state);
  } catch (const StorageError& error) {
    return promise_readable(error.what(), longest_refusal(size));
  }
  promise_all(*tokenizer, make, text);
}

}  // namespace

void tokenizer(std::string_view bytes) {
  std::string_view rest = bytes;
  const std::string_view document = take_part(rest);
  const std::string_view text = take_part(rest);
  const MemoryFile vocabulary(with_bytes(take_part(rest)));
  const MemoryFile merges(take_part(rest));
  const Json written = parse_json(rest);

  const std::array<Maker, 6> makers{
      maker<tokenizers::Bytes>({{"end_of_text", true}}),
      maker<tokenizers::Characters>({{"unknown", "error"}, {"end_of_text", false}}),
      maker<tokenizers::Characters>({{"unknown", "token"}, {"end_of_text", true}}),
      maker<tokenizers::Words>({{"lowercase", true}, {"min_count", 1}, {"end_of_text", true}}),
      maker<tokenizers::ByteBpe>({{"vocabulary_size", 270}}),
      maker<tokenizers::ByteBpe>(
          {{"vocabulary", vocabulary.path().string()}, {"merges", merges.path().string()}})};
  for (const Maker& make : makers) {
    const std::unique_ptr<Tokenizer> made = make();
    const bool has_vocabulary = fits(*made, document, bytes.size());
    if (has_vocabulary)
      promise_all(*made, make, text);
    if (written.is_object())
      load(make, changed(has_vocabulary ? made->state() : StateDict(), written), text,
           bytes.size());
  }
}

}  // namespace treadle::fuzz
