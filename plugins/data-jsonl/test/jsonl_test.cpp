#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/table_profile.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/data/stream_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

#include "jsonl_data.h"
#include "jsonl_writer.h"

namespace treadle::jsonl {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;
using testing::PluginUnderTest;

/// Small files and what they are as data; messages have "x.jsonl" for the file.
class JsonlTest : public ::testing::Test {
 protected:
  JsonlTest() { std::filesystem::create_directories(folder_); }
  ~JsonlTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file() const { return folder_ / "x.jsonl"; }
  void write(std::string_view text) const { std::ofstream(file(), std::ios::binary) << text; }

  std::unique_ptr<JsonlData> open(std::string_view text, Json parameters = Json::object(),
                                  const OpenRequest& request = {}) const {
    write(text);
    parameters["path"] = file().string();
    auto data = std::make_unique<JsonlData>(Config(parameters));
    data->open(request);
    return data;
  }

  std::string error(std::string_view text, const Json& parameters = Json::object()) const {
    try {
      open(text, parameters);
    } catch (const Error& error) {
      std::string message = error.what();
      const std::string folder = folder_.string() + "/";
      for (std::size_t at = message.find(folder); at != std::string::npos;
           at = message.find(folder))
        message.erase(at, folder.size());
      return message;
    }
    return "no error";
  }

  static std::vector<double> values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kDouble).contiguous();
    return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
  }
  static Batch batch(const DataProvider& data) {
    const RowReader& rows = *data.ask<RowReader>();
    std::vector<std::int64_t> all;
    for (std::int64_t row = 0; row < rows.rows(); ++row)
      all.push_back(row);
    Batch out;
    rows.gather(all, out);
    return out;
  }
  static std::vector<std::string> names(const DataProvider& data, std::size_t port = 0) {
    std::vector<std::string> names;
    for (const Column& column : data.spec().inputs[port].columns)
      names.push_back(column.name);
    return names;
  }

 private:
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() /
                                  ("treadle-jsonl-" + std::to_string(::getpid()) + "-" +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(JsonlTest, ReadsNumbersBooleansAndTextByKeyInAnyOrder) {
  const auto data = open(R"({"a": 1.5, "on": true, "y": "yes"}
{"y": "no", "on": false, "a": -2}

{"on": true, "a": 3e2, "y": "yes"})");

  EXPECT_THAT(names(*data), ElementsAre("a", "on"));
  EXPECT_THAT(values(batch(*data).inputs[0]), ElementsAre(1.5, 1, -2, 0, 300, 1));
  EXPECT_THAT(values(batch(*data).targets[0]), ElementsAre(1, 0, 1));
  EXPECT_THAT(data->spec().targets[0].class_names, ElementsAre("no", "yes"));
}

TEST_F(JsonlTest, FlattensNestedObjects) {
  const auto data = open(R"({"size": {"w": 1, "deep": {"h": 2}}, "y": 0.5}
{"size": {"deep": {"h": 4}, "w": 3}, "y": 1.5})");

  EXPECT_THAT(names(*data), ElementsAre("size.w", "size.deep.h"));
  EXPECT_THAT(values(batch(*data).inputs[0]), ElementsAre(1, 2, 3, 4));
}

TEST_F(JsonlTest, TakesKeysThatComeLaterAndLeavesOthersMissing) {
  const auto data = open(R"({"a": 1, "y": 0.5}
{"a": null, "y": 1.5, "late": 7}
{"y": 2.5, "late": 8, "a": 2})",
                         {{"target", "y"}, {"missing", "nan"}});

  EXPECT_THAT(names(*data), ElementsAre("a", "late"));
  const std::vector<double> numbers = values(batch(*data).inputs[0]);
  EXPECT_EQ(numbers[0], 1);
  EXPECT_TRUE(std::isnan(numbers[1]));
  EXPECT_TRUE(std::isnan(numbers[2]));
  EXPECT_EQ(numbers[3], 7);
}

