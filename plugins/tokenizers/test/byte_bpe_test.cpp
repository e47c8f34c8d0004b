#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/utf8.h>
#include <treadle/core/data/tokenizer.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>

#include "byte_letters.h"
#include "pair_merger.h"
#include "random_texts.h"
#include "reference.h"

namespace treadle::tokenizers {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::PluginUnderTest;
using Tokens = std::vector<std::int64_t>;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::unique_ptr<Tokenizer> bpe(const json& parameters) {
  return plugin().make<Tokenizer>("byte_bpe", parameters);
}

std::unique_ptr<Tokenizer> fitted(const json& parameters,
                                  const std::vector<std::string>& documents) {
  auto tokenizer = bpe(parameters);
  const std::vector<std::string_view> views(documents.begin(), documents.end());
  tokenizer->fit(views);
  return tokenizer;
}

const std::vector<std::string>& reference_texts() {
  static const std::vector<std::string> texts = [] {
    ReferenceNumbers numbers(kSeed);
    std::vector<std::string> texts;
    for (int i = 0; i < kTexts; ++i)
      texts.push_back(random_text(numbers));
    return texts;
  }();
  return texts;
}

std::vector<std::string> fitted_texts() {
  return {reference_texts().begin(), reference_texts().begin() + kFitted};
}

TEST(ByteBpe, TheTextsAreThoseOfTheReference) {
  Digest digest;
  for (std::string_view text : reference_texts()) {
    while (!text.empty()) {
      const std::size_t length = utf8_character(text);
      digest.add(code_point_of(text.substr(0, length)));
      text.remove_prefix(length);
    }
  }
  EXPECT_EQ(digest.value(), kTextsDigest);
}

TEST(ByteBpe, LearnsAndEncodesAsTheReference) {
  const auto tokenizer = fitted({{"vocabulary_size", kSize}}, fitted_texts());

  EXPECT_EQ(tokenizer->vocabulary_size(), kSize);
  EXPECT_EQ(tokenizer->end_of_text(), kSize - 1);
  Digest merges;
  const at::Tensor stored = tokenizer->state().tensor("merges");
  for (std::int64_t i = 0; i < stored.numel(); ++i)
    merges.add(static_cast<std::uint64_t>(stored.data_ptr<std::int64_t>()[i]));
  EXPECT_EQ(merges.value(), kMergesDigest);
  Digest tokens;
  for (const std::string& text : reference_texts()) {
    for (const std::int64_t token : tokenizer->encode(text))
      tokens.add(static_cast<std::uint64_t>(token));
    tokens.add(0xFFFFFFFF);
  }
  EXPECT_EQ(tokens.value(), kTokensDigest);
}

TEST(ByteBpe, TenThousandTextsComeBack) {
  const auto tokenizer = fitted({{"vocabulary_size", kSize}}, fitted_texts());

  for (const std::string& text : reference_texts())
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(ByteBpe, StateGivesTheSameTokens) {
  const json parameters = {{"vocabulary_size", kSize}};
  const auto tokenizer = fitted(parameters, fitted_texts());
  const auto loaded = bpe(parameters);
  loaded->load_state(tokenizer->state().snapshot());

  for (const std::string& text : reference_texts())
    ASSERT_EQ(loaded->encode(text), tokenizer->encode(text));
}

/// The algorithm of the paper, word for word: all occurrences of the earliest merge, again and
/// again.
Tokens merged_in_quadratic_time(const BpeVocabulary& vocabulary, std::string_view word) {
  std::vector<std::string> pieces;
  for (const char byte : word)
    pieces.emplace_back(1, byte);
  for (;;) {
    std::size_t best = vocabulary.merges.size();
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      for (std::size_t rank = 0; rank < best; ++rank) {
        const auto [left, right] = vocabulary.merges[rank];
        if (vocabulary.tokens[left] == pieces[i - 1] && vocabulary.tokens[right] == pieces[i])
          best = rank;
      }
    }
    if (best == vocabulary.merges.size())
      break;
    const auto [left, right] = vocabulary.merges[best];
    std::vector<std::string> next;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i + 1 < pieces.size() && pieces[i] == vocabulary.tokens[left] &&
          pieces[i + 1] == vocabulary.tokens[right]) {
        next.push_back(pieces[i] + pieces[i + 1]);
        ++i;
      } else {
        next.push_back(pieces[i]);
      }
    }
    pieces = next;
  }
  Tokens tokens;
  for (const std::string& piece : pieces) {
    tokens.push_back(std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), piece) -
                     vocabulary.tokens.begin());
  }
  return tokens;
}

