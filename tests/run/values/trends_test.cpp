// A run that watches itself: a flow shows a tag, its trends drop the rate, unfreeze, and stop.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include <ATen/ops/equal.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/core/history/history.h>
#include <treadle/tensor/safetensors.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::bits_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Impatient;
using testing::read_file;
using ::testing::StartsWith;
using testing::watching_runtime;
using testing::Workspace;
namespace fs = std::filesystem;

/// Its rate is so small that nothing gets better: everything stalls.
json stalling() {
  return json::parse(R"({
    "treadle": 1, "name": "stalling", "seed": 3, "precision": "float64",
    "data": {"use": "moons", "rows": 96, "noise": 0.2},
    "model": {"use": "flow", "log": [{"tag": "encoded", "reduction": "norm"}, {"tag": "heads", "reduction": "mean"}], "flow": [
      {"use": "dense", "out_features": 6, "tag": "encoded", "name": "encoder"}, "tanh",
      {"use": "split", "branches": [[{"use": "dense", "out_features": 4}], [{"use": "dense", "out_features": 4}, {"use": "dropout", "p": 0.3}]]},
      {"use": "tag_group", "group": "heads"},
      {"use": "merge", "with": "add"}, "head"
    ]},
    "optimizer": {"use": "adamw", "learning_rate": 1e-9, "weight_decay": 0},
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 30, "batch_size": 16, "checkpoint": {"every": "4st"},
      "callbacks": [
        {"use": "scale_learning_rate", "when": {"monitor": "encoded", "stalled": [2, 0.5]}, "factor": 0.1, "times": 1},
        {"use": "freeze", "parameters": ["encoded"], "until": {"monitor": ["train_loss", "val_loss"], "stalled": [3, 0.5]}},
        {"use": "stop", "when": {"monitor": "val_loss", "converged": [4, 0.5]}}
      ]
    },
    "validation": {"use": "hold_out"},
    "resources": {"workers": 2, "shards": 2}
  })");
}

fs::path run(const Runtime& runtime, const json& document, const Workspace& workspace) {
  return run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
}

std::vector<json> events_of(const fs::path& run, const std::string& kind) {
  std::ifstream file(run / "events.jsonl");
  std::vector<json> events;
  for (std::string line; std::getline(file, line);) {
    json event = json::parse(line);
    if (event.at("event") == kind)
      events.push_back(std::move(event));
  }
  return events;
}

TEST(Trends, DropTheRateThenUnfreezeThenStop) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path folder = run(runtime, stalling(), workspace);

  const std::vector<EpochSummary> rows = read_history(folder).at(0).epochs;
  ASSERT_EQ(rows.size(), 9U);
  EXPECT_THAT(rows[1].decisions,
              ElementsAre("learning rate times 0.1: encoded stalled for 2 epochs"));
  EXPECT_THAT(rows[4].decisions,
              ElementsAre("unfrozen encoded: train_loss and val_loss stalled for 3 epochs"));
  EXPECT_THAT(rows[8].decisions, ElementsAre("stopped: val_loss converged for 4 epochs"));
  // The schedule "watched" halves the rate over 150 steps; an epoch has 5.
  EXPECT_DOUBLE_EQ(rows[1].learning_rate, 1e-9 * (1 - 0.5 * 9 / 150));
  EXPECT_DOUBLE_EQ(rows[2].learning_rate, 1e-10 * (1 - 0.5 * 14 / 150));
  const json result = json::parse(read_file(folder / "result.json"));
  EXPECT_EQ(result.at("stop_reason"), "val_loss converged for 4 epochs");
  EXPECT_EQ(result.at("total_epochs"), 9);
  std::vector<std::string> notes;
  for (const json& event : events_of(folder, "noted"))
    notes.push_back(event.at("text"));
  EXPECT_THAT(notes, ::testing::Contains(
                         "final, epoch 2: learning rate times 0.1: encoded stalled for 2 epochs"));
}

