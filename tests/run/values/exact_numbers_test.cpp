// Numbers stay as exact as their file has them until they enter the model: computations before it
// (statistics, differences, calendars) and after it (metrics) are those of float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <treadle/core/data/data_provider.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Rows {
  std::vector<double> x;
  std::vector<double> y;
};

/// y = 3 (x - offset_x) + noise + offset_y, as the file has them: with as many digits as a float64.
Rows rows_around(double offset_x, double offset_y, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise;
  Rows rows;
  for (int row = 0; row < 200; ++row) {
    const double x = 10 * noise(random);
    rows.x.push_back(offset_x + x);
    rows.y.push_back(offset_y + 3 * x + 8 * noise(random));
  }
  return rows;
}

void write(const fs::path& file, const Rows& rows, const std::string& header = "x,y") {
  std::ofstream stream(file);
  stream << header << "\n";
  for (std::size_t row = 0; row < rows.x.size(); ++row) {
    char line[64];
    std::snprintf(line, sizeof line, "%.17g,%.17g\n", rows.x[row], rows.y[row]);
    stream << line;
  }
}

struct Fit {
  double rmse = 0;
  double r2 = 0;
};

constexpr std::size_t kTrained = 100;  // rows; the others validate

/// The least squares of the training rows, evaluated on the others, in long double and about the
/// means: the formulas of scikit-learn's LinearRegression, mean_squared_error and r2_score.
Fit least_squares(const Rows& rows) {
  const auto mean_of = [](auto first, auto last) {
    long double sum = 0;
    for (auto value = first; value != last; ++value)
      sum += *value;
    return sum / static_cast<long double>(last - first);
  };
  const long double mean_x = mean_of(rows.x.begin(), rows.x.begin() + kTrained);
  const long double mean_y = mean_of(rows.y.begin(), rows.y.begin() + kTrained);
  const long double mean_validated = mean_of(rows.y.begin() + kTrained, rows.y.end());
  long double xx = 0;
  long double xy = 0;
  for (std::size_t i = 0; i < kTrained; ++i) {
    xx += (rows.x[i] - mean_x) * (rows.x[i] - mean_x);
    xy += (rows.x[i] - mean_x) * (rows.y[i] - mean_y);
  }
  long double errors = 0;
  long double deviations = 0;
  for (std::size_t i = kTrained; i < rows.x.size(); ++i) {
    const long double error = rows.y[i] - mean_y - xy / xx * (rows.x[i] - mean_x);
    errors += error * error;
    deviations += (rows.y[i] - mean_validated) * (rows.y[i] - mean_validated);
  }
  const auto validated = static_cast<long double>(rows.x.size() - kTrained);
  return {static_cast<double>(std::sqrt(errors / validated)),
          static_cast<double>(1 - errors / deviations)};
}

Json regression(const fs::path& file) {
  return {{"treadle", 1},
          {"name", "exact"},
          {"data", {{"use", "csv"}, {"path", file.string()}, {"target", "y"}}},
          {"transforms", {{{"use", "standardize"}, {"target", true}}}},
          {"model", "linear"},
          {"validation", {{"use", "hold_out"}, {"strategy", "chronological"}, {"fraction", 0.5}}},
          {"training", {{"use", "closed_form"}, {"alpha", 0}}},
          {"metrics", {"rmse", "r2"}}};
}

TEST(ExactNumbers, MetricsAreThoseOfFloat64WhateverTheOffsets) {
  const Runtime runtime = watching_runtime();
  std::mt19937 random(5);
  for (int round = 0; round < 16; ++round) {
    std::uniform_real_distribution<double> exponent(5, 12);
    const double offset_x = round % 3 == 0 ? 0 : std::pow(10, exponent(random));
    const double offset_y = round % 3 == 1 ? 0 : -std::pow(10, exponent(random));
    SCOPED_TRACE(std::to_string(offset_x) + " " + std::to_string(offset_y));
    const Workspace workspace;
    const fs::path file = workspace.folder() / "rows.csv";
    const Rows rows = rows_around(offset_x, offset_y, static_cast<unsigned>(round));
    write(file, rows);

    const RunOutcome outcome =
        run_workflow(runtime, runtime.resolve(regression(file)), workspace.options());

    const Fit expected = least_squares(rows);
    const Json metrics = to_json(outcome.result).at("metrics");
    EXPECT_NEAR(metrics.at("rmse").get<double>(), expected.rmse, 1e-6 * expected.rmse);
    EXPECT_NEAR(metrics.at("r2").get<double>(), expected.r2, 1e-6 * expected.r2);
  }
}