TEST_F(JsonlTest, TakesNullForAnObjectThatOtherLinesHave) {
  const auto data = open(R"({"a": null, "b": 1, "y": 0.5}
{"a": {"c": 2}, "b": 1, "y": 1.5})",
                         {{"target", "y"}, {"missing", "nan"}});

  EXPECT_THAT(names(*data), ElementsAre("b", "a.c"));
}

TEST_F(JsonlTest, KeepsIntegersOf64BitsExactAsLabels) {
  const auto data = open(R"({"id": 9007199254740993, "x": 1, "y": 0.5}
{"id": 9007199254740992, "x": 1, "y": 1.5}
{"id": 18446744073709551615, "x": 1, "y": 1.5})",
                         {{"categorical", {"id"}}, {"target", "y"}});

  EXPECT_THAT(data->spec().inputs[1].columns[0].categories,
              ElementsAre("9007199254740992", "9007199254740993", "18446744073709551615"));
}

TEST_F(JsonlTest, GivesListsAsTheirJsonText) {
  const auto data = open("{\"tags\": [1, \"a\\nb\", {\"k\": [null, true]}], \"x\": 1, \"y\": 2}\n",
                         {{"columns", {"x"}}, {"target", "y"}});

  EXPECT_THAT(data->ask<SourceColumns>()->texts({"tags"})[0],
              ElementsAre(R"([1,"a\nb",{"k":[null,true]}])"));
}

TEST_F(JsonlTest, CountsItsColumnsForAuto) {
  write("{\"n\": 1, \"t\": \"a\"}\n{\"n\": 2.5}\n{\"n\": null, \"t\": \"a\"}\n");
  JsonlData data(Config(Json{{"path", file().string()}}));

  const TableProfile profile = data.ask<TableProfiler>()->profile();

  EXPECT_EQ(profile.rows, 3);
  EXPECT_EQ(profile.columns[0].numbers, 2);
  EXPECT_EQ(profile.columns[0].missing, 1);
  EXPECT_EQ(profile.columns[1].missing, 1);
  EXPECT_EQ(profile.columns[1].frequent[0].text, "a");
}

TEST_F(JsonlTest, ListsBadLinesWithTheirPlace) {
  EXPECT_EQ(
      error(R"({"a": 1, "y": 2}
{"a": 1, "y": 2
[1, 2]
{"a": "one", "y": 2}
{"a": 1, "a": 2, "y": 2}
7
{"a": 1}
)",
            {{"target", "y"}, {"task", "regression"}}),
      R"(x.jsonl:2: is no JSON object: column 16: syntax error while parsing object - unexpected end of input; expected '}'
x.jsonl:3: expected an object, as {"size": 1.5, "kind": "a"}
x.jsonl:4: column "a": expected a number, got "one"; list the column in "categorical" or the text in "missing_values"
x.jsonl:5: has the key "a" twice
x.jsonl:6: expected an object, as {"size": 1.5, "kind": "a"}
and 1 more)");
}

TEST_F(JsonlTest, RefusesFilesThatAreNone) {
  EXPECT_EQ(error(""), "x.jsonl: the file is empty");
  EXPECT_EQ(error("\n \n"), "x.jsonl: the file is empty");
  EXPECT_EQ(error("{}\n"), "x.jsonl:1: the object has no key");
  EXPECT_THAT(error("a,b\n1,2\n"), ::testing::StartsWith("x.jsonl:1: is no JSON object: column 1"));
  EXPECT_THAT(error("{\"a\": \"\xC3\x28\", \"y\": 1}\n"),
              ::testing::HasSubstr("x.jsonl:1: is no JSON object"));
  EXPECT_THAT(error("{\"a\": 1e999, \"y\": 1}\n{\"a\": 1, \"y\": 1}\n"),
              ::testing::HasSubstr("number overflow parsing '1e999'"));
}