TEST(Trends, AreTheSameNumbersInHistoryEventsAndReport) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path folder = run(runtime, stalling(), workspace);

  const std::vector<EpochSummary> rows = read_history(folder).at(0).epochs;
  const Trend encoded = trend_of(rows, "encoded");
  ASSERT_EQ(encoded.size(), rows.size());
  EXPECT_GT(encoded.min(), 0);
  EXPECT_TRUE(encoded.stalled(5, 0.5));
  const std::vector<json> events = events_of(folder, "epoch_completed");
  ASSERT_EQ(events.size(), rows.size());
  const std::string page = read_file(folder / "report.html");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(events[i].at("logged").at("encoded").get<double>(), encoded.values()[i]);
    EXPECT_THAT(page, HasSubstr("," + json(encoded.values()[i]).dump() + ","));
  }
  EXPECT_THAT(page, HasSubstr("\"log.encoded\",\"log.heads_0\",\"log.heads_1\""));
  EXPECT_THAT(page, HasSubstr("unfrozen encoded: train_loss and val_loss stalled for 3 epochs"));
  EXPECT_THAT(read_file(folder / "history.csv"),
              HasSubstr(",log.encoded,log.heads_0,log.heads_1,decisions,best,"));
}

TEST(Trends, GiveTheSameBitsForAnyNumberOfWorkers) {
  const Runtime runtime = watching_runtime();
  const auto bits = [&](int workers, int shards) {
    const Workspace workspace;
    json document = stalling();
    document["resources"] = {{"workers", workers}, {"shards", shards}};
    return bits_of(run(runtime, document, workspace));
  };
  const std::string once = bits(1, 1);
  EXPECT_EQ(bits(3, 1), once);
  const std::string in_shards = bits(1, 3);
  EXPECT_EQ(bits(3, 3), in_shards);
  EXPECT_NE(in_shards, once) << "what is logged is logged of each shard";
}

TEST(Trends, AreThoseOfACompiledFlow) {
  const Runtime runtime = watching_runtime();
  json document = stalling();
  const auto rows_of = [&] {
    const Workspace workspace;
    return read_history(run(runtime, document, workspace)).at(0).epochs;
  };
  const auto dynamic = rows_of();
  document["model"]["execution"] = "compiled";

  const auto compiled = rows_of();

  ASSERT_EQ(compiled.size(), dynamic.size());
  for (std::size_t i = 0; i < dynamic.size(); ++i) {
    EXPECT_EQ(compiled[i].decisions, dynamic[i].decisions);
    ASSERT_EQ(compiled[i].logged.size(), dynamic[i].logged.size());
    for (std::size_t v = 0; v < dynamic[i].logged.size(); ++v)  // float64, kernels may be fused
      EXPECT_NEAR(compiled[i].logged[v].value, dynamic[i].logged[v].value, 1e-12);
  }
}

TEST(Trends, ResumeToTheSameBits) {
  const Runtime runtime = watching_runtime();
  const ResolvedWorkflow workflow = runtime.resolve(stalling());
  std::string whole;
  {
    const Workspace workspace;
    whole = bits_of(run_workflow(runtime, workflow, workspace.options()).folder);
  }
  // 5 steps an epoch: within the first, before and after each decision, within the last.
  for (const int steps : {3, 9, 10, 12, 24, 26, 44}) {
    const Workspace workspace;
    RunOptions options = workspace.options();
    const Impatient impatient(runtime, steps);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, workflow, options), Interrupted);
    const fs::path folder = fs::directory_iterator(options.output)->path();

    resume_run(runtime, folder, workspace.options());

    EXPECT_EQ(bits_of(folder), whole) << "stopped after " << steps << " steps";
  }
}

// A kill leaves a history, and perhaps decisions, that are ahead of the last checkpoint.
TEST(Trends, AreDecidedAgainAfterAKill) {
  const Runtime runtime = watching_runtime();
  const ResolvedWorkflow workflow = runtime.resolve(stalling());
  const Workspace workspace;
  const std::string whole = bits_of(run_workflow(runtime, workflow, workspace.options()).folder);
  const Workspace other;
  RunOptions options = other.options();
  const Impatient impatient(runtime, 26);  // the unfreezing was after step 25
  options.stop = impatient.token();
  EXPECT_THROW(run_workflow(runtime, workflow, options), Interrupted);
  const fs::path folder = fs::directory_iterator(options.output)->path();
  std::vector<fs::path> checkpoints;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints" / "final")) {
    if (entry.is_directory())
      checkpoints.push_back(entry.path());
  }
  ASSERT_GE(checkpoints.size(), 2U);
  fs::remove_all(*std::max_element(checkpoints.begin(), checkpoints.end()));
  ASSERT_FALSE(read_history(folder).at(0).epochs.at(4).decisions.empty());

  resume_run(runtime, folder, other.options());

  EXPECT_EQ(bits_of(folder), whole);
  EXPECT_EQ(events_of(folder, "epoch_completed").size(), 9U);
}