TEST(ExactNumbers, RanksAreThoseOfTheColumn) {
  const Runtime runtime = watching_runtime();
  for (const double offset : {1e6, 1.7e9, 1e12}) {
    const Workspace workspace;
    const fs::path file = workspace.folder() / "rows.csv";
    Rows rows = rows_around(offset, 0, 3);
    std::mt19937 random(7);
    std::normal_distribution<double> noise;
    for (std::size_t i = 0; i < rows.x.size(); ++i)
      rows.y[i] = rows.x[i] - offset + 8 * noise(random) > 0 ? 1 : 0;
    write(file, rows);
    Json document = regression(file);
    document["data"]["task"] = "classification";
    document["transforms"] = {"standardize"};
    document["training"] = {{"use", "standard"}, {"epochs", 5}};
    document["metrics"] = {"auc"};

    const RunOutcome outcome =
        run_workflow(runtime, runtime.resolve(document), workspace.options());

    // The share of pairs in order: the model's score rises with its one column.
    double in_order = 0;
    double pairs = 0;
    for (std::size_t i = kTrained; i < rows.x.size(); ++i) {
      for (std::size_t k = kTrained; k < rows.x.size(); ++k) {
        if (rows.y[i] == 1 && rows.y[k] == 0) {
          ++pairs;
          in_order += rows.x[i] > rows.x[k] ? 1 : rows.x[i] == rows.x[k] ? 0.5 : 0;
        }
      }
    }
    EXPECT_NEAR(outcome.result.at("auc"), in_order / pairs, 1e-6) << offset;
  }
}

TEST(ExactNumbers, DifferencesAndMinutesAreExact) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path file = workspace.folder() / "rows.csv";
  {
    std::ofstream stream(file);
    stream << "when,date,y\n";
    for (int minute = 0; minute < 60; ++minute) {
      const std::string date =
          "2024-05-01T10:" + std::to_string(minute / 10) + std::to_string(minute % 10) + ":00Z";
      stream << date << "," << date << "," << 1000000000 + minute << "\n";
    }
  }
  const auto data = runtime.registry().make<DataProvider>(
      "series", Config({{"source",
                         {{"use", "csv"},
                          {"path", file.string()},
                          {"time", "when"},
                          {"dates", {"date"}},
                          {"target", "y"},
                          {"columns", {"date", "y"}}}},
                        {"differences", {{{"column", "y"}, {"steps", {1}}}}}},
                       "/data"));
  data->open({});
  std::vector<std::int64_t> all(59);
  std::iota(all.begin(), all.end(), 0);
  Batch batch;

  data->ask<RowReader>()->gather(all, batch);

  const PortSpec& table = data->spec().inputs[0];
  int seen = 0;
  for (std::int64_t row = 0; row < 59; ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const double value = batch.inputs[0][row][static_cast<std::int64_t>(column)].item<double>();
      const std::string& name = table.columns[column].name;
      seen += name == "y_diff_1" || name == "date.days" || name == "y" ? 1 : 0;
      if (name == "y_diff_1") {
        EXPECT_EQ(value, 1);
      } else if (name == "date.days") {
        EXPECT_NEAR(value * 1440, 19844 * 1440 + 600 + row + 1, 1e-6);
      } else if (name == "y") {
        EXPECT_EQ(value, 1000000000 + row + 1);
      }
    }
  }
  EXPECT_EQ(seen, 3 * 59);
}

TEST(ExactNumbers, ANoteNamesColumnsThatFloat32CannotTellApart) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path file = workspace.folder() / "rows.csv";
  Rows rows;
  for (int row = 0; row < 300; ++row) {
    rows.x.push_back(1.7e9 + 60 * row);
    rows.y.push_back(row % 7);
  }
  write(file, rows, "seconds,y");
  Json document = regression(file);
  document["training"] = {{"use", "standard"}, {"epochs", 1}};
  const auto notes = [&](const Json& changed) {
    std::vector<std::string> notes;
    const RunOutcome outcome = run_workflow(runtime, runtime.resolve(changed), workspace.options());
    std::ifstream events(outcome.folder / "events.jsonl");
    for (std::string line; std::getline(events, line);) {
      if (line.find("float32 keeps") != std::string::npos)
        notes.push_back(Json::parse(line).at("text"));
    }
    return notes;
  };

  EXPECT_THAT(notes(document), ElementsAre());  // standardize has taken the mean away
  document.erase("transforms");
  EXPECT_THAT(notes(document),
              ElementsAre(AllOf(HasSubstr("\"seconds\""), HasSubstr("150 different values"),
                                HasSubstr("\"standardize\""), HasSubstr("\"float64\""))));
  document["precision"] = "float64";
  EXPECT_THAT(notes(document), ElementsAre());
}

}  // namespace
}  // namespace treadle