// printf '{"a": 1, "y": 2}\n{"a": 3, "y": 4}\n' | gzip -n
TEST_F(JsonlTest, ReadsPackedFiles) {
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x56\x4a\x54\xb2\x52\x30\xd4\x51\x50"
      "\xaa\x04\xd2\x46\xb5\x5c\xd5\x60\x01\x63\xa8\x80\x49\x2d\x17\x00\xb2\x3a\x65\x09"
      "\x22\x00\x00\x00",
      44);
  if (error(packed).find("cannot unpack") != std::string::npos)
    GTEST_SKIP() << "needs a build with zlib";

  EXPECT_THAT(values(open(packed)->ask<RowReader>()->targets(0)), ElementsAre(2, 4));
  EXPECT_THAT(error(packed.substr(0, packed.size() - 9)),
              ::testing::HasSubstr("the packed file ends too early"));
}

TEST_F(JsonlTest, SurvivesDeepNesting) {
  std::string deep;
  for (int i = 0; i < 200'000; ++i)
    deep += "[";
  EXPECT_THAT(error("{\"a\": " + deep + "\n"), ::testing::HasSubstr("is no JSON object"));
}

TEST_F(JsonlTest, ReadsTheSameRowsInChunks) {
  std::string text = "\xEF\xBB\xBF";
  for (int row = 0; row < 20'000; ++row) {
    text += "{\"a\": " + std::to_string(row) + ", \"y\": 0.5}" + (row % 3 == 0 ? "\r\n\n" : "\n");
  }
  const auto whole = open(text);
  const auto data = open(text, {{"in_memory", false}});

  std::vector<Batch> batches;
  const auto stream = data->stream(999);
  for (Batch batch; stream->next(batch);)
    batches.push_back(batch);
  EXPECT_EQ(values(Batch::join(batches).inputs[0]), values(batch(*whole).inputs[0]));
}

TEST_F(JsonlTest, TakesTheKeysOfAllFilesAndReadsThemInOrder) {
  write(R"({"a": 1, "y": 0.5}
{"a": 2, "y": 1.5})");
  const std::filesystem::path first = std::filesystem::path(file()).replace_filename("1.jsonl");
  std::filesystem::rename(file(), first);
  write("");
  std::filesystem::rename(file(), first.parent_path() / "2.jsonl");
  write("\xEF\xBB\xBF{\"late\": 7, \"y\": 2.5, \"a\": 3}\n");
  std::filesystem::rename(file(), first.parent_path() / "3.jsonl");
  for (const bool in_memory : {true, false}) {
    JsonlData data(Config(Json{{"path", (first.parent_path() / "?.jsonl").string()},
                               {"target", "y"},
                               {"missing", "nan"},
                               {"in_memory", in_memory}}));
    data.open({});

    EXPECT_THAT(names(data), ElementsAre("a", "late"));
    const auto stream = data.stream(2);
    std::vector<Batch> batches;
    for (Batch rows; stream->next(rows);)
      batches.push_back(rows);
    const Batch all = Batch::join(batches);
    EXPECT_THAT(values(all.targets[0]), ElementsAre(0.5, 1.5, 2.5));
    EXPECT_EQ(values(all.inputs[0])[4], 3);
    EXPECT_EQ(values(all.inputs[0])[5], 7);
  }
}

TEST_F(JsonlTest, ReadsLinesLongerThanAPiece) {
  const std::string text(3 << 20, 'x');
  const auto data =
      open("{\"t\": \"" + text + "\", \"a\": 1, \"y\": 0.5}\n{\"t\": \"b\", \"a\": 2, \"y\": 1}",
           {{"columns", {"a"}}});

  EXPECT_THAT(values(batch(*data).inputs[0]), ElementsAre(1, 2));
  EXPECT_EQ(data->ask<SourceColumns>()->texts({"t"})[0][0], text);
}

class JsonlWriterTest : public JsonlTest {
 protected:
  using Type = TableWriter::Column::Type;

  std::string written(std::vector<TableWriter::Column> columns,
                      const std::vector<std::vector<TableWriter::Values>>& chunks) const {
    JsonlWriter writer(Config(Json{{"path", file().string()}}));
    writer.open(std::move(columns));
    for (const std::vector<TableWriter::Values>& chunk : chunks)
      writer.write(chunk);
    writer.close();
    std::ostringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }
};

TEST_F(JsonlWriterTest, WritesAnObjectPerRow) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();

  EXPECT_EQ(
      written(
          {{"id", Type::kInteger}, {"p", Type::kDouble}, {"f", Type::kFloat}, {"t", Type::kText}},
          {{std::vector<std::int64_t>{9007199254740993, -1}, std::vector<double>{0.1, kNan},
            std::vector<float>{0.1F, 2}, std::vector<std::string>{"a\"\n\xC3\xA9", ""}},
           {std::vector<std::int64_t>{3}, std::vector<double>{kInfinity}, std::vector<float>{-0.5F},
            std::vector<std::string>{"z"}}}),
      "{\"id\":9007199254740993,\"p\":0.1,\"f\":0.1,\"t\":\"a\\\"\\n\xC3\xA9\"}\n"
      "{\"id\":-1,\"p\":null,\"f\":2,\"t\":\"\"}\n"
      "{\"id\":3,\"p\":null,\"f\":-0.5,\"t\":\"z\"}\n");
}

