// Forecasts of several series: scaled errors, metrics by step and by series, the drawn sample.
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::read_file;
using testing::stopped_and_resumed;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// "zigzag" is 0, 1, 0, 1 …, "slope" 0, 2, 4 …: changes of 1 and of 2, wherever one looks.
void write_series(const fs::path& file, const std::vector<std::string>& names, int rows) {
  std::ofstream out(file);
  out << "series,day,y\n";
  for (const std::string& name : names) {
    for (int day = 0; day < rows; ++day)
      out << name << "," << day << "," << (name == "slope" ? 2 * day : day % 2) << "\n";
  }
}

Json series_document(const fs::path& file) {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "forecasts", "seed": 4,
    "data": {"use": "csv", "group": "series", "time": "day", "target": "y", "columns": ["y"],
             "task": "regression"},
    "sequence": {"use": "windows", "lookback": 4, "horizon": 2},
    "validation": {"use": "hold_out", "strategy": "chronological", "fraction": 0.25},
    "model": {"use": "flow", "flow": [{"use": "graph", "builder": "repeat"}, "prelu"]},
    "loss": "mse",
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 3, "batch_size": 8, "checkpoint": {"every": "3st"}},
    "metrics": ["mae", "mase", "rmsse"]})");
  document["data"]["path"] = file.string();
  return document;
}

const Json& table(const Json& tables, const std::string& name) {
  for (const Json& one : tables) {
    if (one.at("name") == name)
      return one;
  }
  throw DataError("there is no table " + name);
}

