// Language models: trained on packed texts, stopped, resumed, and made to write.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/host/run/generator.h>
#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using ::testing::HasSubstr;
using testing::read_file;
using testing::stopped_and_resumed;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
using End = GeneratedText::End;
namespace fs = std::filesystem;

/// Sentences of a small grammar, one per line: each subject has a verb and an object of its own.
std::string sentences(int count) {
  const std::vector<std::string> whole{"the cat eats fish.", "a dog digs holes.",
                                       "my bird sings songs."};
  RandomBits bits(5);
  std::string text;
  for (int i = 0; i < count; ++i)
    text += whole[bits.below(whole.size())] + "\n";
  return text;
}

fs::path write_text(const fs::path& folder, const std::string& text) {
  const fs::path path = folder / "text.txt";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// A single text: samples overlap in training.
Json one_text(const Workspace& workspace) {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "text", "seed": 4,
    "data": {"use": "text", "tokenizer": "characters"},
    "sequence": {"use": "packed", "length": 24, "stride": 1},
    "validation": {"use": "consecutive", "validation_size": 0.1},
    "model": {"use": "flow", "flow": [{"use": "graph", "builder": {
      "use": "gpt", "num_layers": 2, "num_heads": 2, "hidden_size": 24, "max_length": 24, "dropout": 0.1}}]},
    "optimizer": {"use": "adamw", "learning_rate": 0.005},
    "schedule": "watched",
    "training": {"use": "standard", "max_steps": 60, "batch_size": 8, "checkpoint": {"every": "7st"}},
    "metrics": ["perplexity", "bits_per_byte"],
    "resources": {"workers": 2}})");
  document["data"]["path"] = write_text(workspace.folder(), sentences(150)).string();
  return document;
}

/// Documents that end: each line is one, and samples hold several.
Json documents(const Workspace& workspace) {
  Json document = one_text(workspace);
  document["data"]["format"] = "lines";
  document["data"]["tokenizer"] = {{"use", "characters"}, {"end_of_text", true}};
  document["sequence"].erase("stride");
  document["validation"] = {{"use", "hold_out"}, {"fraction", 0.1}};
  document["model"]["flow"][0]["using"] = {"segments"};
  document["model"]["flow"][0]["builder"]["positions"] = "rotary";
  return document;
}

RunOutcome run(const Workspace& workspace, const Json& document) {
  const Runtime runtime = watching_runtime();
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

using MakeDocument = Json (*)(const Workspace&);
class TextRunBits : public ::testing::TestWithParam<MakeDocument> {};

TEST_P(TextRunBits, AreTheSameForAnyWorkersAndAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  const Workspace whole;
  Json document = GetParam()(whole);
  const std::string expected = bits_of(run(whole, document).folder);
  document["resources"]["workers"] = 3;
  const Workspace wide;
  EXPECT_EQ(bits_of(run(wide, document).folder), expected);
  for (const int steps : {3, 20, 45}) {
    const Workspace workspace;

    const fs::path folder = stopped_and_resumed(runtime, workspace, document, steps).folder;

    EXPECT_EQ(bits_of(folder), expected) << "stopped after " << steps << " steps";
  }
}

INSTANTIATE_TEST_SUITE_P(Texts, TextRunBits, ::testing::Values(&one_text, &documents),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "OneText" : "Documents");
                         });

// The last tenth validates, in samples of 24 that do not overlap.
TEST(TextRuns, JudgeEachTokenOnce) {
  const Workspace workspace;
  Json document = one_text(workspace);
  document["training"]["max_steps"] = 1;
  const std::int64_t tokens =
      static_cast<std::int64_t>(fs::file_size(workspace.folder() / "text.txt")) - 1;

  const Json result = to_json(run(workspace, document).result);

  const std::int64_t validated = result.at("validation").at("sample_count");
  EXPECT_NEAR(static_cast<double>(validated), static_cast<double>(tokens) / 10 / 24, 1);
  // Characters of one byte: per token is per byte.
  EXPECT_NEAR(result.at("validation").at("metrics").at("bits_per_byte").get<double>(),
              result.at("validation").at("loss").get<double>() / std::log(2.0), 1e-4);
}

