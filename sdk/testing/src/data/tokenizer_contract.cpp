#include <treadle/testing/data/tokenizer_contract.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/base/utf8.h>
#include <treadle/core/data/tokenizer.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>

#include "claim.h"

namespace treadle::testing {

std::vector<std::string> tokenizer_documents() {
  return {"The quick brown fox jumps over the lazy dog. The dog doesn't mind.\n",
          "Größe, naïve café: 12,5 °C\tund 3\u00A0½ Äpfel.\r\n\n  Zwei  Leerzeichen   am Ende  ",
          "Το γρήγορο καφέ αλεπού; 日本語の文章、中文。",
          "emoji: 😀😀 👍🏽 e\u0301 <|endoftext|> </s> <end_of_text> <unk> <0x0A>"};
}

namespace {

/// What the claims share.
class TokenizerClaims : public ::testing::WithParamInterface<TokenizerCase> {
 protected:
  using Tokens = std::vector<std::int64_t>;

  static std::vector<std::string_view> views(const std::vector<std::string>& documents) {
    return {documents.begin(), documents.end()};
  }

  static std::unique_ptr<Tokenizer> fitted() {
    auto tokenizer = GetParam().make();
    tokenizer->fit(views(GetParam().documents));
    return tokenizer;
  }

  /// The documents, and texts of up to 60 of their characters in any order.
  static const std::vector<std::string>& texts() {
    static std::vector<std::string> texts;
    static std::vector<std::string> of;
    if (of != GetParam().documents) {
      of = GetParam().documents;
      texts = GetParam().documents;
      std::vector<std::string_view> characters;
      for (const std::string& document : GetParam().documents) {
        for (std::string_view rest = document; !rest.empty();) {
          const std::size_t length = utf8_character(rest);
          characters.push_back(rest.substr(0, length));
          rest.remove_prefix(length);
        }
      }
      for (std::uint64_t i = 0; i < 200; ++i)
        texts.push_back(random_text(characters, i));
    }
    return texts;
  }

  static std::string random_text(const std::vector<std::string_view>& characters,
                                 std::uint64_t index) {
    RandomBits bits = RandomStreams(5).bits("text", {index});
    std::string text;
    for (std::uint64_t left = bits.below(60); left > 0; --left)
      text += characters[static_cast<std::size_t>(bits.below(characters.size()))];
    return text;
  }

  static std::vector<Tokens> encoded(const Tokenizer& tokenizer) {
    std::vector<Tokens> all;
    for (const std::string& text : texts())
      all.push_back(tokenizer.encode(text));
    return all;
  }

  static void expect_alike(const Tokenizer& got, const Tokenizer& expected) {
    ASSERT_EQ(got.vocabulary_size(), expected.vocabulary_size());
    EXPECT_EQ(token_names(got), token_names(expected));
    EXPECT_EQ(got.end_of_text(), expected.end_of_text());
    EXPECT_EQ(got.is_exact(), expected.is_exact());
    const std::vector<Tokens> tokens = encoded(expected);
    EXPECT_EQ(encoded(got), tokens);
    for (std::size_t i = 0; i < tokens.size(); i += 10)
      EXPECT_EQ(got.decode(tokens[i]), expected.decode(tokens[i]));
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = fitted();
};

}  // namespace

LINKS_CLAIMS_OF(Tokenizer)

CLAIM(Tokenizer, IsExactWhereItSaysSo) {
  EXPECT_EQ(tokenizer_->is_exact(), GetParam().is_exact);
}

CLAIM(Tokenizer, DecodingUndoesEncoding) {
  if (!GetParam().is_exact)
    return;
  for (const std::string& text : texts())
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text)), text);
}

