// Predictions and tables of runs to where people want them, and data from elsewhere than the run's.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/table_writer.h>
#include <treadle/host/run/exported_table.h>
#include <treadle/host/run/predictor.h>

#include "workspace.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;
using testing::read_file;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Rows as JSON arrays, behind the names: a format of which this file alone knows.
class Arrays final : public TableWriter {
 public:
  explicit Arrays(const Config& config) : path_(config.get<std::string>("path")) {}

 private:
  void do_open(const std::vector<Column>& columns) override {
    for (const Column& column : columns)
      names_.push_back(column.name);
    rows_.push_back(names_);
  }
  void do_write(const std::vector<Values>& chunk, std::size_t rows) override {
    for (std::size_t row = 0; row < rows; ++row) {
      Json fields = Json::array();
      for (const Values& column : chunk)
        fields.push_back(std::visit([&](const auto& values) { return Json(values[row]); }, column));
      rows_.push_back(std::move(fields));
    }
  }
  void do_close() override { std::ofstream(path_) << rows_.dump(); }

  fs::path path_;
  Json names_ = Json::array();
  Json rows_ = Json::array();
};

class TableOutputs : public ::testing::Test {
 protected:
  TableOutputs() {
    runtime_.registry().add<TableWriter>("arrays",
                                         [](const Config& config, const ComponentContext&) {
                                           return std::make_unique<Arrays>(config);
                                         },
                                         {{"type", "object"},
                                          {"x-treadle-interface", "writer"},
                                          {"description", "Writes rows as JSON arrays."},
                                          {"x-treadle-extensions", {".arrays"}},
                                          {"properties", {{"path", {{"type", "string"}}}}}});
    std::ofstream data(file("data.csv"));
    data << "x,id,kind\n";
    for (int row = 0; row < 60; ++row)
      data << row * .25 << ",r" << row << "," << (row % 3 == 0 ? "\"a, or b\"" : "c") << "\n";
  }

  std::string file(const std::string& name) const { return (workspace_.folder() / name).string(); }

  fs::path trained() {
    const Json document{
        {"treadle", 1},
        {"name", "kinds"},
        {"seed", 3},
        {"data",
         {{"use", "csv"}, {"path", file("data.csv")}, {"target", "kind"}, {"columns", {"x"}}}},
        {"model", "linear"},
        {"optimizer", {{"use", "adamw"}}},
        {"validation", {{"use", "k_fold"}, {"folds", 2}}},
        {"training", {{"use", "standard"}, {"epochs", 1}, {"batch_size", 16}}},
        {"metrics", {"accuracy"}}};
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options()).folder;
  }

  static Json read_json(const std::string& path) { return Json::parse(read_file(path)); }

  Workspace workspace_;
  Runtime runtime_;
};

TEST_F(TableOutputs, TheEndingOfAFileChoosesItsWriter) {
  const Predictor predictor = Predictor::load(runtime_, trained());

  predictor.predict_file(file("data.csv"), file("out.arrays"), {"id"});
  predictor.predict_file(file("data.csv"), file("out.csv"), {"id"});

  const Json rows = read_json(file("out.arrays"));
  EXPECT_EQ(rows[0], Json({"row", "id", "predicted", "p(a, or b)", "p(c)"}));
  ASSERT_EQ(rows.size(), 61U);
  EXPECT_EQ(rows[2][0], 1);
  EXPECT_EQ(rows[2][1], "r1");
  // The same numbers, to the last digit of a float.
  std::istringstream lines(read_file(file("out.csv")));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "row,id,predicted,\"p(a, or b)\",p(c)");
  for (std::size_t row = 1; std::getline(lines, line); ++row) {
    const std::string probability = line.substr(line.rfind(',') + 1);
    EXPECT_EQ(std::stof(probability), rows[row][4].get<float>()) << line;
  }
}

