// A run whose fits several processes divide, here threads: the folder of one process.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <treadle/testing/distributed/thread_communicator.h>

#include "watched_runs.h"
#include "workspace.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using testing::at_ranks;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::history_of;
using ::testing::IsEmpty;
using testing::moons;
using testing::read_file;
using testing::Workspace;

/// Without the times, and what depends on them.
nlohmann::json apart_from_times(nlohmann::json result) {
  if (result.is_object()) {
    for (const char* const key : {"environment", "time", "started_at"})
      result.erase(key);
    for (auto it = result.begin(); it != result.end();) {
      const bool is_time = it.key().find("seconds") != std::string::npos;
      it.value() = is_time ? nlohmann::json() : apart_from_times(it.value());
      ++it;
    }
  } else if (result.is_array()) {
    for (nlohmann::json& one : result)
      one = apart_from_times(one);
  }
  return result;
}

/// A checkpoint behind which there is another one of its fit: the writer in the background leaves
/// some out, by chance.
bool is_older_checkpoint(const fs::path& file) {
  const fs::path folder = file.parent_path();
  if (!folder.filename().string().starts_with("step-"))
    return false;
  return std::any_of(fs::directory_iterator(folder.parent_path()), fs::directory_iterator(),
                     [&](const fs::directory_entry& other) {
                       return other.path().filename() > folder.filename();
                     });
}

/// The files of a run by name. Those with times in them are there by name alone, but for the result
/// and the history.
std::map<std::string, std::string> contents_of(const fs::path& run) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (!entry.is_regular_file() || is_older_checkpoint(entry.path()))
      continue;
    const std::string name = entry.path().lexically_relative(run).string();
    const bool has_no_times = entry.path().extension() == ".safetensors" ||
                              entry.path().filename() == "best.json" || name == "workflow.json";
    contents[name] = has_no_times ? read_file(entry.path()) : "";
  }
  contents["history.csv"] = history_of(run);
  contents["result.json"] =
      apart_from_times(nlohmann::json::parse(read_file(run / "result.json"))).dump(1);
  return contents;
}

/// Names of files that are not in both, or not with the same content.
std::vector<std::string> differing(const std::map<std::string, std::string>& a,
                                   const std::map<std::string, std::string>& b) {
  std::vector<std::string> names;
  for (const auto& [name, content] : a) {
    if (const auto other = b.find(name); other == b.end() || other->second != content)
      names.push_back(name);
  }
  for (const auto& [name, content] : b) {
    if (a.count(name) == 0)
      names.push_back(name);
  }
  return names;
}

struct Divided {
  std::map<std::string, std::string> contents;
  std::set<std::int64_t> training;  // ranks that made steps
  std::vector<std::string> notes;   // of rank 0
  std::vector<std::string> errors;
};

Divided run_by(const Runtime& runtime, const nlohmann::json& document, std::int64_t processes) {
  Divided divided;
  std::mutex mutex;
  divided.errors = at_ranks(processes, [&](Communicator& communicator) {
    const Workspace workspace;
    RunOptions options = workspace.options();
    options.communicator = &communicator;
    options.hooks.on_note = [&](const std::string& text) {
      const std::lock_guard lock(mutex);
      if (communicator.rank() == 0)
        divided.notes.push_back(text);
    };
    options.hooks.on_epoch = [&](const FitId&, const EpochSummary&) {
      const std::lock_guard lock(mutex);
      divided.training.insert(communicator.rank());
    };
    const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), options);
    if (communicator.rank() == 0)
      divided.contents = contents_of(outcome.folder);
  });
  return divided;
}

nlohmann::json changed(const nlohmann::json& change) {
  nlohmann::json document = moons(1);
  document.update(change, /*merge_objects=*/true);
  return document;
}

nlohmann::json searching(const nlohmann::json& search) {
  nlohmann::json document = moons(1);
  document["validation"] = {{"use", "hold_out"}};
  document["search"] = {{"space",
                         {{"optimizer.learning_rate", {{"log_uniform", {0.001, 0.1}}}},
                          {"model.dropout", {{"uniform", {0.0, 0.5}}}}}},
                        {"trials", 6},
                        {"tuner", "tpe"},
                        {"objective", "val_loss"},
                        {"parallel", 3}};
  for (const auto& [key, value] : search.items())
    document["search"][key] = value;
  return document;
}