// Files of others may have merges in any order: what a merge makes may be part of an earlier one.
TEST(PairMerger, MergesInAnyOrderAsTheQuadraticOne) {
  ReferenceNumbers numbers(3);
  for (int round = 0; round < 200; ++round) {
    BpeVocabulary vocabulary;
    for (int byte = 0; byte < 256; ++byte)
      vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
    std::vector<std::int64_t> known = {'a', 'b', 'c'};
    for (int i = 0; i < 25; ++i) {
      const std::int64_t left = known[numbers.below(known.size())];
      const std::int64_t right = known[numbers.below(known.size())];
      const std::pair pair(left, right);
      if (std::count(vocabulary.merges.begin(), vocabulary.merges.end(), pair) > 0)
        continue;
      const std::string text = vocabulary.tokens[static_cast<std::size_t>(left)] +
                               vocabulary.tokens[static_cast<std::size_t>(right)];
      if (std::count(vocabulary.tokens.begin(), vocabulary.tokens.end(), text) == 0) {
        known.push_back(static_cast<std::int64_t>(vocabulary.tokens.size()));
        vocabulary.tokens.push_back(text);
      }
      vocabulary.merges.push_back(pair);
    }
    for (std::size_t i = vocabulary.merges.size(); i > 1; --i)
      std::swap(vocabulary.merges[i - 1], vocabulary.merges[numbers.below(i)]);
    const PairMerger merger(vocabulary);
    for (int words = 0; words < 30; ++words) {
      std::string word;
      for (std::uint64_t left = numbers.below(30); left > 0; --left)
        word += static_cast<char>('a' + numbers.below(3));
      ASSERT_EQ(merger.tokens_of(word), merged_in_quadratic_time(vocabulary, word)) << word;
    }
  }
}

// By hand: "aa" occurs 4 times, twice in each "aaa", though it can be merged there only once; "ab"
// occurs 3 times.
TEST(ByteBpe, MergesTheMostFrequentPairFirst) {
  const auto tokenizer =
      fitted({{"vocabulary_size", 258}, {"end_of_text", false}}, {"aaa aaa", "ab", "ab", "ab"});

  const std::vector<std::string> names = token_names(*tokenizer);
  EXPECT_EQ(names[256], "aa");
  EXPECT_EQ(names[257], "ab");
  EXPECT_EQ(tokenizer->encode("aaa ab"), (Tokens{256, 'a', ' ', 257}));
}

TEST(ByteBpe, OfEqualPairsTheSmallerIsFirst) {
  const auto tokenizer =
      fitted({{"vocabulary_size", 300}, {"end_of_text", false}}, {"xy,xy,\u00E9,\u00E9,bc,bc"});

  const std::vector<std::string> names = token_names(*tokenizer);
  EXPECT_EQ(names[256], "bc");
  EXPECT_EQ(names[257], "xy");
  EXPECT_EQ(names[258], "\u00E9");
  EXPECT_EQ(names.size(), 259U) << "no other pair occurs twice within a word";
}

std::string synthetic_text() {
  ReferenceNumbers numbers(17);
  const std::vector<std::string> syllables = {"ka",  "ri", "mo", "ten", "shu", "öl", "ва", "lo",
                                              "pra", "ni", "es", "ung", "que", "日", "x7", "'s"};
  std::string text;
  for (int i = 0; i < 30000; ++i) {
    for (std::uint64_t left = 1 + numbers.below(4); left > 0; --left)
      text += syllables[numbers.below(numbers.below(syllables.size()) + 1)];
    text += numbers.below(9) == 0 ? ".\n" : " ";
  }
  return text;
}

class BpeFiles : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }

  /// GPT-2's layout: its numbers are not those of the bytes.
  void write_files(const json& vocabulary, const std::string& merges) const {
    write("vocab.json", vocabulary.dump());
    write("merges.txt", merges);
  }

  json files() const {
    return {{"vocabulary", file("vocab.json")}, {"merges", file("merges.txt")}};
  }

  static json bytes() {
    json vocabulary = json::object();
    for (int byte = 0; byte < 256; ++byte)
      vocabulary[letters_of(std::string(1, static_cast<char>(byte)))] = byte;
    return vocabulary;
  }

  std::string complaint() const {
    try {
      fitted(files(), {});
    } catch (const DataError& error) {
      return error.what();
    }
    return "no complaint";
  }

 private:
  testing::ScratchFolder folder_;
};