TEST(Trends, FrozenParametersStayUntilTheyAreUnfrozen) {
  const Runtime runtime = watching_runtime();
  json still = stalling();
  still["training"]["callbacks"][1].erase("until");
  const auto weights = [&](const json& document) {
    const Workspace workspace;
    return read_safetensors(run(runtime, document, workspace) / "model.safetensors").tensors;
  };
  const auto initial =
      untrained_model(runtime, runtime.resolve(still))->named_parameters()["encoder.weight"];

  const auto frozen = weights(still);
  const auto unfrozen = weights(stalling());

  EXPECT_TRUE(at::equal(frozen.at("encoder.weight"), initial));
  EXPECT_FALSE(at::equal(unfrozen.at("encoder.weight"), initial));
  EXPECT_FALSE(at::equal(frozen.at("head_0.weight"), unfrozen.at("head_0.weight")))
      << "the others are trained either way, longer with an unfreezing";
}

TEST(Trends, OfWhatARefitDoesNotKnowAreLeftOutOfIt) {
  const Runtime runtime = watching_runtime();
  json document = stalling();
  document["validation"] = {{"use", "k_fold"}, {"folds", 2}};
  document["training"]["epochs"] = 3;
  const Workspace workspace;
  const fs::path folder = run(runtime, document, workspace);

  std::vector<std::string> notes;
  for (const json& event : events_of(folder, "noted"))
    notes.push_back(event.at("text"));
  EXPECT_THAT(notes,
              ::testing::Contains("final has no validation rows; left out: unfreezing encoded when "
                                  "train_loss and val_loss stalled for 3 epochs"));
  for (const TrainingCurve& curve : read_history(folder)) {
    ASSERT_EQ(curve.epochs.size(), 3U) << curve.fit;
    EXPECT_EQ(curve.epochs[1].decisions.size(), 1U) << curve.fit;
  }
}

std::string mistake_in_change(const json& changes) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  json document = stalling();
  document.merge_patch(changes);
  try {
    run(runtime, document, workspace);
  } catch (const Error& error) {
    EXPECT_FALSE(fs::exists(workspace.options().output) &&
                 !fs::is_empty(workspace.options().output));
    return error.what();
  }
  return "nothing was thrown";
}

json callbacks(const json& callback) {
  return {{"training", {{"callbacks", {callback}}}}};
}

TEST(Trends, MistakesInNamesAreFoundBeforeTheFirstStep) {
  EXPECT_EQ(mistake_in_change({{"model", {{"log", {"encode"}}}}}),
            "/model/log: the graph has no tag and no node \"encode\"; did you mean \"encoded\" or "
            "\"encoder\"?");
  EXPECT_EQ(mistake_in_change({{"model", {{"log", {"encoded"}}}}}),
            "/model/log: \"encoded\" is [B, 6]; say how its elements become one number, mean, sum, "
            "max, min or norm: {\"tag\": \"encoded\", \"reduction\": \"mean\"}");
  EXPECT_THAT(mistake_in_change(callbacks(
                  {{"use", "stop"}, {"when", {{"monitor", "acuracy"}, {"converged", {4, 1}}}}})),
              AllOf(StartsWith("/training/callbacks/0/when/monitor: there is no \"acuracy\""),
                    HasSubstr("train_loss, learning_rate, val_loss, accuracy, encoded, heads_0, "
                              "heads_1; did you mean \"accuracy\"?")));
  EXPECT_THAT(mistake_in_change({{"training", {{"freeze", {{"parameters", {"encodet"}}}}}}}),
              AllOf(HasSubstr("/training/freeze/parameters: \"encodet\" names no parameter of the "
                              "model, which has encoder.weight, encoder.bias, "),
                    ::testing::EndsWith("; did you mean \"encoded\"?")));
  EXPECT_EQ(mistake_in_change(callbacks({{"use", "freeze"}, {"parameters", {"heads"}}})),
            "nothing was thrown");
  EXPECT_EQ(mistake_in_change(callbacks({{"use", "freeze"}, {"parameters", {"*"}}})),
            "/training/callbacks/0/parameters: this leaves nothing to train");
  json frozen = {
      {"model",
       {{"flow", {{{"use", "head"}, {"frozen", true}}}}, {"log", json()}, {"outputs", json()}}},
      {"training", {{"callbacks", json::array()}}}};
  EXPECT_THAT(mistake_in_change(frozen), HasSubstr("all parameters of the model are frozen"));
}

}  // namespace
}  // namespace treadle
