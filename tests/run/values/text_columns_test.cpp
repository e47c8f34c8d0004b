// Columns of text beside numbers, in every kind of table.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/row_reader.h>

#include "workspace.h"

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Workspace;
namespace fs = std::filesystem;

class TextColumns : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(workspace_.folder() / name, std::ios::binary) << text;
    return workspace_.folder() / name;
  }
  std::unique_ptr<DataProvider> make(const std::string& source, const fs::path& path,
                                     json texts = {{{"column", "said"}, {"tokenizer", "words"}}},
                                     json more = json::object()) const {
    json parameters = {{"path", path.string()}, {"target", "y"}, {"texts", std::move(texts)}};
    parameters.update(more);
    return runtime_.registry().make<DataProvider>(source, Config(parameters));
  }
  static Batch rows_of(const DataProvider& data) {
    const RowReader& reader = *data.ask<RowReader>();
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < reader.rows(); ++row)
      rows.push_back(row);
    Batch batch;
    reader.gather(rows, batch);
    return batch;
  }
  static std::vector<std::int64_t> values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.contiguous();
    return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
  }
  static OpenRequest predict_request() {
    OpenRequest request;
    request.purpose = OpenRequest::Purpose::kPredict;
    return request;
  }
  static std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  const Workspace workspace_;
  const Runtime runtime_;
};

constexpr const char* kNotes =
    "size,said,y\n1,b a b,0.5\n2,,1.5\n3,\"a, b a b\",2.5\n4,unseen later,3.5\n";

TEST_F(TextColumns, BecomeTokensAndTheirNumber) {
  const auto data = make("csv", write("notes.csv", kNotes));
  data->open({});

  const DataSpec& spec = data->spec();
  ASSERT_EQ(spec.inputs.size(), 3U);
  EXPECT_EQ(spec.inputs[0].columns.size(), 1U) << "the text is no number";
  EXPECT_EQ(spec.inputs[1].name, "said");
  EXPECT_EQ(spec.inputs[1].role, Role::kTokens);
  EXPECT_EQ(spec.inputs[2].name, "said.lengths");
  const Batch batch = rows_of(*data);
  const std::vector<std::int64_t> lengths = values(batch.inputs[2]);
  EXPECT_EQ(lengths[1], 0);
  EXPECT_EQ(batch.inputs[1].size(1), *std::max_element(lengths.begin(), lengths.end()));
  // The same words have the same tokens, padded by 0.
  const at::Tensor first = batch.inputs[1][0];
  EXPECT_EQ(first[0].item<std::int64_t>(), first[2].item<std::int64_t>());
  EXPECT_NE(first[0].item<std::int64_t>(), first[1].item<std::int64_t>());
  EXPECT_THAT(values(batch.inputs[1][1]), ::testing::Each(0));
}

TEST_F(TextColumns, AreCutToMaxLength) {
  const auto data = make("csv", write("notes.csv", kNotes),
                         {{{"column", "said"}, {"tokenizer", "characters"}, {"max_length", 4}}});
  data->open({});

  EXPECT_THAT(values(rows_of(*data).inputs[2]), ElementsAre(4, 0, 4, 4));
}

