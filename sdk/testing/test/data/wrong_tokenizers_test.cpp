#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/utf8.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/testing/data/tokenizer_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_tokenizers {
namespace {

using Tokens = std::vector<std::int64_t>;
using Documents = std::span<const std::string_view>;

constexpr std::int64_t kEnd = 256;

/// Right: a token per byte, shifted by a number that comes from the documents.
class Shifted : public Tokenizer {
 protected:
  virtual std::int64_t shift_of(Documents documents) {
    return documents.empty() ? 0 : static_cast<std::int64_t>(documents.front().size() % 256);
  }
  virtual std::int64_t shift() const { return shift_; }

  void do_fit(Documents documents) override {
    shift_ = shift_of(documents);
    is_fitted_ = true;
  }
  std::int64_t do_vocabulary_size() const override { return is_fitted_ ? kEnd + 1 : 0; }
  Tokens do_encode(std::string_view text) const override {
    if (const auto bad = first_bad_utf8(text))
      throw DataError("byte " + std::to_string(*bad));
    Tokens tokens;
    for (const char byte : text)
      tokens.push_back((static_cast<unsigned char>(byte) + shift()) % 256);
    return tokens;
  }
  std::string do_decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const std::int64_t token : tokens)
      text += do_token(token);
    return text;
  }
  bool do_is_exact() const override { return true; }
  std::optional<std::int64_t> do_end_of_text() const override { return kEnd; }
  std::string do_token(std::int64_t index) const override {
    return index == kEnd ? "" : std::string(1, static_cast<char>((index + 256 - shift()) % 256));
  }
  StateDict do_state() const override {
    StateDict state;
    state.put("shift", nlohmann::json(shift()));
    return state;
  }
  void do_load_state(const StateDict& state) override {
    shift_ = state.value("shift").get<std::int64_t>();
    is_fitted_ = true;
  }

  std::int64_t shift_ = 0;
  bool is_fitted_ = false;
};

class SaysItIsNotExact final : public Shifted {
  bool do_is_exact() const override { return false; }
};

class LosesTheLastLineEnd final : public Shifted {
  std::string do_decode(std::span<const std::int64_t> tokens) const override {
    std::string text = Shifted::do_decode(tokens);
    if (text.ends_with('\n'))
      text.pop_back();
    return text;
  }
};

class DiesOfARareCharacter final : public Shifted {
  Tokens do_encode(std::string_view text) const override {
    if (text.find("𝒳") != text.npos)
      throw std::out_of_range("no such character");
    return Shifted::do_encode(text);
  }
};

class ForgetsSomeNumbers final : public Shifted {
  Tokens do_encode(std::string_view text) const override {
    Tokens tokens = Shifted::do_encode(text);
    if (text == tokenizer_documents()[1])
      tokens.front() = kEnd + 1;
    return tokens;
  }
  bool do_is_exact() const override { return false; }
};

class ReadsTheEndOfText final : public Shifted {
  Tokens do_encode(std::string_view text) const override {
    return text == "</s>" ? Tokens{kEnd} : Shifted::do_encode(text);
  }
};

class NamesAnotherByte final : public Shifted {
  std::string do_token(std::int64_t index) const override {
    std::string text = Shifted::do_token(index);
    return text == "q" ? "Q" : text;
  }
  std::string do_decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const std::int64_t token : tokens)
      text += Shifted::do_token(token);
    return text;
  }
};

class CannotDecodeAToken final : public Shifted {
  std::string do_decode(std::span<const std::int64_t> tokens) const override {
    std::string text = Shifted::do_decode(tokens);
    if (text.find('\xFF') != text.npos)
      throw std::out_of_range("no text has it");
    return text;
  }
};

class ReplacesHalfACharacter final : public Shifted {
  std::string do_decode(std::span<const std::int64_t> tokens) const override {
    std::string text = Shifted::do_decode(tokens);
    if (const std::size_t whole = whole_characters(text); whole < text.size())
      text = text.substr(0, whole) + "\uFFFD";
    return text;
  }
};

class HasAMemory final : public Shifted {
  Tokens do_encode(std::string_view text) const override {
    Tokens tokens = Shifted::do_encode(text);
    // Other threads get what they ask for, or another claim would fail as well.
    if (mine_.is_mine() && text == tokenizer_documents()[2] && ++times_ > 1)
      std::reverse(tokens.begin(), tokens.end());
    return tokens;
  }
  OneThread mine_;
  mutable int times_ = 0;
};

class ForOneThread final : public Shifted {
  Tokens do_encode(std::string_view text) const override {
    if (!mine_.is_mine())
      throw std::logic_error("two threads at once");
    return Shifted::do_encode(text);
  }
  OneThread mine_;
};

class CountsFits final : public Shifted {
 public:
  explicit CountsFits(std::shared_ptr<std::int64_t> fits) : fits_(std::move(fits)) {}

