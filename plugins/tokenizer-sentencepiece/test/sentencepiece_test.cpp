// Digests are those of the command-line tools of SentencePiece 0.1.97 (Debian 12), from this
// folder:
//
//   spm_train --input=text.txt --model_prefix=m --vocab_size=200 --model_type=unigram
//       --byte_fallback=false --hard_vocab_limit=false --num_threads=1 --bos_id=-1 --eos_id=1
//   spm_encode --model=m.model --output_format=id < text.txt | sha256sum
//
// with 200 tokens without byte_fallback and 420 with it. bpe.model is by
//
//   spm_train --input=text.txt --model_prefix=bpe --vocab_size=120 --model_type=bpe
//       --normalization_rule_name=identity --hard_vocab_limit=false --num_threads=1
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/core/data/tokenizer.h>
#include <treadle/testing/data/tokenizer_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/captured_output.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/support/source_path.h>

namespace treadle::sentencepiece_plugin {
namespace {

using nlohmann::json;
using testing::CaseName;
using ::testing::HasSubstr;
using testing::TokenizerCase;
using testing::TokenizerContract;
using Tokens = std::vector<std::int64_t>;

const std::string kModelFile = testing::source_path(TREADLE_PLUGIN_FOLDER "/test/bpe.model");

std::unique_ptr<Tokenizer> make(const json& parameters) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<Tokenizer>("sentencepiece", parameters);
}

TokenizerCase case_of(std::string name, const json& parameters) {
  return {.name = std::move(name),
          .make = [parameters] { return make(parameters); },
          .is_exact = false};
}

INSTANTIATE_TEST_SUITE_P(
    SentencePiece, TokenizerContract,
    ::testing::Values(case_of("Unigram", {{"vocabulary_size", 150}}),
                      case_of("Bpe", {{"vocabulary_size", 150}, {"model_type", "bpe"}}),
                      case_of("Characters", {{"model_type", "char"}, {"character_coverage", 0.98}}),
                      case_of("Words", {{"model_type", "word"}}),
                      case_of("WithBytes", {{"vocabulary_size", 420}, {"byte_fallback", true}}),
                      case_of("OfAFile", {{"model", kModelFile}})),
    CaseName());

std::string training_text() {
  std::ostringstream text;
  text << std::ifstream(testing::source_path(TREADLE_PLUGIN_FOLDER "/test/text.txt")).rdbuf();
  return text.str();
}

std::unique_ptr<Tokenizer> fitted(const json& parameters, const std::string& text) {
  auto tokenizer = make(parameters);
  const std::string_view view = text;
  tokenizer->fit({&view, 1});
  return tokenizer;
}

/// As `spm_encode --output_format=id` writes them.
std::string digest_of_ids(const Tokenizer& tokenizer) {
  const testing::ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "ids.txt";
  std::ofstream out(file);
  std::istringstream lines(training_text());
  for (std::string line; std::getline(lines, line);) {
    std::string ids;
    for (const std::int64_t token : tokenizer.encode(line))
      ids += (ids.empty() ? "" : " ") + std::to_string(token);
    out << ids << "\n";
  }
  out.close();
  return sha256_file(file);
}

struct Reference {
  std::string type;
  bool byte_fallback;
  std::string digest;
};

TEST(SentencePiece, TrainsAndEncodesAsTheCommandLineTools) {
#ifdef TREADLE_SENTENCEPIECE_VERSION
  const std::string version = TREADLE_SENTENCEPIECE_VERSION;
#else
  const std::string version = "of unknown version";
#endif
  if (version != "0.1.97")
    GTEST_SKIP() << "SentencePiece is " << version << ", and may train other models than 0.1.97";
  const std::vector<Reference> references = {
      {"unigram", false, "18a5b4b990fda4dd115ff38623d128576ce39c85e4bb308064319721b4833d7f"},
      {"unigram", true, "228b3d877e275ac1e702cd88f3624bdbac36c646113827c3eb709533daf93115"},
      {"bpe", false, "0a04ce6c1b96c98605f6579a505c464e1ba92fada2abd75bb5f8de28c83855bf"},
      {"bpe", true, "8ba8072305c1b9ab9a6c3a1ceb459f368a9c599816fa664d26730fc8bd150c3d"},
      {"char", false, "c82146beeb2b460538fee9706096bb337778521e7d2042793da1db79b65508ed"},
      {"char", true, "98ac3002693d6b2d988d038486812e0f58f1b6e80781ab5a2d7c802a85f955e2"},
      {"word", false, "b076ea8940a4fd4886abfe77c1fed0065e6020e1770af5bc09f0542541e86dc7"},
      {"word", true, "650967a536ebf272757244e9b22f236f4733fb117d64781aa22fa79e17d92072"}};
  for (const Reference& reference : references) {
    const auto tokenizer = fitted({{"model_type", reference.type},
                                   {"byte_fallback", reference.byte_fallback},
                                   {"vocabulary_size", reference.byte_fallback ? 420 : 200}},
                                  training_text());
    EXPECT_EQ(digest_of_ids(*tokenizer), reference.digest)
        << reference.type << (reference.byte_fallback ? " with bytes" : "");
  }
}

TEST(SentencePiece, EncodesWithAModelFileAsTheCommandLineTools) {
  const auto tokenizer = fitted({{"model", kModelFile}}, "");

  EXPECT_EQ(digest_of_ids(*tokenizer),
            "85dbdd77a2257107b42e055bb4f17d40f9d008dbd21819e71a931a82533932d6");
  EXPECT_EQ(tokenizer->end_of_text(), 2) << "spm_train has </s> there";
}

TEST(SentencePiece, PrintsNothing) {
  testing::CapturedOutput output;

  fitted({{"vocabulary_size", 200}}, training_text());

  EXPECT_EQ(output.text(), "");
}

TEST(SentencePiece, NormalizesTexts) {
  const auto tokenizer = fitted({{"vocabulary_size", 200}}, training_text());

  EXPECT_EQ(tokenizer->decode(tokenizer->encode("  a \uFB01ne\n\n warp ")), "a fine warp");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a \u65E5")), "a  \u2047 ");
}

TEST(SentencePiece, BytesSpellWhatItDoesNotKnow) {
  const auto tokenizer =
      fitted({{"vocabulary_size", 420}, {"byte_fallback", true}}, training_text());

  const Tokens tokens = tokenizer->encode("a\u65E5");
  EXPECT_EQ(tokenizer->decode(tokens), "a\u65E5");
  EXPECT_EQ(tokenizer->decode(std::span(tokens).first(tokens.size() - 1)), "a\xE6\x97");
  EXPECT_EQ(tokenizer->token(tokens.back()), "\xA5");
}

TEST(SentencePiece, TextsOfTokensHaveSpaces) {
  const auto tokenizer = fitted({{"vocabulary_size", 200}}, training_text());

  const std::vector<std::string> names = token_names(*tokenizer);
  EXPECT_EQ(names[0], "<unknown>");
  EXPECT_EQ(names[1], "<end_of_text>");
  EXPECT_THAT(names, ::testing::Contains(" the"));
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

TEST(SentencePiece, SaysWhyItCannotBeTrained) {
  EXPECT_EQ(complaint<DataError>([] { fitted({}, "\n\n"); }),
            "the tokenizer sentencepiece: the training documents are empty");
  const std::string small = complaint<DataError>([] {
    fitted({{"vocabulary_size", 20}}, training_text());
  });
  EXPECT_THAT(small, HasSubstr("could not be trained with \"vocabulary_size\": 20: "));
  EXPECT_THAT(small, HasSubstr("set a larger one, or a lower \"character_coverage\""));
}

TEST(SentencePiece, RefusesFilesThatAreNoModels) {
  const testing::ScratchFolder folder;
  const std::string file = (folder.path() / "m.model").string();
  EXPECT_EQ(complaint<DataError>([&] {
              fitted({{"model", file}}, "");
            }),
            file + ": cannot be opened");
  std::ofstream(file) << "not a model";
  EXPECT_THAT(complaint<DataError>([&] {
                fitted({{"model", file}}, "");
              }),
              HasSubstr(file + ": is not a model of SentencePiece"));
}

TEST(SentencePiece, RefusesADamagedState) {
  const StateDict good = fitted({{"model", kModelFile}}, "")->state();
  const auto refused = [&](const at::Tensor& model) {
    StateDict state = good.snapshot();
    state.put("model", model);
    return complaint<StorageError>([&] { make({})->load_state(state); });
  };

  EXPECT_EQ(refused(good.tensor("model")), "no complaint");
  EXPECT_THAT(refused(good.tensor("model").slice(0, 0, 700)),
              HasSubstr("is damaged: its hash is another one"));
  EXPECT_THAT(refused(at::zeros({0}, at::kByte)), HasSubstr("is damaged"));
  EXPECT_THAT(refused(at::zeros({9})), HasSubstr("\"model\" is not a list of bytes"));
}

}  // namespace
}  // namespace treadle::sentencepiece_plugin