// Characters that no document has, of one to four bytes.
CLAIM(Tokenizer, TakesAnyTextOrRefusesIt) {
  const std::vector<std::string_view> characters = {"a", "Z", "9", "~",  "\x01",   "\x7F", "ß",
                                                    "Ж", "ش", "€", "한", "\uFFFD", "𝒳",    "🎉"};
  for (std::uint64_t i = 1000; i < 1100; ++i) {
    const std::string text = random_text(characters, i);
    try {
      const Tokens tokens = tokenizer_->encode(text);
      if (GetParam().is_exact) {
        EXPECT_EQ(tokenizer_->decode(tokens), text);
      }
    } catch (const DataError& error) {
      EXPECT_STRNE(error.what(), "");
    } catch (const std::exception& error) {
      ADD_FAILURE() << "expected a DataError: " << error.what();
      break;
    }
  }
}

CLAIM(Tokenizer, TokensAreNumbersOfTheVocabulary) {
  const std::int64_t size = tokenizer_->vocabulary_size();
  for (const Tokens& tokens : encoded(*tokenizer_)) {
    for (const std::int64_t token : tokens) {
      ASSERT_GE(token, 0);
      ASSERT_LT(token, size);
    }
  }
}

// Texts are untrusted: one that contains the token's name must not end its document early.
CLAIM(Tokenizer, TextsHaveNoEndOfText) {
  const std::optional<std::int64_t> end = tokenizer_->end_of_text();
  if (!end)
    return;
  ASSERT_GE(*end, 0);
  ASSERT_LT(*end, tokenizer_->vocabulary_size());
  EXPECT_EQ(tokenizer_->token(*end), "");
  EXPECT_EQ(tokenizer_->decode(Tokens{*end}), "");

  std::vector<std::string> tried = texts();
  tried.insert(tried.end(),
               {"<|endoftext|>", "a<|endoftext|>", "</s>", " </s> ", "<s>", "<end_of_text>"});
  for (const std::string& text : tried) {
    try {
      const Tokens tokens = tokenizer_->encode(text);
      EXPECT_EQ(std::count(tokens.begin(), tokens.end(), *end), 0) << text;
    } catch (const DataError& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
}

CLAIM(Tokenizer, TheBytesOfTokensAreThoseOfTheText) {
  const std::vector<std::string> names = token_names(*tokenizer_);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(bytes_of_token_name(names[i]),
              static_cast<std::int64_t>(tokenizer_->token(static_cast<std::int64_t>(i)).size()))
        << names[i];
  }
  if (!GetParam().is_exact)
    return;
  for (const std::string& text : texts()) {
    std::string joined;
    std::int64_t bytes = 0;
    for (const std::int64_t token : tokenizer_->encode(text)) {
      joined += tokenizer_->token(token);
      bytes += bytes_of_token_name(names[static_cast<std::size_t>(token)]);
    }
    EXPECT_EQ(joined, text);
    EXPECT_EQ(bytes, static_cast<std::int64_t>(text.size())) << text;
  }
}

CLAIM(Tokenizer, EveryTokenHasAText) {
  const std::int64_t size = tokenizer_->vocabulary_size();
  for (std::int64_t token = 0; token < size; ++token) {
    try {
      tokenizer_->decode(Tokens{token});
    } catch (const std::exception& error) {
      ADD_FAILURE() << "token " << token << ": " << error.what();
      break;
    }
  }
  EXPECT_THROW(tokenizer_->decode(Tokens{size}), DataError);
  EXPECT_THROW(tokenizer_->decode(Tokens{0, -1}), DataError);
}

// A model that writes stops anywhere, also within a character.
CLAIM(Tokenizer, TheFirstTokensHaveTheBeginningOfTheText) {
  if (!GetParam().is_exact)
    return;
  for (const std::string& text : GetParam().documents) {
    const Tokens tokens = tokenizer_->encode(text);
    for (std::size_t count = 0; count < tokens.size(); ++count) {
      const std::string begin = tokenizer_->decode(std::span(tokens).first(count));
      ASSERT_EQ(begin, text.substr(0, begin.size())) << count << " tokens";
    }
  }
}

CLAIM(Tokenizer, EncodingIsAFunctionOfTheText) {
  const std::vector<Tokens> first = encoded(*tokenizer_);

  std::vector<Tokens> backwards;
  for (std::size_t i = texts().size(); i-- > 0;)
    backwards.push_back(tokenizer_->encode(texts()[i]));
  std::reverse(backwards.begin(), backwards.end());

  EXPECT_EQ(backwards, first);
}

CLAIM(Tokenizer, SeveralThreadsMayEncodeAtOnce) {
  const auto other = fitted();
  const std::vector<Tokens> expected = encoded(*other);
  texts();  // made by one thread

  const auto errors = at_once(4, [&](std::size_t) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Tokens tokens = tokenizer_->encode(texts()[i]);
      TREADLE_EXPECTS(tokens == expected[i], "other tokens for " + texts()[i]);
      if (i % 10 == 0)
        tokenizer_->decode(tokens);
    }
  });

  EXPECT_EQ(errors, kNoErrors);
}

