// Scales of each series: their units, other files, resumes, leaks.
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::read_file;
using testing::stopped_and_resumed;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int kDays = 62;              // 56 windows of a series, of which the last 14 validate
constexpr double kSmall = 1.0 / 8192;  // a power of two: both series have the same bits

/// A series by its name, times a factor.
struct Written {
  std::string name;
  double times;
};

/// "large" and "small" are the same but for their units. From `changed_from` on all is different.
void write_units(const fs::path& file, const std::vector<Written>& series, int days = kDays,
                 int changed_from = kDays) {
  std::ofstream out(file);
  out.precision(17);
  out << "series,day,y\n";
  for (const Written& one : series) {
    for (int day = 0; day < days; ++day) {
      const double value = 1000 + 40 * std::sin(day * 0.9) + 3 * (day % 5) +
                           (day >= changed_from ? 500 * std::cos(day) : 0);
      out << one.name << "," << day << "," << one.times * value << "\n";
    }
  }
}

const std::vector<Written> kBoth = {{"large", 1}, {"small", kSmall}};

Json scaled_document(const fs::path& file) {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "scales", "seed": 4,
    "data": {"use": "csv", "group": "series", "time": "day", "target": "y", "columns": ["y"],
             "task": "regression"},
    "sequence": {"use": "windows", "lookback": 5, "horizon": 2},
    "transforms": [{"use": "standardize", "by": "group", "target": true}],
    "validation": {"use": "hold_out", "strategy": "chronological", "fraction": 0.25},
    "model": {"use": "mlp", "hidden": [8]},
    "loss": "mse",
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 3, "batch_size": 8, "checkpoint": {"every": "3st"}},
    "metrics": ["mae", "mase"]})");
  document["data"]["path"] = file.string();
  return document;
}

const Json& table_of(const Json& tables, const std::string& name) {
  for (const Json& one : tables) {
    if (one.at("name") == name)
      return one;
  }
  throw DataError("there is no table " + name);
}

class GroupScales : public ::testing::Test {
 protected:
  RunOutcome run(const Json& document) {
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
  }
  fs::path path(const std::string& name) const { return workspace_.folder() / name; }
  std::string predicted(const Predictor& predictor, const std::string& file) const {
    predictor.predict_file(path(file), path("out.csv"));
    return read_file(path("out.csv"));
  }

  static void expect_refused(const std::function<void()>& action, const std::string& what) {
    try {
      action();
      ADD_FAILURE() << "not refused: " << what;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
  }

  Workspace workspace_;
  Runtime runtime_ = watching_runtime();
};

/// The last field of each line but the header.
std::vector<double> values_in(const std::string& file) {
  std::istringstream text(file);
  std::vector<double> values;
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line))
    values.push_back(std::stod(line.substr(line.rfind(',') + 1)));
  return values;
}

TEST_F(GroupScales, GiveErrorsInTheUnitsOfEachSeries) {
  write_units(path("both.csv"), kBoth);

  const RunOutcome outcome = run(scaled_document(path("both.csv")));

  const Json tables = to_json(outcome.result).at("tables");
  const Json& by_series = table_of(tables, "metrics_by_series");
  EXPECT_EQ(by_series.at("row_labels"), Json({"large", "small"}));
  const double large = by_series.at("values")[0][0].get<double>();
  const double small = by_series.at("values")[1][0].get<double>();
  EXPECT_GT(large, 0.01);
  EXPECT_LT(large, 500);
  EXPECT_NEAR(small / (large * kSmall), 1, 1e-6);
  EXPECT_NEAR(by_series.at("values")[1][1].get<double>(),
              by_series.at("values")[0][1].get<double>(), 1e-6);
  EXPECT_TRUE(outcome.result.training.transformed_target);
  // The data that was trained on, evaluated again.
  const Predictor predictor = Predictor::load(runtime_, outcome.folder);
  const Json again = to_json(predictor.evaluate_file(path("both.csv")));
  EXPECT_NEAR(
      table_of(again.at("tables"), "metrics_by_series").at("values")[1][0].get<double>() /
          table_of(again.at("tables"), "metrics_by_series").at("values")[0][0].get<double>(),
      kSmall, kSmall * 1e-6);
}

TEST_F(GroupScales, AreFoundByTheNamesOfSeriesInOtherFiles) {
  write_units(path("both.csv"), kBoth);
  const Predictor predictor =
      Predictor::load(runtime_, run(scaled_document(path("both.csv"))).folder);
  write_units(path("small.csv"), {{"small", kSmall}});
  write_units(path("turned.csv"), {{"small", kSmall}, {"large", 1}});

  const std::vector<double> both = values_in(predicted(predictor, "both.csv"));
  const std::vector<double> small = values_in(predicted(predictor, "small.csv"));
  const std::vector<double> turned = values_in(predicted(predictor, "turned.csv"));

  const auto half = static_cast<std::ptrdiff_t>(both.size() / 2);
  EXPECT_EQ(small, std::vector<double>(both.begin() + half, both.end()));
  EXPECT_EQ(std::vector<double>(turned.begin(), turned.begin() + half), small);
  EXPECT_EQ(std::vector<double>(turned.begin() + half, turned.end()),
            std::vector<double>(both.begin(), both.begin() + half));
  EXPECT_NEAR(both[0], 1000, 150);
  EXPECT_NEAR(small[0], 1000 * kSmall, 150 * kSmall);
  // Beyond the horizon, too.
  predictor.continue_series(path("turned.csv"), path("out.csv"), 5);
  const std::vector<double> continued = values_in(read_file(path("out.csv")));
  ASSERT_EQ(continued.size(), 10U);
  for (std::size_t step = 0; step < 5; ++step)
    EXPECT_NEAR(continued[step] / kSmall, continued[5 + step], 1e-2);
}

