#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/tokenizer.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/scratch_folder.h>

namespace treadle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Numbers = std::vector<std::int64_t>;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::unique_ptr<DataProvider> make(Json parameters) {
  return plugin().make<DataProvider>("text", std::move(parameters), {&plugin().registry()});
}

Numbers numbers_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return {dense.data_ptr<std::int64_t>(), dense.data_ptr<std::int64_t>() + dense.numel()};
}

class TextDataTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  /// Parameters for a file of this content.
  Json text(const std::string& content, const Json& more = Json::object(),
            const std::string& name = "text.txt") const {
    Json parameters{{"path", file(name, content)}, {"tokenizer", "characters"}};
    parameters.update(more);
    return parameters;
  }
  Json lines(const std::string& content, const Json& more = Json::object()) const {
    return text(content, more, "texts.jsonl");
  }

  static std::unique_ptr<DataProvider> opened(const Json& parameters, OpenRequest request = {}) {
    auto data = make(parameters);
    data->open(request);
    return data;
  }
  static Batch everything(const DataProvider& data) {
    const auto& rows = *data.ask<RowReader>();
    return gathered(rows, 0, rows.rows());
  }
  static std::string complaint_of(const Json& parameters) {
    try {
      opened(parameters);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  const ScratchFolder folder_;
};

// By hand: the characters are a (0), b (1), n (2).
TEST_F(TextDataTest, ATokenPredictsTheNextOne) {
  const auto data = opened(text("banana"));

  const Batch batch = everything(*data);

  EXPECT_EQ(numbers_of(batch.inputs[0]), (Numbers{1, 0, 2, 0, 2}));
  EXPECT_EQ(numbers_of(batch.targets[0]), (Numbers{0, 2, 0, 2, 0}));
  EXPECT_EQ(data->spec().targets[0].class_names, (std::vector<std::string>{"a", "b", "n"}));
  EXPECT_EQ(data->spec().inputs[0].vocabulary_size, 3);
  EXPECT_FALSE(data->ask<RowReader>()->groups().defined());
  EXPECT_FALSE(batch.weights.defined());
  EXPECT_THAT(data->ask<RowReader>()->describe_row(3),
              AllOf(HasSubstr("token 3 of"), HasSubstr("text.txt")));
}

// Documents "ab" and "b" of JSON lines, each the group of its tokens.
TEST_F(TextDataTest, NothingFollowsADocumentWithoutAnEnd) {
  const auto data = opened(lines("{\"text\": \"ab\"}\n\n{\"text\": \"b\"}\n"));

  const Batch batch = everything(*data);

  EXPECT_EQ(numbers_of(batch.inputs[0]), (Numbers{0, 1, 1}));
  EXPECT_EQ(numbers_of(data->ask<RowReader>()->groups()), (Numbers{0, 0, 1}));
  EXPECT_TRUE(batch.weights.equal(at::tensor({1.F, 0.F, 0.F})));
  EXPECT_EQ(batch.targets[0][0].item<std::int64_t>(), 1);
  EXPECT_THAT(data->ask<RowReader>()->describe_row(2), HasSubstr("token 0 of line 3 of"));
}

TEST_F(TextDataTest, AnEndOfTextBeginsEachDocumentAndFollowsIt) {
  const auto data = opened(lines("{\"text\": \"ab\"}\n{\"text\": \"b\"}\n",
                                 {{"tokenizer", {{"use", "characters"}, {"end_of_text", true}}}}));

  const Batch batch = everything(*data);

  EXPECT_EQ(numbers_of(batch.inputs[0]), (Numbers{2, 0, 1, 2, 1}));
  EXPECT_EQ(numbers_of(batch.targets[0]), (Numbers{0, 1, 2, 1, 2}));
  EXPECT_FALSE(batch.weights.defined());
  EXPECT_EQ(data->spec().targets[0].class_names.back(), "<end_of_text>");
}

TEST_F(TextDataTest, AFolderIsItsFilesInOrderOfTheirNames) {
  file("corpus/b.txt", "bb");
  file("corpus/a/x.txt", "a");
  file("corpus/.hidden", "zzz");

  const auto data =
      opened({{"path", (folder_.path() / "corpus").string()}, {"tokenizer", "characters"}});

  EXPECT_EQ(numbers_of(everything(*data).inputs[0]), (Numbers{0, 1, 1}));
  EXPECT_EQ(numbers_of(data->ask<RowReader>()->groups()), (Numbers{0, 1, 1}));
}

TEST_F(TextDataTest, ADocumentHasAClass) {
  const auto data =
      opened(lines("{\"text\": \"ab\", \"mood\": \"good\"}\n"
                   "{\"text\": \"b\", \"mood\": \"bad\"}\n",
                   {{"target", "mood"}}));

  const Batch batch = everything(*data);

  EXPECT_TRUE(batch.inputs[0].equal(at::tensor({0, 1, 1, 0}, at::kLong).view({2, 2})));
  EXPECT_EQ(numbers_of(batch.inputs[1]), (Numbers{2, 1}));
  EXPECT_EQ(numbers_of(batch.targets[0]), (Numbers{1, 0}));
  EXPECT_EQ(data->spec().targets[0].class_names, (std::vector<std::string>{"bad", "good"}));
}

TEST_F(TextDataTest, WholeNumbersAreClassesUnlessTheLossTakesNumbers) {
  const Json parameters = lines(
      "{\"text\": \"ab\", \"stars\": 4}\n{\"text\": \"b\", \"stars\": 2}\n", {{"target", "stars"}});
  EXPECT_EQ(opened(parameters)->spec().targets[0].class_names,
            (std::vector<std::string>{"2", "4"}));
  OpenRequest request;
  request.target_kinds[""] = {TargetKind::kNumbers};

  const auto data = opened(parameters, request);

  EXPECT_TRUE(everything(*data).targets[0].equal(at::tensor({4.F, 2.F}).view({2, 1})));
}

TEST_F(TextDataTest, TheFirstTokenOfAWordHasItsTag) {
  const auto data =
      opened(lines("{\"text\": [\"ab\", \"b\"], \"tags\": [\"X\", \"Y\"]}\n"
                   "{\"text\": [\"a\"], \"tags\": [\"Y\"]}\n",
                   {{"target", "tags"}}));

  const Batch batch = everything(*data);

  EXPECT_TRUE(batch.inputs[0].equal(at::tensor({0, 1, 1, 0, 0, 0}, at::kLong).view({2, 3})));
  EXPECT_TRUE(batch.targets[0].equal(at::tensor({0, 0, 1, 1, 0, 0}, at::kLong).view({2, 3})));
  EXPECT_TRUE(
      batch.position_weights[0].equal(at::tensor({1.F, 0.F, 1.F, 1.F, 0.F, 0.F}).view({2, 3})));
}

TEST_F(TextDataTest, DocumentsMayBeContinuedEachByItself) {
  const auto data = opened(lines("{\"text\": \"abb\"}\n{\"text\": \"ba\"}\n",
                                 {{"rows", "documents"}, {"max_length", 2}}));

  const Batch batch = everything(*data);

  EXPECT_TRUE(batch.inputs[0].equal(at::tensor({0, 1, 1, 0}, at::kLong).view({2, 2})));
  EXPECT_TRUE(batch.targets[0].equal(at::tensor({1, 1, 0, 0}, at::kLong).view({2, 2})));
  EXPECT_TRUE(batch.position_weights[0].equal(at::tensor({1.F, 1.F, 1.F, 0.F}).view({2, 2})));
}

TEST_F(TextDataTest, PredictsWithTheVocabularyOfTheTraining) {
  const auto training = opened(text("banana"));
  auto data = make(text("naba", Json::object(), "new.txt"));
  data->load_state(training->state());
  OpenRequest request;
  request.purpose = OpenRequest::Purpose::kPredict;

  data->open(request);

  EXPECT_EQ(numbers_of(everything(*data).inputs[0]), (Numbers{2, 0, 1}));
  EXPECT_TRUE(data->spec().targets.empty());
  EXPECT_EQ(data->ask<Tokenizer>()->decode(Numbers{2, 0}), "na");
}

TEST_F(TextDataTest, MistakesNameFileAndLine) {
  EXPECT_THAT(complaint_of({{"path", "/nowhere/x.txt"}, {"tokenizer", "characters"}}),
              AllOf(HasSubstr("/nowhere/x.txt"), HasSubstr("no such file")));
  EXPECT_THAT(complaint_of(text("a\xFF z")), AllOf(HasSubstr("text.txt"), HasSubstr("byte 1")));
  EXPECT_THAT(complaint_of(text("ab\nc\xFF\n", {{"format", "lines"}})),
              AllOf(HasSubstr("line 2 of"), HasSubstr("byte 1 is not UTF-8")));
  EXPECT_THAT(complaint_of(text("")), HasSubstr("text.txt"));
  EXPECT_THAT(complaint_of(lines("{\"text\": \"a\"}\n[1]\n")),
              AllOf(HasSubstr("line 2 of"), HasSubstr("expected a JSON object")));
  for (const char* const half : {"\\ud83d", "\\ude00", "\\ud83dx", "\\ude00\\ud83d"}) {
    EXPECT_THAT(complaint_of(lines("{\"text\": \"a\"}\n{\"text\": \"\\\\ \\ud83d\\ude00" +
                                   std::string(half) + "\"}\n")),
                AllOf(HasSubstr("line 2 of"), HasSubstr("has half of a character, \\ud")));
  }
  EXPECT_THAT(complaint_of(lines("{\"txt\": \"a\"}\n")),
              AllOf(HasSubstr("line 1 of"), HasSubstr("has no key \"text\"")));
  EXPECT_THAT(complaint_of(lines("{\"text\": 3}\n")),
              AllOf(HasSubstr("expected a string or a list of strings"), HasSubstr("got 3")));
  EXPECT_THAT(complaint_of(lines("{\"text\": \"a\"}\n", {{"target", "mood"}})),
              AllOf(HasSubstr("line 1 of"), HasSubstr("has no target \"mood\"")));
  EXPECT_THAT(
      complaint_of(lines("{\"text\": [\"a\", \"b\"], \"tags\": [\"X\"]}\n", {{"target", "tags"}})),
      AllOf(HasSubstr("has 1 tags"), HasSubstr("2 strings")));
  EXPECT_THAT(complaint_of(text("a", {{"target", "mood"}, {"format", "text"}})),
              HasSubstr("/target: is a key of JSON lines"));
  EXPECT_THAT(complaint_of(text("a", {{"max_length", 3}})), HasSubstr("/max_length"));
}

TEST_F(TextDataTest, DocumentsWithoutATokenTeachNothing) {
  const auto no_token = HasSubstr("there is no token to learn from");
  const Json bytes{{"tokenizer", "bytes"}, {"target", "tags"}};

  EXPECT_THAT(complaint_of(text("a", {{"rows", "documents"}})), no_token);
  EXPECT_THAT(complaint_of(lines("{\"text\": [], \"tags\": []}\n", bytes)), no_token);
}

TEST_F(TextDataTest, AClassIsNoListOfTags) {
  const auto training =
      opened(lines("{\"text\": [\"ab\"], \"tags\": [\"X\"]}\n", {{"target", "tags"}}));
  auto data =
      make(text("{\"text\": [\"ab\"], \"tags\": \"X\"}\n", {{"target", "tags"}}, "new.jsonl"));
  data->load_state(training->state());
  OpenRequest request;
  request.purpose = OpenRequest::Purpose::kEvaluate;
  try {
    data->open(request);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("line 1 of"),
                                    HasSubstr("expected a list of tags, got \"X\" (text)")));
  }
}