TEST_F(BpeFiles, GiveTheTokensOfTheTrained) {
  const std::string text = synthetic_text();
  const auto trained = fitted({{"vocabulary_size", 256 + 2000 + 1}}, {text});
  ASSERT_EQ(trained->vocabulary_size(), 2257);
  json vocabulary = json::object();
  for (std::int64_t i = 0; i + 1 < 2257; ++i)
    vocabulary[letters_of(trained->token(i))] = i;
  vocabulary["<|endoftext|>"] = 2256;
  std::string merges = "#version: 0.2\n";
  const at::Tensor pairs = trained->state().tensor("merges");
  for (std::int64_t i = 0; i < pairs.numel(); i += 2) {
    const std::int64_t* const pair = pairs.data_ptr<std::int64_t>() + i;
    merges +=
        letters_of(trained->token(pair[0])) + " " + letters_of(trained->token(pair[1])) + "\n";
  }
  write_files(vocabulary, merges);

  const auto read = fitted(files(), {});

  EXPECT_EQ(token_names(*read), token_names(*trained));
  EXPECT_EQ(read->end_of_text(), 2256);
  EXPECT_EQ(read->encode(text), trained->encode(text));
  EXPECT_EQ(read->decode(read->encode(text)), text);
  for (const std::string& one : reference_texts())
    ASSERT_EQ(read->encode(one), trained->encode(one));
}

TEST_F(BpeFiles, MayLackAnEndAndAHeader) {
  json vocabulary = bytes();
  vocabulary["##"] = 256;
  vocabulary["\u0120a"] = 257;
  write_files(vocabulary, "# #\r\n\u0120 a\r\n");
  const auto read = fitted(files(), {});

  EXPECT_EQ(read->end_of_text(), std::nullopt);
  EXPECT_EQ(read->encode("### a"), (Tokens{256, '#', 257}));
}

TEST_F(BpeFiles, TheEndOfTextIsNoText) {
  json vocabulary = bytes();
  vocabulary["<|endoftext|>"] = 256;
  write_files(vocabulary, "");
  const auto read = fitted(files(), {});

  EXPECT_EQ(read->end_of_text(), 256);
  EXPECT_EQ(read->encode("<|endoftext|>").size(), 13U);
}

TEST_F(BpeFiles, SayWhatIsWrongWithTheVocabulary) {
  EXPECT_EQ(complaint(), file("vocab.json") + ": cannot be opened");
  write("merges.txt", "");
  write("vocab.json", "{\"a\": 0,\n \"b\" 1}");
  EXPECT_THAT(complaint(), HasSubstr(file("vocab.json") + ": is not JSON: "));
  EXPECT_THAT(complaint(), HasSubstr("line 2, column 6"));
  write("vocab.json", "{\"\xFF\": 0}");
  EXPECT_THAT(complaint(), HasSubstr("invalid string"));
  EXPECT_EQ(first_bad_utf8(complaint()), std::nullopt);
  write("vocab.json", "[1, 2]");
  EXPECT_THAT(complaint(), HasSubstr("expected an object of tokens and their numbers"));

  json vocabulary = bytes();
  vocabulary.erase("A");
  vocabulary["aa"] = 65;
  write_files(vocabulary, "");
  EXPECT_EQ(complaint(), file("vocab.json") +
                             ": the byte 0x41 has no token; expected \"A\", as in GPT-2's file");
  vocabulary = bytes();
  vocabulary["aa"] = 97;
  write_files(vocabulary, "");
  EXPECT_EQ(complaint(), file("vocab.json") + ": \"a\" and \"aa\" have the same number, 97");
  vocabulary["aa"] = 300;
  write_files(vocabulary, "");
  EXPECT_EQ(complaint(), file("vocab.json") +
                             ": \"aa\" has 300; its 257 tokens must have the numbers from 0 to 256 "
                             "without gaps");
  vocabulary["aa"] = "256";
  write_files(vocabulary, "");
  EXPECT_THAT(complaint(), HasSubstr("\"aa\" has \"256\" (text); its 257 tokens must have"));
  vocabulary = bytes();
  vocabulary["a b"] = 256;
  write_files(vocabulary, "");
  EXPECT_EQ(complaint(), file("vocab.json") +
                             ": the token \"a b\" has U+0020 (\" \"), which stands for no byte in "
                             "GPT-2's alphabet");
}

TEST_F(BpeFiles, SayWhatIsWrongWithTheMerges) {
  json vocabulary = bytes();
  vocabulary["ab"] = 256;
  write("vocab.json", vocabulary.dump());
  const std::string merges = file("merges.txt");

  EXPECT_EQ(complaint(), merges + ": cannot be opened");
  write("merges.txt", "#version: 0.2\na b\nab\n");
  EXPECT_EQ(complaint(), merges + ":3: expected two tokens with a space between them, got \"ab\"");
  write("merges.txt", "a b\nb c\n");
  EXPECT_EQ(complaint(), merges + ":2: \"bc\" is not in " + file("vocab.json"));
  write("merges.txt", "a b\nab ca\n");
  EXPECT_EQ(complaint(), merges + ":2: \"ca\" is not in " + file("vocab.json"));
  write("merges.txt", "a b\n\na b\n");
  EXPECT_EQ(complaint(), merges + ":3: the pair \"a b\" is that of line 1");
}