/// A model that has learned the sentences, trained once.
class Generating : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    workspace_ = new Workspace();
    Json document = one_text(*workspace_);
    document["training"]["max_steps"] = 500;
    document["training"].erase("checkpoint");
    document["model"]["flow"][0]["builder"]["dropout"] = 0;
    document.erase("schedule");
    const Runtime runtime = watching_runtime();
    one_text_ = run_workflow(runtime, runtime.resolve(document), workspace_->options()).folder;
    document = documents(*workspace_);
    document["name"] = "documents";
    document["training"]["max_steps"] = 500;
    document["training"].erase("checkpoint");
    document["model"]["flow"][0]["builder"]["dropout"] = 0;
    document.erase("schedule");
    documents_ = run_workflow(runtime, runtime.resolve(document), workspace_->options()).folder;
  }
  static void TearDownTestSuite() {
    delete workspace_;
    workspace_ = nullptr;
  }

  static inline Workspace* workspace_ = nullptr;
  static inline fs::path one_text_;
  static inline fs::path documents_;
  const Runtime runtime_ = watching_runtime();
};

TEST_F(Generating, ContinuesWithWhatItHasLearned) {
  const Generator generator = Generator::load(runtime_, one_text_);
  GenerationOptions options;
  options.temperature = 0;
  options.max_new_tokens = 11;

  EXPECT_EQ(generator.generate("the cat", options).text, " eats fish.");
  EXPECT_EQ(generator.generate("a dog d", options).text.substr(0, 10), "igs holes.");
}

TEST_F(Generating, TheSameSeedGivesTheSameTextInPieces) {
  const Generator generator = Generator::load(runtime_, one_text_);
  GenerationOptions options;
  options.seed = 7;
  options.temperature = 1.5;
  options.max_new_tokens = 60;
  std::string pieces;

  const GeneratedText text =
      generator.generate("m", options, [&](std::string_view piece) { pieces += piece; });

  EXPECT_EQ(pieces, text.text);
  EXPECT_EQ(text.tokens, 60);
  EXPECT_EQ(text.end, End::kLength);
  EXPECT_EQ(Generator::load(runtime_, one_text_).generate("m", options).text, text.text);
  options.seed = 8;
  EXPECT_NE(generator.generate("m", options).text, text.text);
}

// Beyond the 24 tokens of a sample the model sees the last 24, with and without a cache.
TEST_F(Generating, TheCacheChangesNoToken) {
  for (const fs::path& folder : {one_text_, documents_}) {
    const Generator generator = Generator::load(runtime_, folder);
    for (const std::uint64_t seed : {1, 2, 3}) {
      GenerationOptions options;
      options.seed = seed;
      options.max_new_tokens = 50;
      const GeneratedText cached = generator.generate("my b", options);
      options.use_cache = false;
      const GeneratedText recomputed = generator.generate("my b", options);

      EXPECT_TRUE(cached.used_cache);
      EXPECT_FALSE(recomputed.used_cache);
      EXPECT_EQ(cached.text, recomputed.text) << folder << " " << seed;
    }
  }
}

TEST_F(Generating, OneOfOneTokenIsTheLikeliest) {
  const Generator generator = Generator::load(runtime_, one_text_);
  GenerationOptions greedy;
  greedy.temperature = 0;
  GenerationOptions one;
  one.top_k = 1;
  GenerationOptions nearly_none;
  nearly_none.top_p = 1e-9;

  const std::string expected = generator.generate("a", greedy).text;

  EXPECT_EQ(generator.generate("a", one).text, expected);
  EXPECT_EQ(generator.generate("a", nearly_none).text, expected);
}

TEST_F(Generating, StopsInFrontOfAStopString) {
  const Generator generator = Generator::load(runtime_, one_text_);
  GenerationOptions options;
  options.temperature = 0;
  options.stop_strings = {"nowhere", "fish"};
  std::string pieces;

  const GeneratedText text =
      generator.generate("the cat", options, [&](std::string_view piece) { pieces += piece; });

  EXPECT_EQ(text.text, " eats ");
  EXPECT_EQ(pieces, " eats ");
  EXPECT_EQ(text.end, End::kStopString);
}

TEST_F(Generating, DocumentsEndByThemselvesAndNeedNoPrompt) {
  const Generator generator = Generator::load(runtime_, documents_);
  GenerationOptions options;
  options.temperature = 0.2;

  const GeneratedText text = generator.generate("", options);

  EXPECT_EQ(text.end, End::kEndOfText);
  EXPECT_THAT(sentences(50), HasSubstr(text.text + "\n"));
}

