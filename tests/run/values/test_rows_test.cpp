#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <treadle/base/error.h>
#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using testing::Impatient;
using testing::read_file;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int kRows = 60;
constexpr int kTestRows = 12;

/// Rows of a wave, one after the other in time; the last twelve, which test, may be other ones.
void write_wave(const fs::path& path, int first, int last, double stretched = 1) {
  std::ofstream file(path);
  file << "x,y\n";
  for (int row = first; row < last; ++row) {
    const double stretch = row < kRows - kTestRows ? 1 : stretched;
    file << std::to_string(stretch * 0.1 * row) << ','
         << std::to_string(stretch * std::sin(0.1 * row)) << '\n';
  }
}

Json document_for(const fs::path& data, const Json& validation) {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "wave", "seed": 4,
    "data": {"use": "csv", "target": "y"},
    "transforms": [{"use": "standardize", "target": true}],
    "model": {"use": "mlp", "hidden": [8]},
    "loss": "mse", "metrics": ["mae"],
    "optimizer": {"use": "adamw", "learning_rate": 0.02},
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 6, "batch_size": 8, "restore_best_weights": {"monitor": "mae"},
                 "checkpoint": {"every": "2st"}},
    "resources": {"workers": 2}})");
  document["data"]["path"] = data.string();
  document["validation"] = validation;
  return document;
}

const Json kHoldOut = {{"use", "hold_out"}, {"strategy", "chronological"}, {"test_fraction", 0.2}};
const Json kFolds = {
    {"use", "k_fold"}, {"folds", 3}, {"test_fraction", 0.2}, {"test_strategy", "chronological"}};

Json without_times(Json part) {
  part.erase("test_time_seconds");
  part.erase("validation_time_seconds");
  return part;
}

class TestRows : public ::testing::TestWithParam<Json> {
 protected:
  RunOutcome run(const Workspace& workspace, double stretched = 1) const {
    const fs::path data = workspace.folder() / "wave.csv";
    write_wave(data, 0, kRows, stretched);
    return run_workflow(runtime_, runtime_.resolve(document_for(data, GetParam())),
                        workspace.options());
  }

  const Runtime runtime_ = watching_runtime();
};

TEST_P(TestRows, MeasureTheFinalModelAsEvaluateDoes) {
  const Workspace workspace;
  const RunOutcome outcome = run(workspace);
  const fs::path last = workspace.folder() / "last.csv";
  write_wave(last, kRows - kTestRows, kRows);

  const Json expected = to_json(Predictor::load(runtime_, outcome.folder).evaluate_file(last));

  const Json test = to_json(outcome.result).at("test");
  EXPECT_EQ(test.at("sample_count"), kTestRows);
  EXPECT_EQ(test.at("metric_list"), expected.at("metric_list"));
  // Other batches, so other last digits.
  EXPECT_NEAR(test.at("loss").get<double>(), expected.at("loss").get<double>(), 1e-5);
  EXPECT_NEAR(test.at("metrics").at("mae").get<double>(),
              expected.at("metrics").at("mae").get<double>(), 1e-5);
}

TEST_P(TestRows, NeitherTrainNorChooseNorFitATransform) {
  const Workspace workspace;
  const Workspace other_workspace;

  const RunOutcome outcome = run(workspace);
  const RunOutcome other = run(other_workspace, 50);

  EXPECT_EQ(bits_of(other.folder), bits_of(outcome.folder));
  EXPECT_EQ(read_file(other.folder / "preprocessing" / "state.safetensors"),
            read_file(outcome.folder / "preprocessing" / "state.safetensors"));
  EXPECT_EQ(to_json(other.result).at("metrics"), to_json(outcome.result).at("metrics"));
  EXPECT_GT(other.result.training.test->loss, 10 * outcome.result.training.test->loss);
}

TEST_P(TestRows, ComeToTheSameAfterAStop) {
  const Workspace workspace;
  const RunOutcome expected = run(workspace);
  for (const int steps : {3, 20}) {
    const Workspace stopped_workspace;
    RunOptions options = stopped_workspace.options();
    {
      const Impatient impatient(runtime_, steps);
      options.stop = impatient.token();
      const fs::path data = workspace.folder() / "wave.csv";
      EXPECT_THROW(
          run_workflow(runtime_, runtime_.resolve(document_for(data, GetParam())), options),
          Interrupted);
    }

    const RunOutcome outcome = resume_run(runtime_, fs::directory_iterator(options.output)->path(),
                                          stopped_workspace.options());

    EXPECT_EQ(bits_of(outcome.folder), bits_of(expected.folder));
    EXPECT_EQ(without_times(to_json(outcome.result).at("test")),
              without_times(to_json(expected.result).at("test")));
  }
}

TEST_P(TestRows, AreNamedAsThoseThatMeasureBesideThoseThatChose) {
  const Workspace workspace;

  const Json result = to_json(run(workspace).result);

  EXPECT_EQ(result.at("evaluated_on"), "test");
  const Json& chosen = result.contains("fold_results") ? result.at("fold_results")[0] : result;
  EXPECT_EQ(chosen.at("weights").at("on"), "validation");
  EXPECT_EQ(chosen.at("weights").at("by"), "mae");
}

INSTANTIATE_TEST_SUITE_P(Wave, TestRows, ::testing::Values(kHoldOut, kFolds), [](const auto& info) {
  return info.param.at("use").template get<std::string>();
});

TEST(WithoutTestRows, TheValidationRowsMeasure) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;

  const Json result =
      to_json(run_workflow(runtime, runtime.resolve(testing::moons()), workspace.options()).result);

  EXPECT_FALSE(result.contains("test"));
  EXPECT_EQ(result.at("evaluated_on"), "validation");
}

TEST(WithoutTestRows, ADryRunCountsThemWhereThereAreAny) {
  const Runtime runtime = watching_runtime();
  Json document = testing::moons();
  EXPECT_EQ(dry_run(runtime, runtime.resolve(document)).validation.at("test_rows"), 0);

  document["validation"]["test_fraction"] = 0.1;
  EXPECT_EQ(dry_run(runtime, runtime.resolve(document)).validation.at("test_rows"), 24);
}

}  // namespace
}  // namespace treadle