std::string refusal(const json& parameters) {
  try {
    bpe(parameters);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(ByteBpe, RefusesParametersThatContradictEachOther) {
  EXPECT_THAT(refusal({}), HasSubstr("required key \"vocabulary_size\" is missing"));
  EXPECT_THAT(refusal({{"vocabulary", "/v"}}), HasSubstr("needs \"merges\""));
  EXPECT_THAT(refusal({{"merges", "/m"}}), HasSubstr("needs \"vocabulary\""));
  const json files = {{"vocabulary", "/v"}, {"merges", "/m"}};
  json more = files;
  more["vocabulary_size"] = 300;
  EXPECT_THAT(refusal(more), HasSubstr("has no effect beside \"vocabulary\""));
  more = files;
  more["end_of_text"] = true;
  EXPECT_THAT(refusal(more), HasSubstr("has no effect beside \"vocabulary\""));
  EXPECT_THAT(refusal({{"vocabulary_size", 256}}), HasSubstr("must be at least 257"));
  EXPECT_EQ(refusal({{"vocabulary_size", 256}, {"end_of_text", false}}), "no complaint");
  EXPECT_EQ(refusal(files), "no complaint");
}

TEST(ByteBpe, RefusesADamagedState) {
  const json parameters = {{"vocabulary_size", 258}};
  const StateDict good = fitted(parameters, {"abab"})->state();
  const auto refused = [&](const std::function<void(StateDict&)>& damage) {
    StateDict state = good.snapshot();
    damage(state);
    try {
      bpe(parameters)->load_state(state);
    } catch (const StorageError& error) {
      return std::string(error.what());
    }
    return std::string("no complaint");
  };
  const std::string damaged = "the stored vocabulary of the tokenizer is damaged: ";

  EXPECT_EQ(refused([](StateDict&) {}), "no complaint");
  EXPECT_EQ(refused([](StateDict& state) {
              state.put("tokens", state.tensor("tokens").slice(0, 0, 100));
            }),
            damaged + "the lengths of \"tokens\" do not fit its 100 bytes");
  EXPECT_EQ(refused([](StateDict& state) {
              state.put("tokens_lengths", state.tensor("tokens_lengths").slice(0, 0, 100));
            }),
            damaged + "the lengths of \"tokens\" add up to 100, not to 258 bytes");
  EXPECT_EQ(refused([](StateDict& state) { state.put("tokens", at::empty({3}, at::kFloat)); }),
            damaged + "\"tokens\" is not a list of bytes");
  EXPECT_EQ(refused([](StateDict& state) { state.tensor("tokens")[7] = 8; }),
            damaged + "two tokens have the same bytes");
  EXPECT_EQ(refused([](StateDict& state) { state.tensor("merges")[0] = 1000; }),
            damaged + "merge 0 makes no token");
  EXPECT_EQ(refused([](StateDict& state) { state.tensor("merges")[0] = -1; }),
            damaged + "merge 0 makes no token");
  EXPECT_EQ(refused([](StateDict& state) { state.tensor("merges")[0] = 'x'; }),
            damaged + "merge 0 makes no token");
  EXPECT_EQ(
      refused([](StateDict& state) { state.put("merges", state.tensor("merges").slice(0, 0, 1)); }),
      damaged + "a merge lacks its second token");
  EXPECT_EQ(refused([](StateDict& state) { state.put("end_of_text", json(3)); }),
            damaged + "token 3 is the end of text and has bytes");
  EXPECT_EQ(refused([](StateDict& state) { state.put("end_of_text", json(-1)); }),
            damaged + "token 257 has no bytes");
  EXPECT_EQ(refused([](StateDict& state) { state.put("end_of_text", json(258)); }),
            damaged + "the end of text is no token");
  EXPECT_EQ(refused([](StateDict& state) { state.put("end_of_text", json("x")); }),
            damaged + "\"end_of_text\" is not an integer");
}

// A word of a million bytes is not a million times a million steps.
TEST(ByteBpe, TakesLongWords) {
  const std::size_t length = std::size_t{1} << 20;
  const std::string letters(length, 'a');
  const std::string spaces = std::string(length, ' ') + "x";
  const auto tokenizer = fitted({{"vocabulary_size", 300}}, {letters, spaces});

  EXPECT_EQ(tokenizer->decode(tokenizer->encode(letters)), letters);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(spaces)), spaces);
}

}  // namespace
}  // namespace treadle::tokenizers
