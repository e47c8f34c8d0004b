#include <treadle/core/data/tokenizer.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace tokenizer_names {
namespace {

using ::testing::ElementsAre;

/// Tokens with these texts.
class Listed final : public Tokenizer {
 public:
  explicit Listed(std::vector<std::string> texts, std::optional<std::int64_t> end = {})
      : texts_(std::move(texts)), end_(end) {}

  bool makes_one = true;

 private:
  void do_fit(std::span<const std::string_view>) override { is_fitted_ = makes_one; }
  std::int64_t do_vocabulary_size() const override {
    return is_fitted_ ? static_cast<std::int64_t>(texts_.size()) : 0;
  }
  std::vector<std::int64_t> do_encode(std::string_view) const override { return {}; }
  std::string do_decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const std::int64_t token : tokens)
      text += do_token(token);
    return text;
  }
  bool do_is_exact() const override { return false; }
  std::optional<std::int64_t> do_end_of_text() const override { return end_; }
  std::string do_token(std::int64_t index) const override {
    return texts_[static_cast<std::size_t>(index)];
  }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}

  std::vector<std::string> texts_;
  std::optional<std::int64_t> end_;
  bool is_fitted_ = false;
};

std::vector<std::string> names(std::vector<std::string> texts,
                               std::optional<std::int64_t> end = {}) {
  Listed tokenizer(std::move(texts), end);
  tokenizer.fit({});
  return token_names(tokenizer);
}

TEST(TokenNames, AreTheTexts) {
  EXPECT_THAT(names({"a", " the", "Größe", "日", "\U0001F600", ">"}),
              ElementsAre("a", " the", "Größe", "日", "\U0001F600", ">"));
}

TEST(TokenNames, WriteBytesThatAreNotPrintable) {
  EXPECT_THAT(
      names({"\n", "a\tb", "\x7F", std::string(1, '\0'), "\u0085", "\xFF", "\xE6\x97", "\xA5z"}),
      ElementsAre("<0x0A>", "a<0x09>b", "<0x7F>", "<0x00>", "<0xC2><0x85>", "<0xFF>",
                  "<0xE6><0x97>", "<0xA5>z"));
}

// So that no text looks like a name of another kind.
TEST(TokenNames, WriteTheAngleBracketAsAByte) {
  EXPECT_THAT(names({"<", "<0x0A>", "<unknown>", "a<2>"}),
              ElementsAre("<0x3C>", "<0x3C>0x0A>", "<0x3C>unknown>", "a<0x3C>2>"));
}

TEST(TokenNames, OfTokensWithoutText) {
  EXPECT_THAT(names({"", "a", "", ""}, 2),
              ElementsAre("<unknown>", "a", "<end_of_text>", "<unknown><2>"));
}

TEST(TokenNames, AreEachAnother) {
  EXPECT_THAT(names({"a", "b", "a", "a", "a<2>"}),
              ElementsAre("a", "b", "a<2>", "a<3>", "a<0x3C>2>"));
}

TEST(TokenNames, TellHowManyBytesATokenHas) {
  const std::vector<std::string> texts = {"a",        " the",       "Größe",  "\n",   "a\tb", "<",
                                          "\xE6\x97", "\u0085",     "",       "a",    "a",    "<a>",
                                          "",         "\U0001F600", "<0x3C>", "\xFF", "2>"};
  const std::vector<std::string> all = names(texts, 8);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(bytes_of_token_name(all[i]), static_cast<std::int64_t>(texts[i].size())) << all[i];
}

TEST(Tokenizer, GetsItsVocabularyOnce) {
  Listed tokenizer({"a"});
  EXPECT_THROW(tokenizer.vocabulary_size(), ContractViolation);
  tokenizer.fit({});
  EXPECT_EQ(tokenizer.vocabulary_size(), 1);
  EXPECT_THROW(tokenizer.fit({}), ContractViolation);
}

TEST(Tokenizer, MustMakeAVocabulary) {
  Listed tokenizer({"a"});
  tokenizer.makes_one = false;
  EXPECT_THROW(tokenizer.fit({}), PluginError);
}

TEST(Tokenizer, TakesNoTokenFromOutside) {
  Listed tokenizer({"a", "b"});
  tokenizer.fit({});
  const std::vector<std::int64_t> above = {0, 2};
  const std::vector<std::int64_t> below = {-1};

  EXPECT_THROW(tokenizer.decode(above), DataError);
  EXPECT_THROW(tokenizer.decode(below), DataError);
  EXPECT_THROW(tokenizer.token(2), ContractViolation);
  EXPECT_THROW(tokenizer.token(-1), ContractViolation);
  try {
    tokenizer.decode(above);
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "there is no token 2 in a vocabulary of 2");
  }
}

}  // namespace
}  // namespace tokenizer_names
}  // namespace treadle
