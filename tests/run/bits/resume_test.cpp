#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include <treadle/base/error.h>
#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using testing::Impatient;
using testing::StepWatch;
using testing::watched_moons;
using testing::watching_runtime;
using testing::Workspace;
namespace fs = std::filesystem;

/// Keeps what was noted.
class Listener : public RunObserver {
 public:
  std::vector<std::string> notes;

 private:
  void do_noted(const std::string& text) override { notes.push_back(text); }
};

fs::path only_run_in(const fs::path& runs) {
  return fs::directory_iterator(runs)->path();
}

/// Runs and stops after `steps`; returns the run's folder.
fs::path interrupted_run(const Runtime& runtime, const nlohmann::json& document,
                         const Workspace& workspace, int steps) {
  const Impatient impatient(runtime, steps);
  RunOptions options = workspace.options();
  options.stop = impatient.token();
  EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
  return only_run_in(options.output);
}

std::string uninterrupted(const Runtime& runtime, const nlohmann::json& document) {
  const Workspace workspace;
  return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
}

TEST(Resume, EqualsNeverHavingStoppedWhereverItStopped) {
  const Runtime runtime = watching_runtime();
  const std::string expected = uninterrupted(runtime, watched_moons());
  // In the first epoch, at an epoch's end, between folds, in the final training.
  for (const int steps : {1, 3, 10, 29, 60, 155, 190}) {
    const Workspace workspace;
    const fs::path run = interrupted_run(runtime, watched_moons(), workspace, steps);

    resume_run(runtime, run, workspace.options());

    EXPECT_EQ(bits_of(run), expected) << "stopped after " << steps << " steps";
  }
}

TEST(Resume, EqualsNeverHavingStoppedInShardsAndWithOtherWorkers) {
  const Runtime runtime = watching_runtime();
  nlohmann::json document = watched_moons(1);
  document["resources"]["shards"] = 3;
  document["training"]["gradients"] = {{"use", "accumulate"}, {"micro_batches", 2}};
  const std::string expected = uninterrupted(runtime, document);
  document["resources"]["workers"] = 3;
  for (const int steps : {4, 61}) {
    const Workspace workspace;
    const fs::path run = interrupted_run(runtime, document, workspace, steps);

    resume_run(runtime, run, workspace.options());

    EXPECT_EQ(bits_of(run), expected) << "stopped after " << steps << " steps";
  }
}

TEST(Resume, TellsTheChoicesThatWereMadeWhenTheRunBegan) {
  const Runtime runtime = watching_runtime();
  const Workspace whole;
  const std::vector<std::string> expected =
      run_workflow(runtime, runtime.resolve(watched_moons(1)), whole.options()).result.choices;
  for (const bool has_environment : {true, false}) {
    const Workspace workspace;
    const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 7);
    if (!has_environment)
      fs::remove(run / "environment.json");

    EXPECT_EQ(resume_run(runtime, run).result.choices, expected);
  }
  EXPECT_GE(expected.size(), 3U);
}

TEST(Resume, CanBeStoppedAgainAndAgain) {
  const Runtime runtime = watching_runtime();
  const std::string expected = uninterrupted(runtime, watched_moons(1));
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 7);

  bool finished = false;
  for (int round = 0; round < 100 && !finished; ++round) {
    const Impatient impatient(runtime, 13);
    RunOptions options = workspace.options();
    options.stop = impatient.token();
    try {
      resume_run(runtime, run, options);
      finished = true;
    } catch (const Interrupted&) {
    }
  }

  ASSERT_TRUE(finished);
  EXPECT_EQ(bits_of(run), expected);
}

TEST(Resume, GoesOnFromTheVeryStepAfterWhichItWasStopped) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;

  // Most of the saves before are passed over, being overtaken while the disk is busy; the last one
  // never is.
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 27);

  EXPECT_TRUE(fs::exists(run / "checkpoints/fold-1/step-000000000027/state.json"));
}

