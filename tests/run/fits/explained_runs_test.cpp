// Reasons of whole runs: the rows they are computed on, and models of several kinds.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/host/run/explained_run.h>
#include <treadle/host/run/exported_model.h>

#include "workspace.h"

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::read_file;
using ::testing::SizeIs;
using testing::Workspace;

/// y = 2 a - b + 1 where c is "blue"; a2 is nearly a, and where c is "red" the noise is tripled.
std::filesystem::path linear_table(const std::filesystem::path& folder, int rows = 900) {
  RandomBits random(3);
  const auto file = folder / "linear.csv";
  std::ofstream table(file);
  table << "a,b,a2,c,noise,y,sign\n";
  const std::vector<std::string> colours{"red", "green", "blue"};
  for (int row = 0; row < rows; ++row) {
    const double a = random.normal();
    const double b = random.normal();
    const std::string& colour = colours[random.below(3)];
    const double error = 0.2 * (colour == "red" ? 3 : 1) * random.normal();
    const double y = 2 * a - b + (colour == "blue" ? 1 : 0) + error;
    table << a << ',' << b << ',' << a + 0.05 * random.normal() << ',' << colour << ','
          << random.normal() << ',' << y << ',' << (y > 0 ? "plus" : "minus") << '\n';
  }
  return file;
}

json document_of(const std::filesystem::path& table, const json& change = json::object()) {
  json document = {{"treadle", 1},
                   {"seed", 5},
                   {"data",
                    {{"use", "csv"},
                     {"path", table.string()},
                     {"target", "y"},
                     {"columns", {"a", "b", "a2", "c", "noise"}},
                     {"categorical", {"c"}}}},
                   {"transforms", {"standardize", "one_hot"}},
                   {"model", {{"use", "linear"}}},
                   {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.05}}},
                   {"training", {{"epochs", 15}, {"batch_size", 32}}},
                   {"validation", {{"use", "k_fold"}, {"folds", 3}}},
                   {"metrics", {"rmse"}},
                   {"explain", {{"shap_rows", 20}, {"repeats", 3}}}};
  document.update(change, /*merge_objects=*/true);
  return document;
}

RunOutcome run(const Runtime& runtime, const Workspace& workspace, const json& document) {
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

json reasons_in(const std::filesystem::path& run) {
  return json::parse(read_file(run / "explain.json"));
}

std::vector<std::string> ranked(const json& target) {
  std::vector<std::string> names;
  for (const json& one : target.at("importance").at("columns")) {
    std::string group;
    for (const json& name : one.at("columns"))
      group += (group.empty() ? "" : "+") + name.get<std::string>();
    names.push_back(group);
  }
  return names;
}

/// The largest difference between the sum of a row's SHAP values and prediction - base.
double largest_gap(const json& target) {
  double gap = 0;
  for (const json& row : target.at("shap").at("rows")) {
    for (std::size_t k = 0; k < row.at("base").size(); ++k) {
      double sum = row.at("base")[k].get<double>() - row.at("prediction")[k].get<double>();
      for (const auto& [name, values] : row.at("shap").items())
        sum += values[k].get<double>();
      gap = std::max(gap, std::abs(sum));
    }
  }
  return gap;
}

TEST(ExplainedRuns, ExplainFoldsOnTheirOwnValidationRows) {
  const Runtime runtime;
  const Workspace workspace;
  const json document = document_of(linear_table(workspace.folder()));
  const RunOutcome outcome = run(runtime, workspace, document);
  const json reasons = reasons_in(outcome.folder);
  EXPECT_EQ(reasons.at("rows"), 900);
  EXPECT_EQ(reasons.at("rows_from"), "validation");
  EXPECT_THAT(reasons.at("parts"), SizeIs(3));
  const json& target = reasons.at("targets").front();
  EXPECT_THAT(ranked(target), ElementsAre("a+a2", "b", "c", "noise"));
  EXPECT_EQ(target.at("importance").at("measure"), "rmse");
  const json& found = target.at("subgroups").at("found");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.front().at("where").front(), json({{"column", "c"}, {"level", "red"}}));
  // The report has the section.
  EXPECT_THAT(read_file(outcome.folder / "report.html"), HasSubstr("\"Worse subgroups\""));
  // Predictions are those of predictions.csv: its model was not trained on the row.
  const json& worst = target.at("worst_rows").front();
  EXPECT_THAT(worst.at("place").get<std::string>(), HasSubstr("linear.csv:"));
  const std::string line =
      std::to_string(worst.at("row").get<int>()) + "," + worst.at("part").get<std::string>() + ",";
  const std::string table = read_file(outcome.folder / "predictions.csv");
  const std::size_t place = table.find("\n" + line);
  ASSERT_NE(place, std::string::npos);
  const std::string row = table.substr(place + 1, table.find('\n', place + 1) - place - 1);
  EXPECT_NEAR(std::stod(row.substr(row.rfind(',') + 1)), worst.at("predicted").get<double>(), 1e-5);
  // The same once more, from the folder.
  EXPECT_EQ(explain_run(runtime, outcome.folder), reasons);
}

