// bytes, characters, words: every expected value by the definition in the plugin's README.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/tokenizer.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::tokenizers {
namespace simple {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<std::int64_t>;

std::unique_ptr<Tokenizer> make(const std::string& name, const json& parameters) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<Tokenizer>(name, parameters);
}

std::unique_ptr<Tokenizer> fitted(const std::string& name, const json& parameters,
                                  const std::vector<std::string_view>& documents) {
  auto tokenizer = make(name, parameters);
  tokenizer->fit(documents);
  return tokenizer;
}

template <typename Failure>
std::string complaint(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(Bytes, AreTheirNumbers) {
  const auto bytes = fitted("bytes", {}, {});

  EXPECT_EQ(bytes->vocabulary_size(), 256);
  EXPECT_EQ(bytes->end_of_text(), std::nullopt);
  EXPECT_EQ(bytes->encode("a\u00E9\n\xFF"), (Tokens{97, 0xC3, 0xA9, 10, 255}));
  EXPECT_EQ(bytes->decode(Tokens{0xC3}), "\xC3");
}

TEST(Bytes, MayHaveAnEnd) {
  const auto bytes = fitted("bytes", {{"end_of_text", true}}, {});

  EXPECT_EQ(bytes->vocabulary_size(), 257);
  EXPECT_EQ(bytes->end_of_text(), 256);
  EXPECT_EQ(bytes->decode(Tokens{97, 256, 98}), "ab");
}

TEST(Characters, AreInTheOrderOfTheirCodePoints) {
  const auto characters =
      fitted("characters", {{"unknown", "token"}, {"end_of_text", true}}, {"b\u00E9a", "😀日ab"});

  EXPECT_THAT(token_names(*characters),
              ElementsAre("a", "b", "\u00E9", "日", "😀", "<unknown>", "<end_of_text>"));
  EXPECT_EQ(characters->encode("日\u00E9?a"), (Tokens{3, 2, 5, 0}));
  EXPECT_EQ(characters->decode(Tokens{3, 5, 0, 6}), "日\uFFFDa");
}

TEST(Characters, NameTheOneThatTheyDoNotKnow) {
  const auto characters = fitted("characters", {}, {"aé\n"});

  EXPECT_EQ(complaint<DataError>([&] { characters->encode("aéß"); }),
            "the text cannot be encoded: the character at byte 3, U+00DF (\"ß\"), is not in the "
            "training documents; set \"unknown\": \"token\", or use the tokenizer \"bytes\" or "
            "\"byte_bpe\"");
  EXPECT_THAT(complaint<DataError>([&] { characters->encode("\t"); }),
              HasSubstr("the character at byte 0, U+0009, is not"));
  EXPECT_EQ(complaint<DataError>([&] { characters->encode("aé\xC3"); }),
            "the text cannot be encoded: byte 3 (0xC3) is not UTF-8; convert the text to UTF-8, "
            "or use the tokenizer \"bytes\"");
}

TEST(Characters, SayWhichDocumentIsBroken) {
  EXPECT_THAT(complaint<DataError>([] {
                fitted("characters", {}, {"abc", "ab\xFF"});
              }),
              HasSubstr("document 2: byte 2 (0xFF) is not UTF-8"));
  EXPECT_THAT(complaint<DataError>([] {
                fitted("characters", {}, {"", ""});
              }),
              HasSubstr("the training documents are empty"));
}

TEST(Characters, RefuseADamagedState) {
  const auto refused = [](const at::Tensor& characters) {
    StateDict state = fitted("characters", {}, {"abc"})->state();
    state.put("characters", characters);
    return complaint<StorageError>([&] { make("characters", {})->load_state(state); });
  };

  EXPECT_EQ(refused(at::tensor({5, 6}, at::kLong)), "no complaint");
  EXPECT_THAT(refused(at::tensor({6, 5}, at::kLong)), HasSubstr("not in ascending order"));
  EXPECT_THAT(refused(at::tensor({6, 6}, at::kLong)), HasSubstr("not in ascending order"));
  EXPECT_THAT(refused(at::tensor({0xD800}, at::kLong)), HasSubstr("are not code points"));
  EXPECT_THAT(refused(at::tensor({0x110000}, at::kLong)), HasSubstr("are not code points"));
  EXPECT_THAT(refused(at::tensor({1.5F})), HasSubstr("is not a list of int64 numbers"));
}

TEST(Words, AreOrderedByCountAndThenByText) {
  const auto words = fitted("words", {{"end_of_text", true}}, {"b a, b; c a", "b \u00E9"});

  EXPECT_THAT(token_names(*words),
              ElementsAre("<unknown>", "b", "a", ",", ";", "c", "\u00E9", "<end_of_text>"));
  EXPECT_EQ(words->encode("c  d\n\u00E9!"), (Tokens{5, 0, 6, 0}));
  EXPECT_EQ(words->decode(Tokens{1, 3, 0, 7, 2}), "b , \uFFFD a");
}

std::vector<std::string> split(const std::string& text, const json& parameters = {}) {
  const auto words = fitted("words", parameters, {text});
  std::vector<std::string> pieces;
  for (const std::int64_t token : words->encode(text))
    pieces.push_back(words->token(token));
  return pieces;
}

TEST(Words, AreLettersMarksDigitsAndApostrophesBetweenThem) {
  EXPECT_THAT(split("Don't l\u2019eau 'quoted' rock'n'roll"),
              ElementsAre("Don't", "l\u2019eau", "'", "quoted", "'", "rock'n'roll"));
  EXPECT_THAT(split("snake_case 3.14 a-b e\u0301t\u00A0x\u3000y\u0085z"),
              ElementsAre("snake_case", "3", ".", "14", "a", "-", "b", "e\u0301t", "x", "y", "z"));
  EXPECT_THAT(split("日本語。😀😀"), ElementsAre("日本語", "。", "😀", "😀"));
}

TEST(Words, InLowerCaseAreThoseOfUnicode) {
  EXPECT_THAT(split("ÄPFEL ΣΟΦΙΑ Жук I \u00DF \u1E9E \u023A", {{"lowercase", true}}),
              ElementsAre("äpfel", "σοφια", "жук", "i", "ß", "ß", "\u2C65"));
}

TEST(Words, MayBeLimited) {
  const std::vector<std::string_view> documents = {"a a a b b c"};

  EXPECT_THAT(token_names(*fitted("words", {{"min_count", 2}}, documents)),
              ElementsAre("<unknown>", "a", "b"));
  EXPECT_THAT(
      token_names(*fitted("words", {{"max_vocabulary", 3}, {"end_of_text", true}}, documents)),
      ElementsAre("<unknown>", "a", "<end_of_text>"));
}

TEST(Words, RefuseADamagedState) {
  StateDict state = fitted("words", {}, {"a b"})->state();
  state.tensor("words")[1] = 'a';
  EXPECT_THAT(complaint<StorageError>([&] { make("words", {})->load_state(state); }),
              HasSubstr("\"words\" are not all different"));
}

}  // namespace
}  // namespace simple
}  // namespace treadle::tokenizers