void expect_one_result(const nlohmann::json& document, const std::vector<std::int64_t>& processes) {
  const Runtime runtime;
  const Divided alone = run_by(runtime, document, 1);
  ASSERT_THAT(alone.errors, Each("")) << document;
  for (const std::int64_t count : processes) {
    const Divided divided = run_by(runtime, document, count);
    ASSERT_THAT(divided.errors, Each("")) << document << count;
    EXPECT_EQ(divided.training.size(), static_cast<std::size_t>(count)) << document;
    EXPECT_THAT(differing(divided.contents, alone.contents), IsEmpty()) << document << count;
    EXPECT_EQ(divided.contents.at("result.json"), alone.contents.at("result.json"));
  }
}

TEST(DividedFits, FoldsHaveTheFolderOfOneProcess) {
  expect_one_result(changed({{"validation", {{"refit", true}}},
                             {"metrics", {"accuracy", "auc"}},
                             {"baselines", {{{"use", "mlp"}, {"hidden", {2}}}}}}),
                    {2, 3});
}

TEST(DividedFits, FoldsWithinFoldsHaveTheFolderOfOneProcess) {
  nlohmann::json document = moons(1);
  document["validation"] = {{"use", "nested"},
                            {"outer", {{"use", "k_fold"}, {"folds", 2}}},
                            {"inner", {{"use", "k_fold"}, {"folds", 2}}}};
  expect_one_result(document, {2});
}

TEST(DividedFits, KeptModelsOfFoldsHaveTheFolderOfOneProcess) {
  nlohmann::json document = moons(1);
  document["data"] = {{"use", "friedman1"}, {"rows", 60}};
  document["metrics"] = {"rmse"};
  document["validation"] = {{"use", "k_fold"}, {"folds", 3}, {"test_fraction", 0.2}};
  document["outputs"] = {{"conformal", {{"method", "cv+"}, {"coverage", 0.8}}}};
  expect_one_result(document, {2});
}

TEST(DividedFits, TrialsHaveTheFolderOfOneProcess) {
  expect_one_result(searching(nlohmann::json::object()), {2, 3});
}

TEST(DividedFits, PrunedTrialsHaveTheFolderOfOneProcess) {
  nlohmann::json document =
      searching({{"pruner", {{"use", "asha"}, {"min_resource", 1}, {"reduction_factor", 2}}}});
  document["search"]["parallel"] = 4;
  document["resources"]["workers"] = 2;  // so that a process trains beside a fit that waits
  expect_one_result(document, {2, 3});
}

TEST(DividedFits, PrunedFoldsHaveTheFolderOfOneProcess) {
  nlohmann::json document =
      searching({{"trials", 4}, {"pruner", {{"use", "median"}, {"n_startup_trials", 1}}}});
  document["validation"] = {{"use", "k_fold"}, {"folds", 2}, {"refit", true}};
  expect_one_result(document, {2});
}

TEST(DividedFits, TrialsThatCopyOthersHaveTheFolderOfOneProcess) {
  nlohmann::json document =
      searching({{"trials", 8},
                 {"pruner", {{"use", "population_based"}, {"population", 4}, {"interval", 2}}}});
  document["search"]["space"]["model.hidden"] = {{"choice", {{4}, {8}}}};  // some copies fail
  expect_one_result(document, {3});
}

TEST(DividedFits, AnEnsembleHasTheFolderOfOneProcess) {
  nlohmann::json document = searching(
      {{"keep", 4}, {"trials", 4}, {"ensemble", {{"size", 6}}}, {"objective", "log_loss"}});
  document["metrics"] = {"log_loss"};
  document["validation"] = {{"use", "k_fold"}, {"folds", 2}, {"refit", true}};
  document["training"].erase("early_stopping");
  expect_one_result(document, {2});
}

TEST(DividedFits, LeaveASingleTrainingToTheShards) {
  nlohmann::json document = moons(1);
  document["resources"]["shards"] = 2;
  document["validation"] = {{"use", "hold_out"}};
  const Runtime runtime;
  EXPECT_THAT(run_by(runtime, document, 2).notes,
              Contains("2 processes share the 2 shards of each step"));
}