TEST(ExplainedRuns, HaveExactShapValuesForALinearModel) {
  const Runtime runtime;
  const Workspace workspace;
  json document = document_of(linear_table(workspace.folder()),
                              {{"explain", {{"shap_rows", 180}, {"background_rows", 180}}}});
  document["validation"] = {{"use", "hold_out"}, {"fraction", 0.2}};
  const RunOutcome outcome = run(runtime, workspace, document);
  const json target = reasons_in(outcome.folder).at("targets").front();
  EXPECT_LT(largest_gap(target), 1e-6);
  const json& rows = target.at("shap").at("rows");
  // w (x - mean of x): the slope is the same between any two rows, and the mean value is 0.
  for (const char* column : {"a", "b", "noise"}) {
    const auto x = [&](std::size_t row) { return rows[row].at("values").at(column).get<double>(); };
    const auto value = [&](std::size_t row) {
      return rows[row].at("shap").at(column).front().get<double>();
    };
    const double slope = (value(1) - value(0)) / (x(1) - x(0));
    double mean = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      mean += x(i) / static_cast<double>(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      EXPECT_NEAR(value(i), slope * (x(i) - mean), 2e-5) << column << " " << i;
  }
}

TEST(ExplainedRuns, ExplainTestRowsOfOneSplitAndEachTarget) {
  const Runtime runtime;
  const Workspace workspace;
  json document =
      document_of(linear_table(workspace.folder()), {{"data", {{"target", {"y", "sign"}}}}});
  document["validation"] = {{"use", "hold_out"}, {"test_fraction", 0.2}};
  document.erase("metrics");
  document["model"] = {{"use", "mlp"}, {"hidden", {8}}};
  const RunOutcome outcome = run(runtime, workspace, document);
  const json reasons = reasons_in(outcome.folder);
  EXPECT_EQ(reasons.at("rows_from"), "test");
  EXPECT_EQ(reasons.at("rows"), 180);
  EXPECT_EQ(reasons.at("rows_chose"), json::array());
  ASSERT_THAT(reasons.at("targets"), SizeIs(2));
  for (const json& target : reasons.at("targets")) {
    EXPECT_EQ(ranked(target).front(), "a+a2");
    EXPECT_LT(largest_gap(target), 1e-6);
  }
  const json& sign = reasons.at("targets")[1];
  EXPECT_THAT(sign.at("outputs"), SizeIs(1)) << "of two classes the second alone";
  EXPECT_TRUE(sign.contains("confident_wrong"));
  EXPECT_TRUE(sign.contains("doubtful_rows"));
}

TEST(ExplainedRuns, HaveTheSameBitsForAnyNumberOfWorkers) {
  const Runtime runtime;
  const Workspace workspace;
  json document = document_of(linear_table(workspace.folder(), 300));
  std::set<std::string> found;
  for (const int workers : {1, 3}) {
    document["resources"]["workers"] = workers;
    found.insert(read_file(run(runtime, workspace, document).folder / "explain.json"));
  }
  EXPECT_THAT(found, SizeIs(1));
}

TEST(ExplainedRuns, ExplainTreesAndAFile) {
  const Runtime runtime;
  if (runtime.schemas().find("model", "gradient_boosted_trees").schema == nullptr)
    GTEST_SKIP() << "plugins/trees was not built: it needs XGBoost (Debian: libxgboost-dev)";
  const Workspace workspace;
  const auto table = linear_table(workspace.folder(), 400);
  json document = document_of(table);
  document.erase("optimizer");
  document.erase("transforms");
  document.erase("explain");
  document["model"] = {{"use", "gradient_boosted_trees"}, {"max_depth", 3}};
  document["training"] = {{"use", "boosting"}, {"epochs", 20}};
  const RunOutcome outcome = run(runtime, workspace, document);
  EXPECT_FALSE(std::filesystem::exists(outcome.folder / "explain.json"));
  const json own = explain_run(runtime, outcome.folder, table);
  EXPECT_EQ(own.at("rows_from"), "validation") << "it is the run's own data";
  EXPECT_THAT(ranked(own.at("targets").front()).front(), "a+a2");
  const auto other = workspace.folder() / "other";
  std::filesystem::create_directory(other);
  const json given = explain_run(runtime, outcome.folder, linear_table(other, 100));
  EXPECT_EQ(given.at("rows_from"), "file");
  EXPECT_EQ(given.at("rows"), 100);
}

TEST(ExplainedRuns, ExplainCalibratedProbabilities) {
  const Runtime runtime;
  const Workspace workspace;
  json document = document_of(linear_table(workspace.folder(), 400),
                              {{"data", {{"target", "sign"}}},
                               {"metrics", {"log_loss"}},
                               {"outputs", {{"calibration", "temperature"}}}});
  const RunOutcome outcome = run(runtime, workspace, document);
  const json with = reasons_in(outcome.folder);
  EXPECT_EQ(with.at("rows_chose"), json({"outputs"}));
  std::filesystem::remove_all(outcome.folder / "outputs");
  document.erase("outputs");
  const json without = reasons_in(run(runtime, workspace, document).folder);
  const auto prediction = [](const json& reasons) {
    return reasons.at("targets")[0].at("shap").at("rows")[0].at("prediction")[0].get<double>();
  };
  EXPECT_NE(prediction(with), prediction(without));
}

TEST(ExplainedRuns, OfTextsAreRefusedBeforeTheTraining) {
  const Runtime runtime;
  const Workspace workspace;
  const auto text = workspace.folder() / "text.jsonl";
  std::ofstream(text) << R"({"text": "good day", "mood": "good"}
{"text": "bad day", "mood": "bad"}
{"text": "good night", "mood": "good"}
)";
  const json document = {
      {"treadle", 1},
      {"data",
       {{"use", "text"}, {"path", text.string()}, {"tokenizer", "words"}, {"target", "mood"}}},
      {"model",
       {{"use", "flow"},
        {"flow",
         {{{"use", "embedding"}, {"embedding_dim", 2}},
          {{"use", "reduce"}, {"dims", {1}}, {"using", {"tokens.lengths"}}},
          "head"}}}},
      {"training", {{"epochs", 1}}},
      {"explain", true}};
  try {
    run(runtime, workspace, document);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("input \"tokens\" has tokens of texts"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(workspace.options().output)) << "nothing was trained";
}

TEST(ExplainedRuns, OfAnExportedModelNeedAFile) {
  const Runtime runtime;
  const Workspace workspace;
  const auto table = linear_table(workspace.folder(), 200);
  json document = document_of(table);
  document.erase("explain");
  const RunOutcome outcome = run(runtime, workspace, document);
  const auto exported = workspace.folder() / "model.safetensors";
  export_model(outcome.folder, exported);
  EXPECT_THROW(explain_run(runtime, exported), UsageError);
  EXPECT_EQ(explain_run(runtime, exported, table).at("rows_from"), "file");
}

}  // namespace
}  // namespace treadle