TEST_F(JsonlWriterTest, WritesWhatTheReaderReadsBack) {
  const std::vector<double> numbers{0.1, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, -0.0};
  written({{"a", Type::kDouble}, {"y", Type::kDouble}}, {{numbers, numbers}});
  JsonlData data(Config(Json{{"path", file().string()}, {"task", "regression"}}));
  OpenRequest request;
  request.task = Task::kRegression;
  data.open(request);

  EXPECT_EQ(values(batch(data).inputs[0]), numbers);
}

TEST_F(JsonlWriterTest, LeavesTheFileAsItWasWithoutClose) {
  write("before");
  {
    JsonlWriter writer(Config(Json{{"path", file().string()}}));
    writer.open({{"a", Type::kInteger}});
    writer.write({std::vector<std::int64_t>{1}});
  }
  std::ostringstream text;
  text << std::ifstream(file()).rdbuf();

  EXPECT_EQ(text.str(), "before");
}

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

/// A file with everything in it, gone at the end of the program.
class ContractFile {
 public:
  ContractFile() {
    std::ofstream file(path_);
    for (int row = 0; row < 50; ++row) {
      Json line = {{"id", "p" + std::to_string(row % 7)},
                   {"color", row % 3 == 0 ? "red" : "blue"},
                   {"size", {{"w", 1 + row % 4}}},
                   {"price", row * 1.5},
                   {"when", "2020-01-" + std::to_string(10 + row % 20)},
                   {"kind", row % 2 == 0}};
      if (row % 5 != 0)
        line["a"] = row * 0.25;
      file << line.dump() << '\n';
    }
  }
  ~ContractFile() { std::filesystem::remove(path_); }

  std::string path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() /
                      ("treadle-jsonl-contract-" + std::to_string(::getpid()) + ".jsonl");
};

testing::DataCase jsonl_case(std::string name, const Json& parameters) {
  return {std::move(name), [=] {
            static const ContractFile file;
            Json complete = {{"path", file.path()}, {"missing", "nan"}, {"categorical", {"color"}}};
            complete.update(parameters);
            return plugin().make<DataProvider>("jsonl", complete);
          }};
}

}  // namespace
}  // namespace treadle::jsonl

namespace treadle::testing {

INSTANTIATE_TEST_SUITE_P(
    Jsonl, DataContract,
    ::testing::Values(jsonl::jsonl_case("Classes",
                                        {{"columns", {"color", "a", "price"}}, {"target", "kind"}}),
                      jsonl::jsonl_case("Weighted", {{"columns", {"a", "color", "price"}},
                                                     {"target", "price"},
                                                     {"columns", {"a", "color"}},
                                                     {"weight", "size.w"},
                                                     {"group", "id"},
                                                     {"time", "when"}})),
    CaseName());

INSTANTIATE_TEST_SUITE_P(JsonlInChunks, StreamContract,
                         ::testing::Values(StreamCase{"Table",
                                                      [] {
                                                        return jsonl::jsonl_case(
                                                                   "", {{"columns", {"color", "a"}},
                                                                        {"target", "kind"},
                                                                        {"in_memory", false}})
                                                            .make();
                                                      }}),
                         CaseName());

}  // namespace treadle::testing