 private:
  std::int64_t shift_of(Documents) override { return ++*fits_ % 256; }
  std::shared_ptr<std::int64_t> fits_;
};

class KeepsADocument final : public Shifted {
  void do_fit(Documents documents) override {
    Shifted::do_fit(documents);
    document_ = documents.empty() ? std::string_view() : documents.front();
  }
  std::int64_t shift() const override {
    return document_.empty() ? shift_ : static_cast<unsigned char>(document_.front());
  }
  std::string_view document_;
};

class SavesNoShift final : public Shifted {
  void do_load_state(const StateDict& state) override {
    Shifted::do_load_state(state);
    shift_ = 0;
  }
};

class TakesAnyState final : public Shifted {
  void do_load_state(const StateDict& state) override {
    if (!state.empty())
      Shifted::do_load_state(state);
  }
};

class MakesAVocabularyWhenAsked final : public Shifted {
  std::int64_t do_vocabulary_size() const override {
    return is_fitted_ || asked_++ > 0 ? kEnd + 1 : 0;
  }
  mutable int asked_ = 0;
};

class NeedsADocument final : public Shifted {
  std::int64_t shift_of(Documents documents) override {
    if (documents.empty())
      throw std::out_of_range("documents");
    return Shifted::shift_of(documents);
  }
};

class FindsATokenInNothing final : public Shifted {
  Tokens do_encode(std::string_view text) const override {
    return Shifted::do_encode(text.empty() ? " " : text);
  }
  bool do_is_exact() const override { return false; }
};

class MendsBrokenUtf8 final : public Shifted {
  Tokens do_encode(std::string_view text) const override {
    std::string mended(text);
    if (const auto bad = first_bad_utf8(text))
      mended = std::string(text.substr(0, *bad)) + "\uFFFD";
    return Shifted::do_encode(mended);
  }
};

template <typename T>
Wrong<TokenizerCase> wrong(std::string name, const std::string& claim, bool is_exact = true) {
  return {
      {.name = std::move(name), .make = [] { return std::make_unique<T>(); }, .is_exact = is_exact},
      {claim}};
}

std::vector<Wrong<TokenizerCase>> all() {
  return {wrong<SaysItIsNotExact>("SaysItIsNotExact", "IsExactWhereItSaysSo"),
          wrong<LosesTheLastLineEnd>("LosesTheLastLineEnd", "DecodingUndoesEncoding"),
          wrong<DiesOfARareCharacter>("DiesOfARareCharacter", "TakesAnyTextOrRefusesIt"),
          wrong<ForgetsSomeNumbers>("ForgetsSomeNumbers", "TokensAreNumbersOfTheVocabulary", false),
          wrong<ReadsTheEndOfText>("ReadsTheEndOfText", "TextsHaveNoEndOfText"),
          wrong<NamesAnotherByte>("NamesAnotherByte", "TheBytesOfTokensAreThoseOfTheText"),
          wrong<CannotDecodeAToken>("CannotDecodeAToken", "EveryTokenHasAText"),
          wrong<ReplacesHalfACharacter>("ReplacesHalfACharacter",
                                        "TheFirstTokensHaveTheBeginningOfTheText"),
          wrong<HasAMemory>("HasAMemory", "EncodingIsAFunctionOfTheText"),
          wrong<ForOneThread>("ForOneThread", "SeveralThreadsMayEncodeAtOnce"),
          {{.name = "CountsFits",
            .make = [fits = std::make_shared<std::int64_t>(
                         0)] { return std::make_unique<CountsFits>(fits); }},
           // Each of them compares two that were fitted.
           {"TheVocabularyIsAFunctionOfTheDocuments", "KeepsNoDocument",
            "SeveralThreadsMayEncodeAtOnce"}},
          wrong<KeepsADocument>("KeepsADocument", "KeepsNoDocument"),
          wrong<SavesNoShift>("SavesNoShift", "StateHasTheWholeVocabulary"),
          wrong<TakesAnyState>("TakesAnyState", "RefusesAStateWithoutAVocabulary"),
          wrong<MakesAVocabularyWhenAsked>("MakesAVocabularyWhenAsked", "GetsItsVocabularyOnce"),
          wrong<NeedsADocument>("NeedsADocument", "FitsNoDocumentsOrSaysWhy"),
          wrong<FindsATokenInNothing>("FindsATokenInNothing", "TheEmptyTextHasNoTokens", false),
          wrong<MendsBrokenUtf8>("MendsBrokenUtf8", "BrokenUtf8IsRefusedByItsByteOrTakenAsItIs")};
}

INSTANTIATE_TEST_SUITE_P(Right, TokenizerContract,
                         ::testing::Values(wrong<Shifted>("Shifted", "").implementation),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, TokenizerContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_tokenizers

std::vector<Defect> tokenizer_defects() {
  return defects_of("TokenizerContract", wrong_tokenizers::all());
}

}  // namespace treadle::testing
