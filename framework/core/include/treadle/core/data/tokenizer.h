#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/components/state_dict.h>

namespace treadle {

/// Text as numbers and back: bytes, characters, words, pieces of words. Named in the data's
/// `tokenizer`.
///
/// A *token* is a piece of text, its number an index into the vocabulary. The vocabulary is made
/// once, by fit() or from files that the parameters name; state() has all of it, so a model that
/// was trained with it needs neither. Texts are UTF-8.
///
/// Life: constructed from parameters (touches no file) → fit() or load_state(), once → use. Const
/// functions are then thread-safe. Failures are DataErrors that name the byte.
class Tokenizer : public Component, public Stateful {
 public:
  static constexpr std::string_view kInterface = "treadle.tokenizer/0";
  /// More entries than any vocabulary in use has.
  static constexpr std::int64_t kMostTokens = std::int64_t{1} << 22;

  ~Tokenizer() override;

  /// Makes the vocabulary from the documents to train on: a function of their contents and the
  /// parameters. Where files have it, reads them, and the documents are only examples. Expects that
  /// there is no vocabulary yet.
  void fit(std::span<const std::string_view> documents);

  // The rest expects a vocabulary.

  /// Tokens are the numbers in [0, vocabulary_size()).
  std::int64_t vocabulary_size() const;

  /// The tokens of a text. Never has end_of_text(), whatever the text: texts are data. Throws a
  /// DataError for a text that is not in UTF-8, unless tokens are bytes, and for one that the
  /// vocabulary cannot express and that has no token for the unknown.
  std::vector<std::int64_t> encode(std::string_view text) const;

  /// The text of tokens: encode()'s inverse where it is_exact(). What ends within a character of
  /// several bytes gives its first bytes. end_of_text() is no text. Throws a DataError for a token
  /// outside the vocabulary.
  std::string decode(std::span<const std::int64_t> tokens) const;

  /// Whether decode(encode(text)) is the text for every text that encode() takes.
  bool is_exact() const;

  /// The token that stands before each document of a text that several are joined in, and at which
  /// generated text ends. Nothing where the vocabulary has none.
  std::optional<std::int64_t> end_of_text() const;

  /// The bytes of one token, for names and for counting bytes: of end_of_text() and other tokens
  /// that are no text nothing. Where is_exact(), the bytes of tokens in order are their text.
  std::string token(std::int64_t index) const;

 private:
  virtual void do_fit(std::span<const std::string_view> documents) = 0;
  virtual std::int64_t do_vocabulary_size() const = 0;  // 0 without a vocabulary
  virtual std::vector<std::int64_t> do_encode(std::string_view text) const = 0;
  virtual std::string do_decode(std::span<const std::int64_t> tokens) const = 0;
  virtual bool do_is_exact() const = 0;
  virtual std::optional<std::int64_t> do_end_of_text() const { return std::nullopt; }
  virtual std::string do_token(std::int64_t index) const = 0;
};

/// The names of all tokens, in order and each another, for people and for stored documents: the
/// text of a token, with '<' and each byte that is not part of printable UTF-8 as <0x3C>;
/// <end_of_text> for that token, <unknown> for others that are no text, and a number behind a name
/// that an earlier token has, as in "a<2>".
std::vector<std::string> token_names(const Tokenizer& tokenizer);

/// How many bytes the token of such a name has; 0 for those that are no text. Expects a name of
/// token_names().
std::int64_t bytes_of_token_name(std::string_view name);

}  // namespace treadle