TEST(Resume, LeavesEachEpochInTheEventsOnce) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(), workspace, 47);

  resume_run(runtime, run, workspace.options());

  std::map<std::string, std::int64_t> epochs;
  std::istringstream events(testing::read_file(run / "events.jsonl"));
  for (std::string line; std::getline(events, line);) {
    const nlohmann::json event = nlohmann::json::parse(line);
    if (event.at("event") == "epoch_completed") {
      EXPECT_EQ(event.at("epoch"), ++epochs[event.at("fit")]) << line;
    }
    if (event.at("event") == "fit_completed") {
      EXPECT_EQ(event.at("epochs"), epochs[event.at("fit")]) << line;
    }
  }
  EXPECT_EQ(epochs.size(), 4u);
}

TEST(Resume, ACheckpointThatCannotBeWrittenEndsTheRunWithOneSentence) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  int steps = 0;
  const StepWatch watch(runtime, [&] {
    // A file stands where the folder should be made.
    if (++steps == 1)
      std::ofstream(only_run_in(workspace.folder() / "runs") / "checkpoints") << "mine";
  });

  try {
    run_workflow(runtime, runtime.resolve(watched_moons(1)), workspace.options());
    FAIL() << "nobody missed the checkpoints";
  } catch (const StorageError& error) {
    const std::string run = only_run_in(workspace.folder() / "runs").string();
    EXPECT_EQ(error.what(),
              run +
                  "/checkpoints/fold-1: cannot be made for checkpoints: Not a directory; no "
                  "checkpoint exists yet; when this is mended: workflow-runner resume " +
                  run);
  }
}

TEST(Resume, AStopWhoseCheckpointCannotBeWrittenSaysThat) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  std::stop_source stop;
  const StepWatch watch(runtime, [&] {
    std::ofstream(only_run_in(workspace.folder() / "runs") / "checkpoints") << "mine";
    stop.request_stop();
  });
  RunOptions options = workspace.options();
  options.stop = stop.get_token();

  EXPECT_THROW(run_workflow(runtime, runtime.resolve(watched_moons(1)), options), StorageError);
}

TEST(Resume, StartsFromTheDocumentWhenThereIsNoCheckpointYet) {
  const Runtime runtime = watching_runtime();
  const std::string expected = uninterrupted(runtime, watched_moons());
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(), workspace, 1);
  fs::remove_all(run / "checkpoints");
  fs::remove_all(run / "fits");

  resume_run(runtime, run, workspace.options());

  EXPECT_EQ(bits_of(run), expected);
}

TEST(Resume, PassesOverADamagedCheckpointAndSaysSo) {
  const Runtime runtime = watching_runtime();
  const std::string expected = uninterrupted(runtime, watched_moons(1));
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 24);
  const auto all_checkpoints = [&] {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(run / "checkpoints" / "fold-1")) {
      if (entry.is_directory())
        found.push_back(entry.path());
    }
    return found;
  };
  // On a busy machine one is passed over while another is still being written; a stop waits for its
  // own.
  for (int again = 0; again < 3 && all_checkpoints().size() < 2; ++again) {
    const Impatient impatient(runtime, 2);
    RunOptions options = workspace.options();
    options.stop = impatient.token();
    EXPECT_THROW(resume_run(runtime, run, options), Interrupted);
  }
  const std::vector<fs::path> checkpoints = all_checkpoints();
  ASSERT_GE(checkpoints.size(), 2u);
  const fs::path newest = *std::max_element(checkpoints.begin(), checkpoints.end());
  std::string bytes = testing::read_file(newest / "weights.safetensors");
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(newest / "weights.safetensors", std::ios::binary) << bytes;

  Listener listener;
  RunOptions options = workspace.options();
  options.observers = {&listener};
  resume_run(runtime, run, options);

  EXPECT_EQ(bits_of(run), expected);
  EXPECT_THAT(
      listener.notes,
      ::testing::Contains(::testing::AllOf(
          ::testing::HasSubstr("checkpoint passed over: "),
          ::testing::HasSubstr("weights.safetensors: is damaged: its checksum does not match"))));
}