TEST_F(GroupScales, OfASeriesWithoutTrainingRowsAreAnErrorThatNamesIt) {
  write_units(path("both.csv"), kBoth);
  write_units(path("new.csv"), {{"small", kSmall}, {"unheard of", 1}});
  Json document = scaled_document(path("both.csv"));
  const Predictor strict = Predictor::load(runtime_, run(document).folder);

  for (const auto& action : std::vector<std::function<void()>>{
           [&] { strict.predict_file(path("new.csv"), path("out.csv")); },
           [&] { strict.continue_series(path("new.csv"), path("out.csv"), 3); }}) {
    expect_refused(action,
                   "has statistics for each group of its training rows, and none for unheard of");
  }
  document["metrics"] = {"mae"};
  document["transforms"][0]["handle_unknown"] = "overall";
  const Predictor lenient = Predictor::load(runtime_, run(document).folder);
  EXPECT_EQ(lenient.predict_file(path("new.csv"), path("out.csv")).rows, 2 * (kDays - 4));
  EXPECT_GT(lenient.evaluate_file(path("new.csv")).at("mae"), 0);

  // Within a training: a fold without rows of the series it is evaluated on.
  document["transforms"][0].erase("handle_unknown");
  document["validation"] = {{"use", "group_k_fold"}, {"folds", 2}};
  expect_refused([&] { run(document); }, "which no training row belongs to");
}

TEST_F(GroupScales, NeedTheGroupsOfTheRows) {
  write_units(path("both.csv"), kBoth);
  Json document = scaled_document(path("both.csv"));
  const Predictor predictor = Predictor::load(runtime_, run(document).folder);
  std::ofstream(path("bare.csv")) << "day,y\n0,1\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n7,8\n";

  expect_refused([&] { predictor.predict_file(path("bare.csv"), path("out.csv")); },
                 "has statistics for each group, and the rows have no groups");
  document["data"].erase("group");
  document["data"].erase("time");
  write_units(path("one.csv"), {{"large", 1}});
  document["data"]["path"] = path("one.csv").string();
  expect_refused([&] { run(document); }, "needs rows with groups");
}

TEST_F(GroupScales, OfRowsInMemoryAreFoundByName) {
  write_units(path("both.csv"), kBoth);
  const Predictor predictor =
      Predictor::load(runtime_, run(scaled_document(path("both.csv"))).folder);
  const at::Tensor window = at::arange(990, 1040, 10, at::kFloat).view({1, 5, 1});
  const at::Tensor windows = at::cat({window.mul(kSmall), window});

  const Prediction prediction = predictor.predict(windows, {.groups = {"small", "large"}});

  EXPECT_TRUE(at::allclose(prediction.values[0].div(kSmall), prediction.values[1], 1e-5));
  expect_refused([&] { predictor.predict(windows); },
                 "predicting needs the group of each of the 2 rows, got 0");
  expect_refused(
      [&] {
        predictor.predict(windows, {.groups = {"small", "smaller"}});
      },
      "none for smaller");
}

TEST_F(GroupScales, KnowNothingOfValidationRows) {
  write_units(path("both.csv"), kBoth);
  write_units(path("changed.csv"), kBoth, kDays, kDays - 5);

  const RunOutcome plain = run(scaled_document(path("both.csv")));
  const RunOutcome changed = run(scaled_document(path("changed.csv")));

  EXPECT_EQ(read_file(plain.folder / "model.safetensors"),
            read_file(changed.folder / "model.safetensors"));
  EXPECT_NE(plain.result.training.validation->loss, changed.result.training.validation->loss);
  const Predictor one = Predictor::load(runtime_, plain.folder);
  const Predictor other = Predictor::load(runtime_, changed.folder);
  EXPECT_EQ(predicted(one, "both.csv"), predicted(other, "both.csv"));
}

TEST_F(GroupScales, AreTheSameAfterAnyStop) {
  write_units(path("both.csv"), kBoth);
  Json document = scaled_document(path("both.csv"));
  document["transforms"] = Json::parse(R"([
    {"use": "robust", "by": "group", "target": true, "handle_unknown": "overall"},
    {"use": "min_max", "by": "group"}])");
  document["validation"] = {{"use", "time_series"}, {"folds", 2}};

  const RunOutcome undisturbed = run(document);

  for (const int step : {2, 9}) {
    const Workspace interrupted;
    const RunOutcome resumed = stopped_and_resumed(runtime_, interrupted, document, step);
    EXPECT_EQ(bits_of(resumed.folder), bits_of(undisturbed.folder));
    EXPECT_EQ(to_json(resumed.result).at("tables"), to_json(undisturbed.result).at("tables"));
  }
}

TEST_F(GroupScales, OfOneSeriesTrainTheBitsOfOneScaleForAll) {
  write_units(path("one.csv"), {{"large", 1}});
  Json document = scaled_document(path("one.csv"));
  const RunOutcome by_group = run(document);
  document["transforms"][0].erase("by");

  EXPECT_EQ(bits_of(run(document).folder), bits_of(by_group.folder));
}

}  // namespace
}  // namespace treadle