TEST_F(TextColumns, AreTheSameFromEveryFormat) {
  const auto of_csv = make("csv", write("notes.csv", kNotes));
  const auto of_jsonl = make("jsonl", write("notes.jsonl", R"({"size": 1, "said": "b a b", "y": 0.5}
{"size": 2, "said": null, "y": 1.5}
{"size": 3, "said": "a, b a b", "y": 2.5}
{"size": 4, "y": 3.5, "said": "unseen later"}
)"));
  of_csv->open({});
  of_jsonl->open({});

  EXPECT_EQ(of_csv->content_hash(), of_jsonl->content_hash());
}

TEST_F(TextColumns, MayBeTheOnlyInputs) {
  const auto data =
      make("csv", write("notes.csv", "said,y,title\na b,0.5,x\nb,1.5,y\n"),
           {{{"column", "said"}, {"tokenizer", "words"}}, {{"column", 2}, {"tokenizer", "bytes"}}});
  data->open({});

  std::vector<std::string> names;
  for (const PortSpec& port : data->spec().inputs)
    names.push_back(port.name);
  EXPECT_THAT(names, ElementsAre("said", "said.lengths", "title", "title.lengths"));
  EXPECT_THAT(values(rows_of(*data).inputs[3]), ElementsAre(1, 1));
}

TEST_F(TextColumns, OfOtherFilesHaveTheVocabularyOfTheTraining) {
  const json bytes = {{{"column", "said"}, {"tokenizer", "words"}}};
  const auto trained = make("csv", write("notes.csv", kNotes), bytes);
  trained->open({});
  const auto later = make("csv", write("later.csv", "said,size\nb a,7\n"), bytes);
  later->load_state(trained->state());
  later->open(predict_request());

  const Batch seen = rows_of(*trained);
  const Batch batch = rows_of(*later);
  EXPECT_EQ(later->spec().inputs, trained->spec().inputs);
  EXPECT_THAT(values(batch.inputs[1]), ElementsAre(seen.inputs[1][0][0].item<std::int64_t>(),
                                                   seen.inputs[1][0][1].item<std::int64_t>()));
  const auto without = make("csv", write("without.csv", "size\n7\n"), bytes);
  without->load_state(trained->state());
  EXPECT_THAT(message_of([&] { without->open(predict_request()); }),
              HasSubstr("without.csv:1: the model needs the column \"said\", which is not there"));
}

TEST_F(TextColumns, NameTheRowOfATextThatTheVocabularyLacks) {
  const json characters = {{{"column", "said"}, {"tokenizer", "characters"}}};
  const auto trained = make("csv", write("notes.csv", kNotes), characters);
  trained->open({});
  const auto later = make("csv", write("later.csv", "said,size\na b,7\na?,8\n"), characters);
  later->load_state(trained->state());

  EXPECT_THAT(message_of([&] { later->open(predict_request()); }),
              HasSubstr("later.csv:3: column \"said\": "));
}

TEST_F(TextColumns, RefuseOtherUsesOfTheirNames) {
  const fs::path path = write("notes.csv", "features,said,y\n1,a,0.5\n2,b,1.5\n");
  const auto refusal = [&](const json& texts, const json& more) {
    return message_of([&] { make("csv", path, texts, more)->open({}); });
  };
  const json said = {{{"column", "said"}, {"tokenizer", "words"}}};

  EXPECT_THAT(refusal(said, {{"columns", {"said"}}}), HasSubstr("a column has one use"));
  EXPECT_THAT(refusal({{{"column", "features"}, {"tokenizer", "words"}}}, {{"columns", {"said"}}}),
              HasSubstr("two inputs are named \"features\""));
  EXPECT_THAT(refusal({{{"column", "sad"}, {"tokenizer", "words"}}}, json::object()),
              HasSubstr("there is no column \"sad\" for \"texts\""));
  EXPECT_THAT(refusal(said, {{"in_memory", false}}), HasSubstr("leave out \"in_memory\": false"));
}

TEST_F(TextColumns, AreProposedWhereAColumnHasSentences) {
  const auto data = make("csv", write("notes.csv", "said,t,y\na b c d,a,0.5\n"),
                         {{{"column", "t"}, {"tokenizer", "words"}}});
  EXPECT_THAT(message_of([&] { data->open({}); }),
              HasSubstr("column \"said\": expected a number, got \"a b c d\"; name the column in "
                        "\"texts\""));
}

// A model that sees the words alone: the numbers are noise.
TEST_F(TextColumns, AreTrainedOnBesideNumbers) {
  std::string table = "size,review,stars\n";
  const std::vector<std::string> words{"good", "bad", "coat", "shoe", "was"};
  for (int row = 0; row < 200; ++row) {
    table += std::to_string(row * 37 % 11) + "," + words[static_cast<std::size_t>(2 + row % 3)] +
             " " + words[static_cast<std::size_t>(row * 7 % 2)] + "," +
             (row * 7 % 2 == 0 ? "five" : "one") + "\n";
  }
  json document = json::parse(R"({"treadle": 1, "seed": 3,
    "data": {"use": "csv", "texts": [{"column": "review", "tokenizer": "words"}]},
    "transforms": ["standardize"], "metrics": ["accuracy"],
    "model": {"use": "flow", "flow": [
      {"use": "input", "names": ["review", "review.lengths"]},
      {"use": "dense", "out_features": 4, "tag": "numbers"},
      {"use": "at", "tags": ["review"]}, {"use": "embedding", "embedding_dim": 4},
      {"use": "reduce", "dims": [1], "reduction": "mean", "using": ["review.lengths"], "tag": "words"},
      {"use": "at", "tags": ["numbers", "words"]}, {"use": "merge", "with": "cat"},
      {"use": "dense", "out_features": 8}, "relu", "head"]},
    "optimizer": {"use": "adamw", "learning_rate": 0.02},
    "training": {"epochs": 10, "batch_size": 16}})");
  document["data"]["path"] = write("reviews.csv", table).string();

  const auto trained = [&](int workers) {
    document["resources"] = {{"workers", workers}};
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
  };
  const RunOutcome outcome = trained(1);
  EXPECT_EQ(outcome.result.at("accuracy"), 1);
  EXPECT_EQ(testing::bits_of(trained(3).folder), testing::bits_of(outcome.folder));
}

}  // namespace
}  // namespace treadle