TEST(Resume, DoesNotTrainFinishedFoldsAgain) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  // 160 rows in batches of 16 are 10 steps an epoch: the first fold is done after 60 steps at the
  // latest.
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 65);
  ASSERT_TRUE(fs::exists(run / "fits" / "fold-1"));
  const std::string events = testing::read_file(run / "events.jsonl");

  resume_run(runtime, run, workspace.options());

  std::vector<std::string> started;
  std::istringstream later(testing::read_file(run / "events.jsonl").substr(events.size()));
  for (std::string line; std::getline(later, line);) {
    const nlohmann::json event = nlohmann::json::parse(line);
    if (event.at("event") == "fit_started")
      started.push_back(event.at("fit"));
  }
  EXPECT_THAT(started, ::testing::ElementsAre("fold-2", "fold-3", "final"));
}

TEST(Resume, RefusesOtherConditionsUnlessAllowed) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(), workspace, 20);
  nlohmann::json environment = nlohmann::json::parse(testing::read_file(run / "environment.json"));
  environment["blas"] = "another BLAS";
  std::ofstream(run / "environment.json") << environment;

  try {
    resume_run(runtime, run, workspace.options());
    FAIL() << "resumed under another BLAS";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("blas was another BLAS and is now "));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("--allow-differences"));
  }
  RunOptions options = workspace.options();
  options.allow_differences = true;
  EXPECT_NO_THROW(resume_run(runtime, run, options));
}

TEST(Resume, LeavesAFinishedRunAsItIs) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const RunOutcome outcome =
      run_workflow(runtime, runtime.resolve(watched_moons()), workspace.options());
  const std::string history = testing::read_file(outcome.folder / "history.csv");

  const RunOutcome again = resume_run(runtime, outcome.folder, workspace.options());

  EXPECT_EQ(to_json(again.result), to_json(outcome.result));
  EXPECT_EQ(testing::read_file(outcome.folder / "history.csv"), history);
}

TEST(Resume, ClearsAwayWhatAKillLeftHalfWritten) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 20);
  std::ofstream(run / "history.csv.part-123-0") << "half";
  fs::create_directories(run / "checkpoints/fold-1/step-000000000021.tmp");
  std::ofstream(run / "notes.txt") << "somebody's own";

  resume_run(runtime, run, workspace.options());

  EXPECT_FALSE(fs::exists(run / "history.csv.part-123-0"));
  EXPECT_FALSE(fs::exists(run / "checkpoints/fold-1/step-000000000021.tmp"));
  EXPECT_TRUE(fs::exists(run / "notes.txt"));
}

TEST(Resume, TakesAHistoryWhoseLastLineWasCutOff) {
  const Runtime runtime = watching_runtime();
  const std::string expected = uninterrupted(runtime, watched_moons(1));
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 24);
  std::ofstream(run / "history.csv", std::ios::app) << "fold-1,3,6,3";

  resume_run(runtime, run, workspace.options());

  EXPECT_EQ(bits_of(run), expected);
}