TEST(DividedFits, AreChosenWhereThereIsOneForEachProcess) {
  nlohmann::json document = moons(1);
  document["resources"]["shards"] = 4;
  const Runtime runtime;
  EXPECT_THAT(run_by(runtime, document, 3).notes, Contains("3 processes share 3 folds"));
  EXPECT_THAT(run_by(runtime, document, 4).notes,
              Contains("4 processes share the 4 shards of each step"));
  document["resources"]["divide"] = "fits";
  EXPECT_THAT(run_by(runtime, document, 4).notes, Contains("4 processes share 3 folds"));
}

TEST(DividedFits, FailInEveryProcessWithTheErrorOfOne) {
  nlohmann::json document = moons(1);
  document["optimizer"]["learning_rate"] = 1e30;
  const Runtime runtime;
  const Divided alone = run_by(runtime, document, 1);
  EXPECT_THAT(alone.errors, Each(HasSubstr("became NaN or infinite")));
  EXPECT_THAT(run_by(runtime, document, 2).errors, Each(HasSubstr("became NaN or infinite")));
}

TEST(DividedFits, ATrialThatFailsFailsAlone) {
  nlohmann::json document = searching({{"tuner", "random"}});
  document["search"]["space"] = {{"optimizer.learning_rate", {{"choice", {0.01, 1e30, 0.02}}}}};
  expect_one_result(document, {2});
}

/// One process asks for a stop once a fold has made some steps; then the run is resumed.
std::map<std::string, std::string> stopped_and_resumed(const nlohmann::json& document,
                                                       std::int64_t stopped, std::int64_t before,
                                                       std::int64_t after) {
  const Runtime runtime;
  const Workspace workspace;
  std::stop_source stop;
  const auto stopping = at_ranks(before, [&](Communicator& communicator) {
    const Workspace own;
    RunOptions options = communicator.rank() == 0 ? workspace.options() : own.options();
    options.communicator = &communicator;
    if (communicator.rank() == stopped) {
      options.stop = stop.get_token();
      options.hooks.on_epoch = [&](const FitId&, const EpochSummary& epoch) {
        if (epoch.epoch == 2)
          stop.request_stop();
      };
    }
    run_workflow(runtime, runtime.resolve(document), options);
  });
  EXPECT_THAT(stopping, Each(HasSubstr("stopped"))) << "in every process";
  const fs::path folder = *fs::directory_iterator(workspace.folder() / "runs");
  const auto errors = at_ranks(after, [&](Communicator& communicator) {
    const Workspace own;
    RunOptions options = own.options();
    options.communicator = &communicator;
    resume_run(runtime, communicator.rank() == 0 ? folder : "nowhere", options);
  });
  EXPECT_THAT(errors, Each(""));
  return contents_of(folder);
}

TEST(DividedFits, AreStoppedByAnyProcessAndResumedByAnyNumber) {
  const Runtime runtime;
  nlohmann::json document = moons(1);
  document["training"]["epochs"] = 30;
  document["training"].erase("early_stopping");
  const auto alone = run_by(runtime, document, 1).contents;

  EXPECT_THAT(differing(stopped_and_resumed(document, 0, 2, 3), alone), IsEmpty());
  EXPECT_THAT(differing(stopped_and_resumed(document, 1, 3, 1), alone), IsEmpty());
  EXPECT_THAT(differing(stopped_and_resumed(document, 0, 1, 2), alone), IsEmpty());
}

TEST(DividedFits, ASearchIsStoppedAndResumedByAnyNumber) {
  const Runtime runtime;
  const nlohmann::json document =
      searching({{"pruner", {{"use", "asha"}, {"min_resource", 2}, {"reduction_factor", 2}}}});
  const auto alone = run_by(runtime, document, 1).contents;

  EXPECT_THAT(differing(stopped_and_resumed(document, 1, 2, 3), alone), IsEmpty());
  EXPECT_THAT(differing(stopped_and_resumed(document, 0, 3, 1), alone), IsEmpty());
}

