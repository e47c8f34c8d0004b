// Runs whose folds are in time, tested, warm-started or nested.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include <treadle/base/error.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::read_file;
using testing::stopped_and_resumed;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

const Json kWalkForward = {{"use", "walk_forward"}, {"start", 60},
                           {"test_size", 10},       {"retrain_every", 2},
                           {"warm_start", true},    {"validation_size", "20%"}};
const Json kNested = {{"use", "nested"},
                      {"outer", {{"use", "time_series"}, {"folds", 2}}},
                      {"inner", {{"use", "k_fold"}, {"folds", 2}}}};

Json series(const Json& validation) {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "series", "seed": 5,
    "data": {"use": "ar_series", "length": 104, "window": 4},
    "transforms": [{"use": "standardize", "target": true}],
    "model": {"use": "mlp", "hidden": [6], "dropout": 0.2},
    "metrics": ["mae"],
    "optimizer": {"use": "adamw", "learning_rate": 0.02},
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 5, "batch_size": 16, "early_stopping": {"patience": "2ep"},
                 "checkpoint": {"every": "3st"}},
    "resources": {"workers": 2}})");
  document["validation"] = validation;
  return document;
}

RunOutcome run(const Workspace& workspace, const Json& document) {
  const Runtime runtime = watching_runtime();
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

class SplitRunBits : public ::testing::TestWithParam<Json> {};

TEST_P(SplitRunBits, HaveTheSameBitsForAnyWorkersAndAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  Json document = series(GetParam());
  const Workspace whole;
  const std::string expected = bits_of(run(whole, document).folder);
  document["resources"]["workers"] = 3;
  const Workspace wide;
  EXPECT_EQ(bits_of(run(wide, document).folder), expected);
  for (const int steps : {2, 9, 17, 31}) {
    const Workspace workspace;

    const fs::path folder = stopped_and_resumed(runtime, workspace, document, steps).folder;

    EXPECT_EQ(bits_of(folder), expected) << "stopped after " << steps << " steps";
  }
}

INSTANTIATE_TEST_SUITE_P(Splits, SplitRunBits, ::testing::Values(kWalkForward, kNested),
                         [](const auto& info) {
                           return info.param.at("use").template get<std::string>();
                         });

TEST(SplitRuns, FoldsAreJudgedByTheirTestRows) {
  const Workspace workspace;

  const Json result = to_json(run(workspace, series(kWalkForward)).result);

  EXPECT_EQ(result.at("folds_evaluated_on"), "test");
  double sum = 0;
  for (const Json& fold : result.at("fold_results")) {
    EXPECT_EQ(fold.at("test").at("sample_count"), 20);
    EXPECT_EQ(fold.at("metrics"), fold.at("test").at("metrics"));
    EXPECT_TRUE(fold.contains("validation"));
    sum += fold.at("test").at("loss").get<double>();
  }
  EXPECT_EQ(result.at("fold_results").size(), 2U);
  EXPECT_NEAR(result.at("mean_loss").get<double>(), sum / 2, 1e-12);
  EXPECT_EQ(result.at("mean_metrics").size(), 1U);
}

// By hand: 100 rows; 60 before the first block, of which the last 12 validate.
TEST(SplitRuns, TheResultHasTheStretchesOfEachFold) {
  const Workspace workspace;

  const Json plan = run(workspace, series(kWalkForward)).result.plan;

  EXPECT_EQ(plan.at("steps"), 100);
  EXPECT_EQ(plan.at("first"), "4");
  EXPECT_EQ(plan.at("last"), "103");
  const Json& folds = plan.at("folds");
  ASSERT_EQ(folds.size(), 3U);
  EXPECT_EQ(folds[0], Json::parse(R"({"name": "fold-1", "training": [[0, 48]],
                                      "validation": [[48, 60]], "test": [[60, 80]]})"));
  EXPECT_EQ(folds[2], Json::parse(R"({"name": "final", "training": [[0, 100]]})"));
  EXPECT_THAT(
      read_file(fs::directory_iterator(workspace.folder() / "runs")->path() / "report.html"),
      HasSubstr("Folds in time"));
}

// Steps too small to change a weight: a training ends with the weights it began with.
TEST(SplitRuns, AWarmStartBeginsWithTheWeightsOfTheFoldBefore) {
  const auto weights = [](double test_size, bool warm_start) {
    Json validation = {
        {"use", "walk_forward"}, {"test_size", test_size}, {"warm_start", warm_start}};
    Json document = series(validation);
    document["optimizer"] = {{"use", "sgd"}, {"learning_rate", 1e-30}};
    const Workspace workspace;
    return read_file(run(workspace, document).folder / "model.safetensors");
  };

  EXPECT_EQ(weights(0.5, true), weights(0.1, true));
  EXPECT_NE(weights(0.5, false), weights(0.1, false));
  EXPECT_NE(weights(0.1, true), weights(0.1, false));
}

TEST(SplitRuns, ANestedFoldTrainsForTheEpochsThatItsInnerFoldsArrivedAt) {
  const Workspace workspace;

  const RunOutcome outcome = run(workspace, series(kNested));

  ASSERT_EQ(outcome.result.cross_validation->fold_results.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const FitResult& fold = outcome.result.cross_validation->fold_results[i];
    double epochs = 0;
    for (const FitResult& inner : outcome.result.cross_validation->inner.at(i).fold_results)
      epochs += static_cast<double>(inner.best_epoch);
    EXPECT_EQ(fold.total_epochs, std::llround(epochs / 2));
    EXPECT_FALSE(fold.validation);
    EXPECT_TRUE(fold.test);
  }
  EXPECT_EQ(outcome.result.cross_validation->fold_results[0].name, "outer-1");
  EXPECT_TRUE(fs::exists(outcome.folder / "fits" / "outer-2" / "final"));
  EXPECT_TRUE(fs::exists(outcome.folder / "model.safetensors"));
}

/// Hours of a wave, from 2016-07-01 on.
fs::path write_hours(const fs::path& folder) {
  const fs::path path = folder / "hours.csv";
  std::ofstream file(path);
  file << "time,x,y\n";
  for (int hour = 0; hour < 72; ++hour) {
    char time[32];
    std::snprintf(time, sizeof time, "2016-07-%02d %02d:00", 1 + hour / 24, hour % 24);
    file << time << ',' << std::to_string(std::sin(0.3 * hour)) << ','
         << std::to_string(std::cos(0.3 * hour)) << '\n';
  }
  return path;
}

TEST(SplitRuns, ALeakIsAnErrorThatNamesRowTimeFoldAndSamples) {
  const Workspace workspace;
  Json document = series({{"use", "k_fold"}, {"folds", 3}, {"shuffle", false}});
  document["data"] = {{"use", "csv"},
                      {"path", write_hours(workspace.folder()).string()},
                      {"target", "y"},
                      {"time", "time"}};
  document["sequence"] = {{"use", "windows"}, {"lookback", 4}, {"horizon", 2}};

  try {
    run(workspace, document);
    ADD_FAILURE() << "windows of neighbouring folds share rows";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("in fold-1, row 23 of the data ("));
    EXPECT_THAT(error.what(), HasSubstr("hours.csv:25, 2016-07-01 23:00)"));
    EXPECT_THAT(error.what(), HasSubstr("is in training sample 23 (rows 23-26, target rows 27-28) "
                                        "and in the target of validation sample"));
  }
}

TEST(SplitRuns, WindowsInTimeAreLabelledByTheTimeOfWhatTheyPredict) {
  const Workspace workspace;
  Json document = series({{"use", "time_series"}, {"folds", 3}});
  document["data"] = {{"use", "csv"},
                      {"path", write_hours(workspace.folder()).string()},
                      {"target", "y"},
                      {"time", "time"}};
  document["sequence"] = {{"use", "windows"}, {"lookback", 4}, {"horizon", 2}};

  const Json plan = run(workspace, document).result.plan;

  EXPECT_EQ(plan.at("first"), "2016-07-01 04:00");
  EXPECT_EQ(plan.at("last"), "2016-07-03 22:00");
}

}  // namespace
}  // namespace treadle