// Of texts of any length the model was given none longer than a line; its positions end at 32.
TEST(GeneratingFromDocuments, SeesAsManyTokensAsThePositionsAllow) {
  const Workspace workspace;
  const Runtime runtime = watching_runtime();
  Json document = documents(workspace);
  document.erase("sequence");
  document["data"]["rows"] = "documents";
  document["model"]["flow"][0].erase("using");
  document["model"]["flow"][0]["builder"]["positions"] = "learned";
  document["model"]["flow"][0]["builder"]["max_length"] = 32;
  document["training"]["max_steps"] = 200;
  const Generator generator = Generator::load(runtime, run(workspace, document).folder);
  GenerationOptions options;
  options.temperature = 0;

  EXPECT_THAT(sentences(50), HasSubstr(generator.generate("my bird", options).text + "\n"));
  options.temperature = 3;
  options.max_new_tokens = 60;
  options.seed = 2;
  EXPECT_NO_THROW(generator.generate(std::string(40, 'a'), options));
}

TEST_F(Generating, WorksFromAnExportedModel) {
  const fs::path file = workspace_->folder() / "model.safetensors";
  export_model(one_text_, file);
  GenerationOptions options;
  options.max_new_tokens = 30;

  EXPECT_EQ(Generator::load(runtime_, file).generate("my", options).text,
            Generator::load(runtime_, one_text_).generate("my", options).text);
}

TEST_F(Generating, MistakesSayWhatToDo) {
  const Generator generator = Generator::load(runtime_, one_text_);
  const auto complaint_of = [&](std::string_view prompt, const GenerationOptions& options) {
    try {
      generator.generate(prompt, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(complaint_of("", {}), HasSubstr("the prompt is empty"));
  EXPECT_THAT(complaint_of("caf\xC3\xA9", {}), HasSubstr("byte 3"));
  GenerationOptions options;
  options.temperature = -1;
  EXPECT_THAT(complaint_of("a", options), HasSubstr("temperature must be 0 or more"));
  options = {};
  options.top_p = 0;
  EXPECT_THAT(complaint_of("a", options), HasSubstr("top_p must be in (0, 1]"));
}

TEST(GeneratingFromOtherRuns, IsRefused) {
  const Workspace workspace;
  const Runtime runtime = watching_runtime();
  const fs::path folder =
      run_workflow(runtime, runtime.resolve(testing::moons()), workspace.options()).folder;
  try {
    Generator::load(runtime, folder);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("its data, \"moons\", has no tokenizer"));
  }
}

// A document per row: by its words, which a mean of embeddings can tell.
TEST(TextRuns, ClassifyDocuments) {
  const Workspace workspace;
  std::string lines;
  RandomBits bits(3);
  const std::vector<std::string> fillers{"the", "a", "film", "was", "really", "and"};
  for (int i = 0; i < 200; ++i) {
    const bool is_good = bits.below(2) == 1;
    std::string text;
    for (std::uint64_t k = 0; k < 3 + bits.below(6); ++k)
      text += fillers[bits.below(fillers.size())] + " ";
    text += is_good ? "fine" : "dull";
    lines += Json{{"text", text}, {"mood", is_good ? "good" : "bad"}}.dump() + "\n";
  }
  const fs::path path = workspace.folder() / "reviews.jsonl";
  std::ofstream(path) << lines;
  Json document = Json::parse(R"({
    "treadle": 1, "name": "reviews", "seed": 1,
    "data": {"use": "text", "tokenizer": "words", "target": "mood"},
    "model": {"use": "flow", "flow": [
      {"use": "embedding", "embedding_dim": 8},
      {"use": "reduce", "dims": [1], "using": ["tokens.lengths"]},
      "head"]},
    "optimizer": {"use": "adam", "learning_rate": 0.05},
    "training": {"use": "standard", "epochs": 20},
    "metrics": ["accuracy"]})");
  document["data"]["path"] = path.string();

  const RunOutcome outcome = run(workspace, document);

  EXPECT_GE(outcome.result.training.validation->at("accuracy"), 0.95);
  const Runtime runtime = watching_runtime();
  EXPECT_GE(Predictor::load(runtime, outcome.folder).evaluate_file(path).at("accuracy"), 0.95);
}

}  // namespace
}  // namespace treadle