RunOutcome trained(const Workspace& workspace, const Json& document) {
  const Runtime runtime = watching_runtime();
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

// The last value again: of zigzag it is wrong by 1 and 0, of slope by 2 and 4. The layer prelu
// changes no value that is not negative; a network needs a parameter to be trained.
TEST(Forecasts, AreMeasuredByStepAndBySeries) {
  const Workspace workspace;
  write_series(workspace.folder() / "series.csv", {"zigzag", "slope"}, 40);

  const RunOutcome outcome = trained(workspace, series_document(workspace.folder() / "series.csv"));

  const Json tables = to_json(outcome.result).at("tables");
  const Json& by_step = table(tables, "metrics_by_step");
  EXPECT_EQ(by_step.at("column_labels"), Json({"mae", "mase", "rmsse"}));
  EXPECT_EQ(by_step.at("row_labels"), Json({"1", "2"}));
  EXPECT_NEAR(by_step.at("values")[0][0].get<double>(), 1.5, 1e-6);
  EXPECT_NEAR(by_step.at("values")[1][0].get<double>(), 2, 1e-6);
  EXPECT_NEAR(by_step.at("values")[0][1].get<double>(), 1, 1e-6);
  EXPECT_NEAR(by_step.at("values")[1][1].get<double>(), 1, 1e-6);
  const Json& by_series = table(tables, "metrics_by_series");
  EXPECT_EQ(by_series.at("row_labels"), Json({"zigzag", "slope"}));
  EXPECT_NEAR(by_series.at("values")[0][1].get<double>(), 0.5, 1e-6);
  EXPECT_NEAR(by_series.at("values")[1][1].get<double>(), 1.5, 1e-6);
  const Json metrics = to_json(outcome.result).at("validation").at("metrics");
  EXPECT_NEAR(metrics.at("mase").get<double>(), 1, 1e-6);
  EXPECT_NEAR(metrics.at("rmsse").get<double>(), (std::sqrt(0.5) + std::sqrt(2.5)) / 2, 1e-6);
  EXPECT_EQ(table(tables, "forecast_sample").at("column_labels"),
            Json({"forecast", "number", "step", "actual", "predicted"}));
  const std::string report = read_file(outcome.folder / "report.html");
  for (const char* part : {"By series", "\"forecasts\"", "\"by_step\"", "zigzag, "})
    EXPECT_THAT(report, HasSubstr(part));
}

TEST(Forecasts, OfAnotherFileAreScaledByTheTrainingRowsOfTheSameSeries) {
  const Workspace workspace;
  write_series(workspace.folder() / "series.csv", {"zigzag", "slope"}, 40);
  const RunOutcome outcome = trained(workspace, series_document(workspace.folder() / "series.csv"));
  const Runtime runtime = watching_runtime();
  const Predictor predictor = Predictor::load(runtime, outcome.folder);
  write_series(workspace.folder() / "later.csv", {"slope"}, 12);

  const Json evaluated = to_json(predictor.evaluate_file(workspace.folder() / "later.csv"));

  EXPECT_NEAR(evaluated.at("metrics").at("mase").get<double>(), 1.5, 1e-6);
  write_series(workspace.folder() / "turned.csv", {"slope", "zigzag"}, 12);
  const Json turned = to_json(predictor.evaluate_file(workspace.folder() / "turned.csv"));
  const Json& by_series = table(turned.at("tables"), "metrics_by_series");
  EXPECT_EQ(by_series.at("row_labels"), Json({"zigzag", "slope"}));
  EXPECT_NEAR(by_series.at("values")[0][1].get<double>(), 0.5, 1e-6);
  write_series(workspace.folder() / "new.csv", {"unheard of"}, 12);
  try {
    predictor.evaluate_file(workspace.folder() / "new.csv");
    ADD_FAILURE() << "nobody knows the changes of that series";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the series of row 0"));
  }
}

/// A file that a prediction wrote, line by line.
std::vector<std::string> lines_of(const fs::path& file) {
  std::istringstream text(read_file(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(line);
  return lines;
}

// The last two values again and again, by a model of two steps: 38, 39 of slope's days are 76, 78.
TEST(Forecasts, ContinueEachSeriesBeyondTheHorizonOfTheModel) {
  const Workspace workspace;
  const fs::path series = workspace.folder() / "series.csv";
  write_series(series, {"zigzag", "slope"}, 40);
  Json document = series_document(series);
  document["model"]["flow"][0]["builder"] = {{"use", "seasonal"}, {"period", 2}};
  const Runtime runtime = watching_runtime();
  const Predictor predictor = Predictor::load(runtime, trained(workspace, document).folder);
  const fs::path output = workspace.folder() / "predicted.csv";

  EXPECT_EQ(predictor.continue_series(series, output, 5).rows, 10);

  EXPECT_THAT(
      lines_of(output),
      ElementsAre("row,position,series,time,y", "0,0,zigzag,40,0", "0,1,zigzag,41,1",
                  "0,2,zigzag,42,0", "0,3,zigzag,43,1", "0,4,zigzag,44,0", "1,0,slope,40,76",
                  "1,1,slope,41,78", "1,2,slope,42,76", "1,3,slope,43,78", "1,4,slope,44,76"));
  EXPECT_EQ(predictor.continue_series(series, output, 1).rows, 2);
  EXPECT_THAT(lines_of(output),
              ElementsAre("row,position,series,time,y", "0,0,zigzag,40,0", "1,0,slope,40,76"));
  // Each window of the file, with the time of its forecast.
  EXPECT_EQ(predictor.predict_file(series, output).rows, 2 * 37);
  const std::vector<std::string> windows = lines_of(output);
  EXPECT_EQ(windows[1], "0,0,zigzag,4,0");
  EXPECT_EQ(windows.back(), "73,1,slope,41,78");
}

TEST(Forecasts, CannotBeContinuedFromInputsThatNobodyPredicts) {
  const Workspace workspace;
  const fs::path series = workspace.folder() / "series.csv";
  write_series(series, {"slope"}, 40);
  Json document = series_document(series);
  document["data"].erase("group");
  document["data"].erase("time");
  document["data"]["columns"] = {"y", "day"};
  const Runtime runtime = watching_runtime();
  const Predictor predictor = Predictor::load(runtime, trained(workspace, document).folder);
  const fs::path output = workspace.folder() / "predicted.csv";

  EXPECT_EQ(predictor.continue_series(series, output, 2).rows, 2) << "as far as the model predicts";
  try {
    predictor.continue_series(series, output, 3);
    ADD_FAILURE() << "nobody knows the next days";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("input column \"day\""));
  }
}

/// PatchTST, which scales windows.
Json scaling_network() {
  return Json::parse(R"([{"use": "graph", "builder": {
      "use": "patch_tst", "patch_len": 2, "stride": 1, "d_model": 8, "num_heads": 2,
      "dim_feedforward": 8, "num_layers": 1, "revin_affine": true}}])");
}