TEST(Resume, RestoresAHistoryThatWasLostOrChanged) {
  const Runtime runtime = watching_runtime();
  const std::string expected = uninterrupted(runtime, watched_moons(1));
  const auto text = [](const fs::path& run) { return testing::read_file(run / "history.csv"); };
  const auto put = [](const fs::path& run, const std::string& content) {
    std::ofstream(run / "history.csv", std::ios::binary) << content;
  };
  const std::vector<std::function<void(const fs::path&)>> damages{
      [&](const fs::path& run) { fs::remove(run / "history.csv"); },
      [&](const fs::path& run) { put(run, ""); },
      [&](const fs::path& run) { put(run, text(run).substr(0, text(run).size() / 2)); },
      [&](const fs::path& run) {  // a digit of the first row's loss
        std::string content = text(run);
        const std::size_t digit = content.find("0.", content.find("\nfold-1,")) + 3;
        content[digit] = content[digit] == '5' ? '6' : '5';
        put(run, content);
      },
      [&](const fs::path& run) {
        std::string content = text(run);
        content.replace(content.find("\nfold-1,1,"), 10, "\nfold-1,one,");
        put(run, content);
      },
      [&](const fs::path& run) {
        std::string content = text(run);
        content.replace(content.find("accuracy"), 8, "acc\"racy");
        put(run, content);
      }};
  for (std::size_t i = 0; i < damages.size(); ++i) {
    const Workspace workspace;
    // In the second fold, after some of its epochs.
    const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 85);
    damages[i](run);

    Listener listener;
    RunOptions options = workspace.options();
    options.observers = {&listener};
    resume_run(runtime, run, options);

    EXPECT_EQ(bits_of(run), expected) << i;
    EXPECT_THAT(listener.notes, ::testing::Contains(::testing::HasSubstr("history.csv"))) << i;
  }
}

TEST(Resume, LeavesAGoodHistoryUnmentioned) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 85);

  Listener listener;
  RunOptions options = workspace.options();
  options.observers = {&listener};
  resume_run(runtime, run, options);

  EXPECT_THAT(listener.notes, ::testing::Each(::testing::Not(::testing::HasSubstr("history.csv"))));
}

/// The refusal to resume with the document changed at `pointer`.
std::string refusal_of_changed(const Runtime& runtime, const fs::path& run,
                               const RunOptions& options, const std::string& pointer,
                               const nlohmann::json& value) {
  const std::string written = testing::read_file(run / "workflow.json");
  nlohmann::json document = nlohmann::json::parse(written);
  document[nlohmann::json::json_pointer(pointer)] = value;
  std::ofstream(run / "workflow.json") << document;
  std::string said;
  try {
    resume_run(runtime, run, options);
  } catch (const StorageError& error) {
    said = error.what();
  }
  std::ofstream(run / "workflow.json") << written;
  return said;
}

TEST(Resume, RefusesADocumentThatIsNotTheOneTheRunBeganWith) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 85);
  ASSERT_TRUE(fs::exists(run / "fits/fold-1"));
  const auto expect_refusals = [&](const std::string& when) {
    RunOptions options = workspace.options();
    for (const bool allow : {false, true}) {
      options.allow_differences = allow;
      for (const auto& [pointer, value] :
           std::vector<std::pair<std::string, nlohmann::json>>{{"/seed", 12},
                                                               {"/training/epochs", 7},
                                                               {"/validation/folds", 4},
                                                               {"/optimizer/learning_rate", 0.02},
                                                               {"/model/hidden/0", 9}}) {
        EXPECT_THAT(refusal_of_changed(runtime, run, options, pointer, value),
                    ::testing::AllOf(::testing::HasSubstr(pointer + " was "),
                                     ::testing::HasSubstr("and is now " + value.dump()),
                                     ::testing::HasSubstr("workflow-runner run ")))
            << when;
      }
    }
  };
  expect_refusals("with its environment.json");
  fs::remove(run / "environment.json");
  expect_refusals("with records of trainings");
  fs::remove_all(run / "fits");
  expect_refusals("with checkpoints alone");
  std::ofstream(run / "environment.json") << "{";
  expect_refusals("with a damaged environment.json");
}

TEST(Resume, TakesAnotherNameAndAnotherNumberOfWorkers) {
  const Runtime runtime = watching_runtime();
  const std::string expected = uninterrupted(runtime, watched_moons(1));
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 85);
  nlohmann::json document = nlohmann::json::parse(testing::read_file(run / "workflow.json"));
  document["name"] = "renamed";
  document["resources"]["workers"] = 3;
  std::ofstream(run / "workflow.json") << document;

  resume_run(runtime, run, workspace.options());

  EXPECT_EQ(bits_of(run), expected);
}

