#include <treadle/sdk.h>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/data/tokenizer_contract.h>

namespace {

using namespace treadle::testing;
using Tokens = std::vector<std::int64_t>;

std::unique_ptr<treadle::Tokenizer> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::Tokenizer>("@name@", std::move(parameters));
}

TokenizerCase case_of(std::string name, nlohmann::json parameters = {}) {
  return {.name = std::move(name), .make = [parameters] { return make(parameters); }};
}

// What every tokenizer keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, TokenizerContract,
                         ::testing::Values(case_of("Defaults"), case_of("Bytes", {{"pairs", 0}}),
                                           case_of("NoEnd", {{"end_of_text", false}})),
                         CaseName());

std::unique_ptr<treadle::Tokenizer> fitted(const std::vector<std::string_view>& documents,
                                           nlohmann::json parameters = {}) {
  auto tokenizer = make(std::move(parameters));
  tokenizer->fit(documents);
  return tokenizer;
}

// By hand: "ab" occurs three times, "bc" twice, "ba" and "cd" once.
TEST(@Name@, LearnsTheMostFrequentPairs) {
  const auto tokenizer = fitted({"ababc", "abcd"}, {{"pairs", 1}});

  EXPECT_EQ(tokenizer->vocabulary_size(), 258);
  EXPECT_EQ(tokenizer->token(256), "ab");
  EXPECT_EQ(tokenizer->end_of_text(), 257);
}

TEST(@Name@, TakesPairsFromLeftToRight) {
  const auto tokenizer = fitted({"aaa aaa"});  // "aa" four times

  EXPECT_EQ(tokenizer->encode("aaaa a"), (Tokens{256, 256, ' ', 'a'}));
}

TEST(@Name@, PairsThatOccurOnceAreNoTokens) {
  EXPECT_EQ(fitted({"abcd"}, {{"end_of_text", false}})->vocabulary_size(), 256);
}

}  // namespace