/// The cells of a line of a CSV file without quotes.
std::vector<std::string> cells_of(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> cells;
  for (std::string cell; std::getline(text, cell, ',');)
    cells.push_back(cell);
  return cells;
}

// Windows of zigzag lie between 0 and 1, those of slope go up by six: intervals do likewise, and
// lie where the windows are.
TEST(Forecasts, HaveIntervalsInTheUnitsOfTheirWindows) {
  const Workspace workspace;
  const fs::path series = workspace.folder() / "series.csv";
  write_series(series, {"zigzag", "slope"}, 40);
  Json document = series_document(series);
  document["model"]["flow"] = scaling_network();
  const Runtime runtime = watching_runtime();
  for (const char* const loss : {"gaussian_nll", "student_t_nll", "gaussian_mixture_nll"}) {
    SCOPED_TRACE(loss);
    document["loss"] = {{"use", loss}, {"quantiles", {0.1, 0.5, 0.9}}};
    const Predictor predictor = Predictor::load(runtime, trained(workspace, document).folder);
    const fs::path output = workspace.folder() / "predicted.csv";
    ASSERT_EQ(predictor.predict_file(series, output).rows, 2 * 37);

    const std::vector<std::string> lines = lines_of(output);

    EXPECT_EQ(lines[0], "row,position,series,time,y,y.q0.1,y.q0.5,y.q0.9");
    for (std::size_t i = 1; i < lines.size(); ++i) {
      SCOPED_TRACE(lines[i]);
      const std::vector<std::string> cells = cells_of(lines[i]);
      ASSERT_EQ(cells.size(), 8U);
      const bool is_slope = cells[2] == "slope";
      const int day = std::stoi(cells[3]);
      const double value = is_slope ? 2 * day : day % 2;
      const double reach = is_slope ? 20 : 4;
      EXPECT_LT(std::abs(std::stod(cells[4]) - value), reach);
      EXPECT_GT(std::stod(cells[7]), std::stod(cells[5]));
      EXPECT_LT(std::stod(cells[7]) - std::stod(cells[5]), reach);
    }
  }
}

TEST(Forecasts, OfCountsAreNotScaledBack) {
  const Workspace workspace;
  write_series(workspace.folder() / "series.csv", {"zigzag"}, 40);
  Json document = series_document(workspace.folder() / "series.csv");
  document["model"]["flow"] = scaling_network();
  document["loss"] = "negative_binomial_nll";
  try {
    trained(workspace, document);
    ADD_FAILURE() << "counts of a window cannot be scaled";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("choose gaussian_nll or quantile, or a network that does"));
  }
}

TEST(Forecasts, HaveTheSameTablesAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  write_series(workspace.folder() / "series.csv", {"zigzag", "slope"}, 40);
  Json document = series_document(workspace.folder() / "series.csv");
  document["model"]["flow"][0]["builder"] = "nlinear";
  document["validation"] = {{"use", "time_series"}, {"folds", 2}};

  const RunOutcome undisturbed = trained(workspace, document);

  for (const int step : {2, 11, 17}) {
    const Workspace interrupted;
    const RunOutcome resumed = stopped_and_resumed(runtime, interrupted, document, step);
    EXPECT_EQ(to_json(resumed.result).at("tables"), to_json(undisturbed.result).at("tables"));
  }
}

}  // namespace
}  // namespace treadle