TEST(Resume, ComparesTheEnvironmentAlsoWhereItsFileIsGone) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  nlohmann::json document = watched_moons(1);
  const auto write_rows = [&](int rows) {
    std::ofstream file(workspace.folder() / "rows.csv");
    file << "x,y,class\n";
    for (int i = 0; i < rows; ++i)
      file << i * 7 % 11 << "," << i * 5 % 13 << "," << (i % 2 == 0 ? "a" : "b") << "\n";
  };
  document["data"] = {
      {"use", "csv"}, {"path", (workspace.folder() / "rows.csv").string()}, {"target", "class"}};
  write_rows(240);
  const fs::path run = interrupted_run(runtime, document, workspace, 40);
  fs::remove(run / "environment.json");
  write_rows(200);
  RunOptions options = workspace.options();
  const auto refusal = [&] {
    try {
      resume_run(runtime, run, options);
    } catch (const StorageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };

  EXPECT_THAT(refusal(), ::testing::HasSubstr("data_hash was "));
  options.allow_differences = true;
  EXPECT_THAT(refusal(),
              ::testing::AllOf(::testing::HasSubstr("240 rows"), ::testing::HasSubstr("200"),
                               ::testing::HasSubstr("workflow-runner run ")));
  // Moved, not changed.
  write_rows(240);
  fs::rename(workspace.folder() / "rows.csv", workspace.folder() / "moved.csv");
  nlohmann::json moved = nlohmann::json::parse(testing::read_file(run / "workflow.json"));
  moved["data"]["path"] = (workspace.folder() / "moved.csv").string();
  std::ofstream(run / "workflow.json") << moved;
  options.allow_differences = false;
  EXPECT_EQ(refusal(), "");
}

// The remedy that the message names is carried out.
TEST(Resume, AStoppedRunSaysHowItIsEndedWhereItIs) {
  const Runtime runtime = watching_runtime();
  nlohmann::json by_steps = watched_moons(1);
  by_steps["training"].erase("epochs");
  by_steps["training"]["max_steps"] = 5000;
  for (nlohmann::json document : {watched_moons(1), by_steps}) {
    document["validation"] = "hold_out";
    const Workspace workspace;
    const fs::path run = interrupted_run(runtime, document, workspace, 7);
    std::string message;
    try {
      Predictor::load(runtime, run);
    } catch (const StorageError& error) {
      message = error.what();
    }
    const std::string before = "workflow-runner run --from " + run.string() + " --set ";
    const std::size_t place = message.find(before);
    ASSERT_NE(place, std::string::npos) << message;
    const std::vector<std::string> set{message.substr(place + before.size())};

    const RunOutcome ended = continue_run(runtime, run, set, workspace.options());

    EXPECT_NO_THROW(Predictor::load(runtime, ended.folder));
  }
}

TEST(Resume, ABuildThatWasInstalledElsewhereIsTheSame) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 20);
  // Installing a library changes where it looks for others, and with it its bytes.
  const fs::path file = run / "environment.json";
  nlohmann::json environment = nlohmann::json::parse(testing::read_file(file));
  environment["plugins"][0]["sha256"] = std::string(64, '0');
  std::ofstream(file) << environment;
  EXPECT_NO_THROW(resume_run(runtime, run, workspace.options()));
}

TEST(Resume, AnotherBuildOfAPluginIsRefusedByName) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 20);
  nlohmann::json environment = nlohmann::json::parse(testing::read_file(run / "environment.json"));
  environment["plugins"][0]["build_id"] = "1234";
  std::ofstream(run / "environment.json") << environment;

  try {
    resume_run(runtime, run, workspace.options());
    FAIL() << "resumed with another build";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(environment["plugins"][0]["id"]));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("(build 1234)"));
  }
}

