// A run that several processes train together, here threads: the bits of one process.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <latch>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/system/host_name.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/host/run/shared_conditions.h>
#include <treadle/testing/distributed/thread_communicator.h>

#include "watched_runs.h"
#include "workspace.h"

namespace treadle {
namespace {

using testing::at_ranks;
using testing::bits_of;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::moons;
using testing::StepWatch;
using testing::watching_runtime;
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

// The loss of a row of the last shard has no place in float32: one process alone computes it.
TEST(SharedRun, DivergesInEveryProcessAtTheStepThatOneShardMakesNotFinite) {
  const Runtime runtime;
  const Workspace data;
  std::ofstream table(data.folder() / "rows.csv");
  table << "x,y\n";
  for (int row = 0; row < 64; ++row)
    table << row % 7 << ',' << (row == 31 ? "1e30" : std::to_string(row % 5)) << '\n';
  table.close();
  nlohmann::json document = in_four_shards({{"model", {{"dropout", 0}}}});
  document["data"] = {
      {"use", "csv"}, {"path", (data.folder() / "rows.csv").string()}, {"target", "y"}};
  document["transforms"] = nlohmann::json::array();
  document["training"] = {
      {"use", "standard"}, {"epochs", 1}, {"batch_size", 16}, {"sampler", "sequential"}};
  document.erase("validation");
  const auto diverge = [&](std::int64_t processes) {
    return at_ranks(processes, [&](Communicator& communicator) {
      const Workspace workspace;
      RunOptions options = workspace.options();
      options.communicator = &communicator;
      run_workflow(runtime, runtime.resolve(document), options);
    });
  };
  const std::string alone = diverge(1).front();

  EXPECT_THAT(alone, ::testing::AllOf(HasSubstr("NaN or infinite"), HasSubstr("step 2")));
  EXPECT_THAT(diverge(2), Each(alone));
  EXPECT_THAT(diverge(4), Each(alone));
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
  EXPECT_THAT(stopping, Each(HasSubstr("stopped"))) << "in every process";
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

/// A teacher whose answers a student learns, in `folder`.
Pipeline teacher_and_student(const std::filesystem::path& folder) {
  std::ofstream rows(folder / "rows.csv");
  std::ofstream questions(folder / "questions.csv");
  rows << "a,b,y\n";
  questions << "a,b\n";
  for (int i = 0; i < 60; ++i) {
    const double a = i * 37 % 50 / 25.0 - 1;
    const double b = i * 11 % 40 / 20.0 - 1;
    rows << a << ',' << b << ',' << a * b + a << '\n';
    questions << b << ',' << a << '\n';
  }
  return Pipeline::read(Document::from_json(nlohmann::json::parse(R"({
    "treadle": 1, "name": "distil", "seed": 3,
    "data": {"use": "csv", "path": "rows.csv", "target": "y"},
    "model": {"use": "mlp", "hidden": [8]},
    "training": {"use": "standard", "epochs": 4, "batch_size": 8, "checkpoint": {"every": "3st"}},
    "resources": {"workers": 1, "shards": 4},
    "stages": {
      "student": {"run": {"data": {"path": "stage:answers/predictions.csv", "columns": ["a", "b"]}}},
      "answers": {"predict": {"model": "stage:teacher", "data": "questions.csv", "keep": ["a", "b"]}},
      "teacher": {"run": {}}
    }})"),
                                            folder));
}

std::string bits_of(const PipelineOutcome& outcome) {
  std::string bits;
  for (const StageResult& stage : outcome.result.stages)
    bits += stage.stage + (stage.kind == "run" ? testing::bits_of(stage.folder) : "");
  return bits;
}

TEST(SharedRun, OfStagesGivesTheBitsOfOneProcessAndGoesOnWithAnyNumber) {
  const Runtime runtime;
  const Workspace data;
  const Pipeline pipeline = teacher_and_student(data.folder());
  const Workspace alone;
  const std::string whole = bits_of(run_pipeline(runtime, pipeline, alone.options()));

  const Workspace workspace;
  std::stop_source stop;
  const auto stopping = at_ranks(2, [&](Communicator& communicator) {
    const Workspace own;
    RunOptions options = communicator.rank() == 0 ? workspace.options() : own.options();
    options.communicator = &communicator;
    // Events come late: after the teacher, whose run waits for this one.
    options.hooks.on_fit = [&](const FitId&, const FitSummary&) { stop.request_stop(); };
    if (communicator.rank() == 1)
      options.stop = stop.get_token();
    run_pipeline(runtime, pipeline, options);
  });
  EXPECT_THAT(stopping, ::testing::SizeIs(2));
  EXPECT_THAT(stopping, Each(::testing::HasSubstr("stopped"))) << "in every process";
  const auto folder = *std::filesystem::directory_iterator(workspace.folder() / "runs");
  std::string resumed;
  std::vector<bool> taken_over;
  const auto errors = at_ranks(3, [&](Communicator& communicator) {
    const Workspace own;
    RunOptions options = own.options();
    options.communicator = &communicator;
    const std::filesystem::path its = communicator.rank() == 0 ? folder.path() : "nowhere";
    EXPECT_TRUE(is_pipeline_folder(its, &communicator));
    const PipelineOutcome outcome = resume_pipeline(runtime, its, options);
    if (communicator.rank() != 0)
      return;
    resumed = bits_of(outcome);
    for (const StageResult& stage : outcome.result.stages)
      taken_over.push_back(stage.reused);
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(taken_over, ::testing::ElementsAre(true, false, false));
  EXPECT_EQ(resumed, whole);
}

// The memory of rank 0 decides, by steps that the others do not make.
TEST(SharedRun, TrainsEverywhereWithTheBatchSizeThatRankZeroFinds) {
  const Runtime runtime = watching_runtime();
  const auto trained = [&](const nlohmann::json& batch_size, std::int64_t processes) {
    nlohmann::json document = in_four_shards({{"training", {{"batch_size", batch_size}}}});
    document["schedule"] = "watched";
    document["validation"] = {{"use", "hold_out"}, {"fraction", 0.25}};
    std::atomic<int> steps = 0;
    const StepWatch watch(runtime, [&] { ++steps; });
    std::string bits = bits_of_processes(runtime, document, processes);
    return std::pair(std::move(bits), steps.load());
  };
  const auto found_alone = trained("auto", 1);
  const auto given_alone = trained(128, 1);
  const auto found = trained("auto", 2);
  const auto given = trained(128, 2);

  EXPECT_EQ(found.first, given_alone.first);
  EXPECT_GT(found_alone.second, given_alone.second) << "a size is looked for by steps";
  EXPECT_EQ(found.second - given.second, found_alone.second - given_alone.second);
}

nlohmann::json shared_search(const nlohmann::json& settings) {
  nlohmann::json document =
      in_four_shards({{"search",
                       {{"space", {{"optimizer.learning_rate", {{"log_uniform", {0.001, 0.1}}}}}},
                        {"trials", 2},
                        {"tuner", "random"},
                        {"objective", "val_loss"}}}});
  document["search"].update(settings);
  document["resources"]["divide"] = "shards";
  return document;
}

TEST(SharedRun, RefusesSearchesThatEachProcessWouldDecideForItself) {
  const Runtime runtime;
  const Workspace workspace;
  const std::pair<nlohmann::json, const char*> refused[] = {
      {{{"budget", {{"time", "1h"}}}}, "cannot keep search.budget.time"},
      {{{"storage", {{"use", "journal"}, {"location", (workspace.folder() / "study").string()}}}},
       "cannot share a study as well (search.storage)"},
  };
  for (const auto& [settings, words] : refused) {
    std::atomic<int> usage_errors = 0;
    const nlohmann::json document = shared_search(settings);
    const auto errors = at_ranks(2, [&](Communicator& communicator) {
      const Workspace own;
      RunOptions options = own.options();
      options.communicator = &communicator;
      try {
        run_workflow(runtime, runtime.resolve(document), options);
      } catch (const UsageError&) {
        ++usage_errors;
        throw;
      }
    });

    EXPECT_THAT(errors, ::testing::SizeIs(2)) << words;
    EXPECT_THAT(errors, Each(::testing::AllOf(HasSubstr(words), HasSubstr("search.parallel"))));
    EXPECT_EQ(usage_errors, 2) << words;
  }
  EXPECT_FALSE(std::filesystem::exists(workspace.folder() / "study.db"));
}

/// A run as rank 0 has it, with its notes.
struct Traced {
  RunOutcome outcome;
  nlohmann::json trace;
  std::vector<std::string> notes;
};

Traced traced(const Runtime& runtime, std::int64_t processes) {
  Traced result;
  const auto errors = at_ranks(processes, [&](Communicator& communicator) {
    const Workspace workspace;
    RunOptions options = workspace.options();
    options.communicator = &communicator;
    if (communicator.rank() == 0) {
      options.trace = workspace.folder() / "trace.json";
      options.hooks.on_note = [&](const std::string& text) { result.notes.push_back(text); };
    }
    RunOutcome outcome =
        run_workflow(runtime, runtime.resolve(in_four_shards(nlohmann::json::object())), options);
    if (communicator.rank() == 0) {
      result.outcome = std::move(outcome);
      result.trace = nlohmann::json::parse(std::ifstream(options.trace));
    }
  });
  EXPECT_THAT(errors, Each(""));
  return result;
}

TEST(SharedRun, ShowsHostsAndTheShareOfExchanges) {
  const Runtime runtime;
  const Traced shared = traced(runtime, 3);

  const std::vector<RankTime>& ranks = shared.outcome.result.time.ranks;
  ASSERT_EQ(ranks.size(), 3U);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    EXPECT_EQ(ranks[i].host, host_name());
    EXPECT_GT(ranks[i].exchange_seconds, 0);
    EXPECT_GT(ranks[i].waiting_share, 0);
    EXPECT_LE(ranks[i].waiting_share, 1);
    EXPECT_NE(ranks[i].exchange_seconds, ranks[(i + 1) % 3].exchange_seconds) << "of each rank";
  }
  EXPECT_EQ(ranks.front().exchange_seconds, shared.outcome.result.time.phases.at("exchange"));
  EXPECT_EQ(shared.notes.front(), "3 processes train together: ranks 0-2 on " + host_name());
  EXPECT_EQ(shared.trace.at("otherData").at("rank"), 0);
  EXPECT_EQ(shared.trace.at("otherData").at("hosts").size(), 3U);
  EXPECT_THAT(shared.trace.dump(), ::testing::HasSubstr(R"("name":"exchange")"));
}

TEST(SharedRun, OfOneProcessMentionsNoRanks) {
  const Runtime runtime;
  const Traced alone = traced(runtime, 1);

  EXPECT_FALSE(to_json(alone.outcome.result).at("time").contains("ranks"));
  EXPECT_FALSE(alone.trace.at("otherData").contains("hosts"));
  EXPECT_THAT(alone.notes, Each(::testing::Not(::testing::HasSubstr("train together"))));
}

TEST(SharedRun, NamesTheConditionsThatDifferBeforeItHasData) {
  const Runtime runtime;
  const nlohmann::json document =
      runtime.resolve(in_four_shards(nlohmann::json::object())).resolved;
  const nlohmann::json first = shared_conditions(runtime, document, "gloo");
  EXPECT_THAT(shared_differences(first, first, 1), ::testing::IsEmpty());
  if (runtime.schemas().find("communicator", "gloo").schema != nullptr) {
    EXPECT_THAT(shared_conditions(runtime, nullptr, "gloo").at("environment").at("plugins").dump(),
                ::testing::HasSubstr("gloo"));
  }

  nlohmann::json its = first;
  its["environment"]["cpu_capability"] = "ABACUS";
  its["environment"]["plugins"][0]["version"] = "9.9.9";
  its["document"]["seed"] = 99;

  const std::vector<std::string> differences = shared_differences(first, its, 4);
  ASSERT_EQ(differences.size(), 3U);
  EXPECT_THAT(differences[0], ::testing::AllOf(::testing::HasSubstr("and ABACUS in rank 4"),
                                               ::testing::HasSubstr("ATEN_CPU_CAPABILITY")));
  EXPECT_THAT(differences[1], ::testing::HasSubstr("version 9.9.9"));
  EXPECT_THAT(differences[2], ::testing::HasSubstr("/seed was 11 and is now 99 in rank 4"));

  its = first;
  its["document"] = nullptr;
  EXPECT_THAT(shared_differences(first, its, 4),
              ::testing::ElementsAre("a document is given to rank 0 and none to rank 4: give the "
                                     "same command to all"));
}

TEST(SharedRun, KeepsItsFolderWhereAProcessIsLostBeforeTheFirstStep) {
  const Runtime runtime;
  const Workspace workspace;
  std::latch connected(1);
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    if (communicator.rank() == 1)
      return connected.wait();
    connected.count_down();
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

  EXPECT_THAT(errors, Each(::testing::AllOf(HasSubstr("different conditions"),
                                            HasSubstr("/seed was 11 and is now 12 in rank 1"))));
}

}  // namespace
}  // namespace treadle
