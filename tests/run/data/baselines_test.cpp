// Networks to beat beside a run.
#include <map>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/problem.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using ::testing::HasSubstr;
using testing::read_file;
using testing::stopped_and_resumed;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

Json forecasts() {
  return Json::parse(R"({
    "treadle": 1, "name": "forecasts", "seed": 4,
    "data": {"use": "ar_series", "length": 304, "window": 1},
    "sequence": {"use": "windows", "lookback": 8, "horizon": 2, "include_targets": true},
    "validation": {"use": "hold_out", "strategy": "chronological", "fraction": 0.2},
    "model": {"use": "flow", "flow": [{"use": "graph", "builder": {"use": "nlinear", "channel": 1}}]},
    "loss": "mse",
    "optimizer": {"use": "adam", "learning_rate": 0.01},
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 3, "batch_size": 32, "checkpoint": {"every": "3st"}},
    "metrics": ["mae"],
    "baselines": [{"use": "repeat", "channel": 1}, {"use": "seasonal", "period": 4, "channel": 1},
                  {"use": "linear", "channel": 1}],
    "resources": {"workers": 2}})");
}

RunOutcome finished(const Workspace& workspace, const Json& document) {
  const Runtime runtime = watching_runtime();
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

Json finished_alone(const Json& builder, const Json& of = forecasts()) {
  const Workspace workspace;
  Json document = of;
  document.erase("baselines");
  document["model"]["flow"][0]["builder"] = builder;
  return to_json(finished(workspace, document).result);
}

TEST(Baselines, StandBesideTheModelOnTheSameRows) {
  const Workspace workspace;

  const RunOutcome outcome = finished(workspace, forecasts());

  const Json baselines = to_json(outcome.result).at("baselines");
  ASSERT_EQ(baselines.size(), 3U);
  EXPECT_EQ(baselines[0].at("name"), "repeat");
  EXPECT_EQ(baselines[0].at("parameter_count"), 0);
  EXPECT_EQ(baselines[0].at("training_time_seconds"), 0);
  EXPECT_EQ(baselines[1].at("name"), "seasonal");
  EXPECT_EQ(baselines[2].at("parameter_count"), 2 * 8 + 2);
  for (const Json& baseline : baselines) {
    EXPECT_EQ(baseline.at("evaluated_on"), "validation");
    EXPECT_TRUE(baseline.at("metrics").contains("mae"));
  }
  EXPECT_THAT(read_file(outcome.folder / "report.html"), HasSubstr("Baselines"));
  // A model of the same network differs by its random weights alone.
  EXPECT_NEAR(
      baselines[2].at("loss").get<double>(),
      finished_alone({{"use", "linear"}, {"channel", 1}}).at("validation").at("loss").get<double>(),
      0.2);
}

TEST(Baselines, ChangeNothingInTheModel) {
  const Workspace with;
  const Workspace without;
  Json document = forecasts();
  const fs::path compared = finished(with, document).folder;
  document.erase("baselines");

  EXPECT_EQ(read_file(finished(without, document).folder / "model.safetensors"),
            read_file(compared / "model.safetensors"));
}

TEST(Baselines, OfFoldsAreMeans) {
  const Workspace workspace;
  Json document = forecasts();
  document["validation"] = {{"use", "time_series"}, {"folds", 3}};

  const Json result = to_json(finished(workspace, document).result);

  ASSERT_EQ(result.at("baselines").size(), 3U);
  EXPECT_EQ(result.at("fold_results").size(), 3U);
  // events.jsonl has what each of the folds came to: without training its loss on the fold's rows.
  std::istringstream events(
      read_file(fs::directory_iterator(workspace.folder() / "runs")->path() / "events.jsonl"));
  std::map<std::string, double> losses;
  for (std::string line; std::getline(events, line);) {
    const Json event = Json::parse(line);
    if (event.at("event") == "fit_completed")
      losses[event.at("fit")] = event.at("final_loss");
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string path =
        "baselines/" + result.at("baselines")[i].at("name").get<std::string>() + "/fold-";
    EXPECT_NEAR(result.at("baselines")[i].at("loss").get<double>(),
                (losses.at(path + "1") + losses.at(path + "2") + losses.at(path + "3")) / 3, 1e-12);
  }
}

TEST(Baselines, HaveTheSameBitsForAnyWorkersAndAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  Json document = forecasts();
  const Workspace whole;
  const RunOutcome undisturbed = finished(whole, document);
  const std::string expected = bits_of(undisturbed.folder);
  const auto without_times = [](Json baselines) {
    for (Json& baseline : baselines)
      baseline.erase("training_time_seconds");
    return baselines;
  };
  document["resources"]["workers"] = 3;
  const Workspace wide;
  EXPECT_EQ(without_times(to_json(finished(wide, document).result).at("baselines")),
            without_times(to_json(undisturbed.result).at("baselines")));
  for (const int steps : {2, 15, 30}) {
    const Workspace workspace;

    const RunOutcome resumed = stopped_and_resumed(runtime, workspace, document, steps);

    EXPECT_EQ(bits_of(resumed.folder), expected) << "stopped after " << steps << " steps";
    EXPECT_EQ(without_times(to_json(resumed.result).at("baselines")),
              without_times(to_json(undisturbed.result).at("baselines")));
  }
}

TEST(Baselines, ThatDoNotFitTheDataAreNamed) {
  const Workspace workspace;
  Json document = forecasts();
  document["baselines"] = Json::parse(R"([{"use": "seasonal", "period": 99, "channel": 1}])");
  const Runtime runtime = watching_runtime();
  const ResolvedWorkflow workflow = runtime.resolve(document);
  const auto complaint_of = [](const auto& work) {
    try {
      work();
    } catch (const DocumentError& error) {
      EXPECT_EQ(error.problems().front().pointer, "/baselines/0");
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };

  RunOptions options = workspace.options();
  int epochs = 0;
  options.hooks.on_epoch = [&](const FitId&, const EpochSummary&) { ++epochs; };

  EXPECT_THAT(complaint_of([&] { run_workflow(runtime, workflow, options); }),
              HasSubstr("the last 99 steps (\"period\") of windows that have 8"));
  EXPECT_EQ(epochs, 0) << "a mistake that is found without training";
  EXPECT_THAT(complaint_of([&] { dry_run(runtime, workflow); }), HasSubstr("the last 99 steps"));
}

}  // namespace
}  // namespace treadle