TEST(DividedFits, ASearchMayHaveATimeBudgetAndAStorage) {
  const Runtime runtime;
  nlohmann::json document = searching({{"trials", 3}, {"budget", {{"time", "10min"}}}});
  expect_one_result(document, {2});

  const Workspace place;
  document["search"].erase("budget");
  document["search"]["storage"] = {{"use", "journal"},
                                   {"location", (place.folder() / "study").string()}};
  const Divided stored = run_by(runtime, document, 2);
  EXPECT_THAT(stored.errors, Each(""));
  EXPECT_EQ(stored.training.size(), 2U);
  document["resources"]["divide"] = "shards";
  document["resources"]["shards"] = 2;
  EXPECT_THAT(run_by(runtime, document, 2).errors, Each(HasSubstr("search.parallel")));
}

/// The result of a search by two processes, of which rank 0 has these hooks.
nlohmann::json search_of_two(
    const nlohmann::json& document,
    const std::function<void(const fs::path& runs, const FitId&)>& on_epoch) {
  const Runtime runtime;
  nlohmann::json search;
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    const Workspace workspace;
    RunOptions options = workspace.options();
    options.communicator = &communicator;
    if (communicator.rank() == 0) {
      options.hooks.on_epoch = [&](const FitId& fit, const EpochSummary&) {
        on_epoch(workspace.folder() / "runs", fit);
      };
    }
    const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), options);
    if (communicator.rank() == 0)
      search = nlohmann::json::parse(read_file(outcome.folder / "result.json")).at("search");
  });
  EXPECT_THAT(errors, Each(""));
  return search;
}

TEST(DividedFits, ATrialOfAnyProcessIsCancelledByItsFile) {
  nlohmann::json document = searching({{"trials", 2}, {"tuner", "random"}});
  document["training"].erase("early_stopping");
  document["search"]["space"] = {{"training.epochs", {{"choice", {3, 1'000'000}}}}};
  document["search"]["initial"] = {{{"training.epochs", 3}}, {{"training.epochs", 1'000'000}}};
  const nlohmann::json search = search_of_two(document, [](const fs::path& runs, const FitId& fit) {
    const fs::path cancel = *fs::directory_iterator(runs) / fs::path("cancel");
    if (fit.path() != "trials/1" || fs::exists(cancel))
      return;
    fs::create_directory(cancel);
    std::ofstream(cancel / "1");
  });
  EXPECT_EQ(search.at("trials").at(1).at("state"), "cancelled");
}

TEST(DividedFits, ASearchEndsWithItsTimeBudget) {
  nlohmann::json document = searching({{"trials", 1000}, {"budget", {{"time", "2s"}}}});
  document["training"].erase("early_stopping");
  document["training"]["epochs"] = 40;
  const nlohmann::json search = search_of_two(document, [](const fs::path&, const FitId&) {});
  EXPECT_EQ(search.at("ended").at("reason"), "time");
}

/// A search whose last training of its best trial fails.
Divided with_failing_last_training(const nlohmann::json& document, std::int64_t processes) {
  const Runtime runtime = testing::watching_runtime();
  Divided divided;
  const Workspace of_first;
  int steps = 0;
  const testing::StepWatch failing(runtime, [&] {
    const fs::path run = *fs::directory_iterator(of_first.folder() / "runs");
    const bool is_last =
        read_file(run / "search.journal").find("\"treadle:last_training\"") != std::string::npos;
    if (is_last && ++steps == 4)
      throw TrainingError("it fell apart");
  });
  divided.errors = at_ranks(processes, [&](Communicator& communicator) {
    const Workspace own;
    const bool is_first = communicator.rank() == 0;
    RunOptions options = is_first ? of_first.options() : own.options();
    options.communicator = &communicator;
    if (is_first)
      options.hooks.on_note = [&](const std::string& text) { divided.notes.push_back(text); };
    const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), options);
    if (is_first)
      divided.contents = contents_of(outcome.folder);
  });
  return divided;
}

TEST(DividedFits, TheNextBestTrialIsTrainedWhereTheLastTrainingFails) {
  nlohmann::json document = searching({{"trials", 2}});
  document["training"]["epochs"] = 3;
  document["schedule"] = "watched";
  const Divided alone = with_failing_last_training(document, 1);
  const Divided divided = with_failing_last_training(document, 2);

  EXPECT_THAT(alone.errors, Each(""));
  EXPECT_THAT(divided.errors, Each(""));
  EXPECT_THAT(divided.notes, Contains(HasSubstr("the next best, begins")));
  EXPECT_THAT(differing(divided.contents, alone.contents), IsEmpty());
}

}  // namespace
}  // namespace treadle