// To each format and back: the inputs are kept beside the predictions, as texts.
TEST_F(TableOutputs, AModelPredictsFromATableOfAnyFormat) {
  const Predictor predictor = Predictor::load(runtime_, trained());
  predictor.predict_file(file("data.csv"), file("expected.csv"));
  const std::string expected = read_file(file("expected.csv"));
  const auto is_there = [&](const std::string& writer) {
    const std::vector<std::string> names = runtime_.registry().names<TableWriter>();
    return std::find(names.begin(), names.end(), writer) != names.end();
  };
  std::map<std::string, std::string> sources{{"csv", file("kept.csv")}};
  for (const std::string format : {"jsonl", "parquet"}) {
    if (is_there(format))
      sources[format] = file("kept." + format);
  }
  for (const auto& [format, source] : sources) {
    predictor.predict_file(file("data.csv"), source, {"x", "kind"});
    predictor.predict_file(source, file("again.csv"));
    EXPECT_EQ(read_file(file("again.csv")), expected) << format;
    EXPECT_EQ(predictor.evaluate_file(source).metrics.at(0).value,
              predictor.evaluate_file(file("data.csv")).metrics.at(0).value)
        << format;
  }
  if (!is_there("sqlite"))
    return;
  predictor.predict_file(file("data.csv"), file("kept.db"), {"x"});
  const Json table{{"use", "sqlite"}, {"path", file("kept.db")}, {"table", "predictions"}};
  predictor.predict_file(table.dump(), file("again.csv"));
  EXPECT_EQ(read_file(file("again.csv")), expected) << "sqlite";
}

TEST_F(TableOutputs, AWriterMayBeNamed) {
  const Predictor predictor = Predictor::load(runtime_, trained());
  const Json writer{{"use", "arrays"}, {"path", file("other.name")}};

  predictor.predict_file(file("data.csv"), writer.dump());

  EXPECT_EQ(read_json(file("other.name")).size(), 61U);
}

TEST_F(TableOutputs, AWriterThatIsNotThereIsNamed) {
  const Predictor predictor = Predictor::load(runtime_, trained());
  const auto refusal = [&](const std::string& output) {
    try {
      predictor.predict_file(file("data.csv"), output);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };

  EXPECT_THAT(refusal(R"({"use": "arrayz", "path": "x"})"), HasSubstr("writer"));
  EXPECT_THAT(refusal(R"({"path": "x"})"), HasSubstr("plugins list writer"));
  EXPECT_THAT(refusal(R"({"use": "arrays", )"), HasSubstr("plugins list writer"));
}

TEST_F(TableOutputs, TablesOfARunAreWrittenLikePredictions) {
  const fs::path run = trained();

  EXPECT_EQ(export_table(runtime_, run, "predictions", file("held out.arrays")), 60);
  EXPECT_EQ(export_table(runtime_, run, "history", file("history.csv")), 3);

  const Json rows = read_json(file("held out.arrays"));
  EXPECT_EQ(rows[0], Json({"row", "fold", "actual", "predicted", "p(a, or b)", "p(c)"}));
  EXPECT_TRUE(rows[1][0].is_number_integer());
  EXPECT_TRUE(rows[1][4].is_number_float());
  EXPECT_EQ(rows[1][1], "fold-1");
  EXPECT_EQ(read_file(file("history.csv")).substr(0, 9),
            read_file(run / "history.csv").substr(0, 9));
  EXPECT_THROW(export_table(runtime_, run, "weights", file("x.csv")), UsageError);
}

TEST_F(TableOutputs, ADamagedTableOfARunIsRefused) {
  const fs::path run = trained();
  for (const char* const text : {"a,b\n1,2,3\n", "a,b\n1\n", "a,b\n1,2", "a,\"b\n1,2\n", ""}) {
    std::ofstream(run / "history.csv") << text;
    EXPECT_THROW(export_table(runtime_, run, "history", file("x.csv")), StorageError) << text;
  }
}

TEST_F(TableOutputs, ParametersOfTheDataMayBeReplaced) {
  const Predictor predictor = Predictor::load(runtime_, trained());
  std::ofstream(file("semicolons.csv")) << "id;x\nq;1.5\n";
  const Json data{{"path", file("semicolons.csv")}, {"separator", ";"}};

  EXPECT_EQ(predictor.predict_file(data.dump(), file("out.csv"), {"id"}).rows, 1);

  EXPECT_THAT(read_file(file("out.csv")), HasSubstr("\n0,q,"));
  for (const char* const wrong : {"{\"path\": ", "{\"use\": 3}"})
    EXPECT_THROW(predictor.predict_file(wrong, file("out.csv")), UsageError) << wrong;
}

}  // namespace
}  // namespace treadle