TEST(Resume, WithoutAnyGoodCheckpointIsAnErrorThatNamesThem) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 24);
  std::vector<fs::path> checkpoints;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints/fold-1")) {
    if (entry.is_directory())
      checkpoints.push_back(entry.path());
  }
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    const fs::path file = checkpoints[i] / "state.json";
    nlohmann::json state = nlohmann::json::parse(testing::read_file(file));
    state["format"] = 99;
    std::ofstream(file) << (i % 2 == 0 ? state.dump() : "[1");
  }

  try {
    resume_run(runtime, run, workspace.options());
    FAIL() << "began again without a word";
  } catch (const StorageError& error) {
    for (const fs::path& checkpoint : checkpoints)
      EXPECT_THAT(error.what(), ::testing::HasSubstr(checkpoint.string()));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("has format 99"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("none of the checkpoints can be used"));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("json.exception")));
  }
}

TEST(Resume, TrainsAgainWhatHasADamagedResult) {
  const Runtime runtime = watching_runtime();
  const std::string expected = uninterrupted(runtime, watched_moons(1));
  for (const std::string content : {"", "{}", "[1", "null"}) {
    const Workspace workspace;
    const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 85);
    ASSERT_TRUE(fs::exists(run / "fits/fold-1/state.json"));
    std::ofstream(run / "fits/fold-1/state.json") << content;

    Listener listener;
    RunOptions options = workspace.options();
    options.observers = {&listener};
    resume_run(runtime, run, options);

    EXPECT_EQ(bits_of(run), expected);
    EXPECT_THAT(listener.notes,
                ::testing::Contains(::testing::AllOf(
                    ::testing::HasSubstr("fold-1"), ::testing::HasSubstr("state.json: is damaged"),
                    ::testing::Not(::testing::HasSubstr("json.exception")))));
  }
}

TEST(SavedModel, IsRefusedWhereItsWeightsOrItsPreprocessingAreDamaged) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run =
      run_workflow(runtime, runtime.resolve(watched_moons(1)), workspace.options()).folder;
  EXPECT_NO_THROW(Predictor::load(runtime, run));
  const auto expect_refused = [&](const fs::path& file, const std::string& damaged) {
    const std::string bytes = testing::read_file(file);
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_THROW(resume_run(runtime, run, workspace.options()), StorageError);
    try {
      Predictor::load(runtime, run);
      ADD_FAILURE() << file << " was believed";
    } catch (const StorageError& error) {
      EXPECT_THAT(
          error.what(),
          ::testing::AllOf(::testing::HasSubstr(file.string()), ::testing::HasSubstr("is damaged"),
                           ::testing::HasSubstr("restore "),
                           ::testing::Not(::testing::HasSubstr("exception"))));
    }
    std::ofstream(file, std::ios::binary) << bytes;
  };

  std::string weights = testing::read_file(run / "model.safetensors");
  weights[weights.size() - 5] ^= 0x40;
  expect_refused(run / "model.safetensors", weights);
  expect_refused(run / "preprocessing/state.json", "{\"format\"");
  expect_refused(run / "preprocessing/state.json", "{\"format\": 1}");
}

TEST(Resume, KeepsTheTimeAtWhichTheRunBegan) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 24);
  // 2001-09-09T01:46:40Z is 10^9 seconds after 1970.
  std::string events = testing::read_file(run / "events.jsonl");
  nlohmann::json first = nlohmann::json::parse(events.substr(0, events.find('\n')));
  first["time"] = 1e9;
  std::ofstream(run / "events.jsonl", std::ios::binary)
      << first.dump() + events.substr(events.find('\n'));

  const RunOutcome outcome = resume_run(runtime, run, workspace.options());

  EXPECT_EQ(outcome.result.started_at, "2001-09-09T01:46:40Z");
}

TEST(Resume, SaysWhenTheFolderIsNoRun) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  try {
    resume_run(runtime, workspace.folder(), workspace.options());
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_EQ(error.what(), workspace.folder().string() +
                                ": is not the folder of a run: it has no workflow.json");
  }
}

}  // namespace
}  // namespace treadle