TEST_F(TextDataTest, ADeeplyNestedLineIsRefused) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');

  EXPECT_THAT(
      complaint_of(lines("{\"text\": [\"a\"], \"tags\": [" + deep + "]}\n", {{"target", "tags"}})),
      HasSubstr("expected a JSON object"));
}

TEST_F(TextDataTest, AClassOfNoTrainingIsRefused) {
  const auto training =
      opened(lines("{\"text\": \"ab\", \"mood\": \"good\"}\n"
                   "{\"text\": \"b\", \"mood\": \"bad\"}\n",
                   {{"target", "mood"}}));
  auto data =
      make(text("{\"text\": \"ab\", \"mood\": \"god\"}\n", {{"target", "mood"}}, "new.jsonl"));
  data->load_state(training->state());
  OpenRequest request;
  request.purpose = OpenRequest::Purpose::kEvaluate;
  try {
    data->open(request);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("line 1 of"), HasSubstr("\"god\" is none"),
                                    HasSubstr("did you mean \"good\"")));
  }
}

DataCase text_case(std::string name, std::string file, std::string content, Json more) {
  return {std::move(name), [=] {
            static const ScratchFolder folder;
            const auto path = folder.path() / file;
            std::ofstream(path, std::ios::binary) << content;
            Json parameters{{"path", path.string()}, {"tokenizer", "characters"}};
            parameters.update(more);
            return make(parameters);
          }};
}

const std::string kReviews =
    "{\"text\": \"a fine film\", \"mood\": \"good\", \"tags\": 1}\n"
    "{\"text\": \"dull\", \"mood\": \"bad\"}\n{\"text\": \"fine\", \"mood\": \"good\"}\n"
    "{\"text\": \"a dull film\", \"mood\": \"bad\"}\n{\"text\": \"mad\", \"mood\": \"good\"}\n"
    "{\"text\": \"film\", \"mood\": \"bad\"}\n";

INSTANTIATE_TEST_SUITE_P(
    Text, DataContract,
    ::testing::Values(text_case("Tokens", "tokens.txt", "to be or not to be", Json::object()),
                      text_case("Lines", "lines.txt", "to be\nor not\nto be\n",
                                {{"format", "lines"}}),
                      text_case("LinesWithAnEnd", "ends.txt", "to be\nor not\nto be\n",
                                {{"format", "lines"},
                                 {"tokenizer", {{"use", "characters"}, {"end_of_text", true}}}}),
                      text_case("Classes", "classes.jsonl", kReviews, {{"target", "mood"}}),
                      text_case("Documents", "documents.jsonl", kReviews, {{"rows", "documents"}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
