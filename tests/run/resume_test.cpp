#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <treadle/base/error.h>

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
  document["training"]["gradients"] = {{"use", "accumulate"}, {"parts", 2}};
  const std::string expected = uninterrupted(runtime, document);
  document["resources"]["workers"] = 3;
  for (const int steps : {4, 61}) {
    const Workspace workspace;
    const fs::path run = interrupted_run(runtime, document, workspace, steps);

    resume_run(runtime, run, workspace.options());

    EXPECT_EQ(bits_of(run), expected) << "stopped after " << steps << " steps";
  }
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
      EXPECT_EQ(event.at("epoch"), ++epochs[event.at("trial")]) << line;
    }
    if (event.at("event") == "trial_completed") {
      EXPECT_EQ(event.at("epochs"), epochs[event.at("trial")]) << line;
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
    EXPECT_EQ(
        error.what(),
        run +
            "/checkpoints/fold-1: cannot be made for checkpoints: Not a directory; there is no "
            "checkpoint yet; when this is mended: workflow-runner resume " +
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
  fs::remove_all(run / "trials");

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
  ASSERT_TRUE(fs::exists(run / "trials" / "fold-1"));
  const std::string events = testing::read_file(run / "events.jsonl");

  resume_run(runtime, run, workspace.options());

  const std::string later = testing::read_file(run / "events.jsonl").substr(events.size());
  EXPECT_EQ(later.find("\"trial_started\",\"index\":0"), std::string::npos) << later;
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

  EXPECT_EQ(again.result, outcome.result);
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

TEST(Resume, NamesTheLineOfAHistoryThatSomebodyDamaged) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path run = interrupted_run(runtime, watched_moons(1), workspace, 24);
  std::string history = testing::read_file(run / "history.csv");
  const std::size_t second_line = history.find('\n') + 1;
  history.replace(history.find(",1,", second_line), 3, ",one,");
  std::ofstream(run / "history.csv", std::ios::binary) << history;

  try {
    resume_run(runtime, run, workspace.options());
    FAIL() << "resumed with a damaged history";
  } catch (const StorageError& error) {
    EXPECT_EQ(
        error.what(),
        (run / "history.csv").string() +
            ":2: epoch is \"one\", which is no number; the file was edited or damaged: restore "
            "the line, or delete the file to resume without the rows before");
  }
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

  EXPECT_EQ(outcome.result.at("started_at"), "2001-09-09T01:46:40Z");
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