CLAIM(Tokenizer, TheVocabularyIsAFunctionOfTheDocuments) {
  expect_alike(*fitted(), *tokenizer_);
}

CLAIM(Tokenizer, KeepsNoDocument) {
  std::vector<std::string> documents = GetParam().documents;
  const auto tokenizer = GetParam().make();
  tokenizer->fit(views(documents));

  for (std::string& document : documents)
    std::fill(document.begin(), document.end(), '#');

  expect_alike(*tokenizer, *tokenizer_);
}

CLAIM(Tokenizer, StateHasTheWholeVocabulary) {
  const auto loaded = GetParam().make();

  loaded->load_state(tokenizer_->state().snapshot());

  expect_alike(*loaded, *tokenizer_);
}

CLAIM(Tokenizer, RefusesAStateWithoutAVocabulary) {
  EXPECT_THROW(GetParam().make()->load_state(StateDict()), StorageError);
}

CLAIM(Tokenizer, GetsItsVocabularyOnce) {
  const auto fresh = GetParam().make();
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW(fresh->vocabulary_size(), ContractViolation) << "it has none yet";

  EXPECT_THROW(tokenizer_->fit(views(GetParam().documents)), ContractViolation);
}

CLAIM(Tokenizer, FitsNoDocumentsOrSaysWhy) {
  const auto tokenizer = GetParam().make();
  try {
    tokenizer->fit({});
    EXPECT_GT(tokenizer->vocabulary_size(), 0);
  } catch (const DataError& error) {
    EXPECT_STRNE(error.what(), "");
  }
}

CLAIM(Tokenizer, TheEmptyTextHasNoTokens) {
  EXPECT_EQ(tokenizer_->encode(""), Tokens());
  EXPECT_EQ(tokenizer_->encode(std::string_view()), Tokens());
  EXPECT_EQ(tokenizer_->decode({}), "");
}

CLAIM(Tokenizer, BrokenUtf8IsRefusedByItsByteOrTakenAsItIs) {
  // Of the documents' characters up to there: nothing else is wrong with it.
  const std::string& document = GetParam().documents.front();
  const std::string good = document.substr(0, whole_characters(document.substr(0, 37)));
  for (const std::string bad : {"\xFF", "\xC3", "\xE2\x82", "\xED\xA0\x80", "\xC0\xAF", "\x80"}) {
    const std::string text = good + bad;
    try {
      const Tokens tokens = tokenizer_->encode(text);
      EXPECT_EQ(tokenizer_->decode(tokens), text) << "it took a text that is not UTF-8";
    } catch (const DataError& error) {
      EXPECT_NE(std::string_view(error.what()).find(std::to_string(good.size())),
                std::string_view::npos)
          << "expected the byte " << good.size() << ": " << error.what();
    }
  }
}

}  // namespace treadle::testing
