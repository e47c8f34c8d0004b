// A run that several processes train together, here threads: the bits of one process.
#include <filesystem>
#include <stop_token>
#include <string>

#include <gmock/gmock.h>

#include <treadle/testing/distributed/thread_communicator.h>

#include "workspace.h"

namespace treadle {
namespace {

using testing::at_ranks;
using testing::bits_of;
using ::testing::Each;
using testing::moons;
using testing::Workspace;

nlohmann::json in_four_shards(const nlohmann::json& change) {
  nlohmann::json document = moons(1);
  document["training"]["batch_size"] = 30;
  document["resources"]["shards"] = 4;
  document["resources"]["divide"] = "shards";
  document.update(change, /*merge_objects=*/true);
  return document;
}

/// Of rank 0; nothing where something was thrown.
std::string bits_of_processes(const Runtime& runtime, const nlohmann::json& document,
                              std::int64_t processes) {
  std::string bits;
  const auto errors = at_ranks(processes, [&](Communicator& communicator) {
    const Workspace workspace;
    RunOptions options = workspace.options();
    options.communicator = &communicator;
    const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), options);
    if (communicator.rank() == 0)
      bits = bits_of(outcome.folder);
  });
  EXPECT_THAT(errors, Each("")) << document;
  return bits;
}

TEST(SharedRun, GivesTheBitsOfOneProcessInEveryWayToTrain) {
  const Runtime runtime;
  const nlohmann::json changes[] = {
      {{"model", {{"use", "mlp"}, {"hidden", {8}}, {"norm", "batch"}, {"dropout", 0.2}}}},
      {{"metrics", {"accuracy", "auc"}}, {"precision", "float64"}},
      {{"training", {{"clip", {{"norm", 0.5}}}, {"ema", {{"decay", 0.9}}}}}},
      {{"training", {{"gradients", {{"use", "accumulate"}, {"micro_batches", 2}}}}}},
      {{"model", {{"hidden", {256, 256}}}}},
  };
  for (const nlohmann::json& change : changes) {
    const nlohmann::json document = in_four_shards(change);
    const std::string alone = bits_of_processes(runtime, document, 1);
    const Workspace workspace;
    EXPECT_EQ(bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder),
              alone);
    for (const std::int64_t processes : {2, 3})
      EXPECT_EQ(bits_of_processes(runtime, document, processes), alone) << change << processes;
  }
}

/// One process asks for a stop at step 9; then the run is resumed.
std::string bits_stopped_and_resumed(const Runtime& runtime, const nlohmann::json& document,
                                     std::int64_t stopped, std::int64_t before,
                                     std::int64_t after) {
  const Workspace workspace;
  std::stop_source stop;
  std::filesystem::path folder;
  const auto stopping = at_ranks(before, [&](Communicator& communicator) {
    const Workspace own;
    RunOptions options = communicator.rank() == 0 ? workspace.options() : own.options();
    options.communicator = &communicator;
    options.hooks.on_step = [&](const FitId&, const StepProgress& progress) {
      if (progress.step >= 9)
        stop.request_stop();
    };
    if (communicator.rank() == stopped)
      options.stop = stop.get_token();
    run_workflow(runtime, runtime.resolve(document), options);
  });
  EXPECT_THAT(stopping, Each(::testing::HasSubstr("stopped"))) << "in every process";
  folder = *std::filesystem::directory_iterator(workspace.folder() / "runs");
  const auto errors = at_ranks(after, [&](Communicator& communicator) {
    const Workspace own;
    RunOptions options = own.options();
    options.communicator = &communicator;
    resume_run(runtime, communicator.rank() == 0 ? folder : "nowhere", options);
  });
  EXPECT_THAT(errors, Each(""));
  return bits_of(folder);
}

TEST(SharedRun, IsStoppedByAnyProcessAndResumedByAnyNumber) {
  const Runtime runtime;
  nlohmann::json document = in_four_shards({{"model", {{"norm", "batch"}}}});
  document["training"]["epochs"] = 40;
  document["training"].erase("early_stopping");
  const std::string whole = bits_of_processes(runtime, document, 1);

  EXPECT_EQ(bits_stopped_and_resumed(runtime, document, 0, 2, 3), whole);
  EXPECT_EQ(bits_stopped_and_resumed(runtime, document, 1, 3, 1), whole);
  EXPECT_EQ(bits_stopped_and_resumed(runtime, document, 0, 1, 4), whole);
}

TEST(SharedRun, SearchesWithTheSameTrials) {
  const Runtime runtime;
  const nlohmann::json document = in_four_shards(
      {{"search",
        {{"space", {{"optimizer.learning_rate", {{"log_uniform", {0.001, 0.1}}}}}},
         {"trials", 4},
         {"tuner", "random"},
         {"objective", "val_loss"},
         {"pruner", {{"use", "asha"}, {"min_resource", 2}, {"reduction_factor", 2}}}}}});
  const std::string alone = bits_of_processes(runtime, document, 1);

  EXPECT_EQ(bits_of_processes(runtime, document, 2), alone);
}

TEST(SharedRun, KeepsItsFolderWhereAProcessIsLostBeforeTheFirstStep) {
  const Runtime runtime;
  const Workspace workspace;
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    if (communicator.rank() == 1)
      return;
    RunOptions options = workspace.options();
    options.communicator = &communicator;
    run_workflow(runtime, runtime.resolve(in_four_shards(nlohmann::json::object())), options);
  });
  EXPECT_THAT(errors.front(), ::testing::HasSubstr("rank 1"));
  const std::filesystem::path folder =
      *std::filesystem::directory_iterator(workspace.folder() / "runs");
  resume_run(runtime, folder, workspace.options());
  EXPECT_TRUE(std::filesystem::exists(folder / "result.json"));
}

TEST(SharedRun, RefusesProcessesWithAnotherDocument) {
  const Runtime runtime;
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    const Workspace workspace;
    RunOptions options = workspace.options();
    options.communicator = &communicator;
    const nlohmann::json document =
        in_four_shards({{"seed", 11 + static_cast<int>(communicator.rank())}});
    run_workflow(runtime, runtime.resolve(document), options);
  });

  EXPECT_THAT(errors,
              Each(::testing::AllOf(::testing::HasSubstr("different conditions"),
                                    ::testing::HasSubstr("/seed was 11 and is now 12 in rank 1"))));
}

}  // namespace
}  // namespace treadle
