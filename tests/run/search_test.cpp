// A search within a run: its trials, the model of the best, and what a document may not ask for.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/host/run/predictor.h>

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

Json document_of(const std::string& tuner = "tpe") {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "moons", "seed": 11,
    "data": {"use": "moons", "rows": 96, "noise": 0.2},
    "transforms": ["standardize"],
    "model": {"use": "mlp", "hidden": [4], "dropout": 0.1},
    "loss": "cross_entropy",
    "optimizer": {"use": "sgd", "learning_rate": 0.01},
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 2, "batch_size": 16, "checkpoint": {"every": "3st"}},
    "validation": {"use": "hold_out", "fraction": 0.25},
    "search": {
      "trials": 9, "parallel": 3,
      "space": {
        "optimizer": {"choice": [{"use": "sgd", "learning_rate": 0.1}, {"use": "adamw"}]},
        "optimizer.momentum": {"uniform": [0, 0.9], "when": {"optimizer": [{"use": "sgd", "learning_rate": 0.1}]}},
        "model.hidden": {"choice": [[4], [16], [8, 8]]},
        "training.batch_size": {"log_int": [8, 32]}
      }},
    "resources": {"workers": 1}})");
  document["search"]["tuner"] = {{"use", tuner}};
  return document;
}

RunOutcome run(const Workspace& workspace, const Json& document) {
  const Runtime runtime = watching_runtime();
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

double value_of(const Json& search, std::size_t trial, std::size_t objective = 0) {
  return search.at("trials").at(trial).at("values").at(objective).get<double>();
}

/// All that must be equal between equal searches.
std::string study_of(const RunOutcome& outcome) {
  return outcome.result.at("search").dump() + bits_of(outcome.folder);
}

class SearchBits : public ::testing::TestWithParam<std::string> {};

TEST_P(SearchBits, AreTheSameForAnyWorkersAndAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  Json document = document_of(GetParam());
  const Workspace one;
  const std::string expected = study_of(run(one, document));
  for (const int workers : {2, 3}) {
    document["resources"]["workers"] = workers;
    const Workspace workspace;
    EXPECT_EQ(study_of(run(workspace, document)), expected) << workers << " workers";
  }
  for (const int steps : {2, 37, 80}) {
    const Workspace workspace;
    EXPECT_EQ(study_of(stopped_and_resumed(runtime, workspace, document, steps)), expected)
        << "stopped after " << steps << " steps";
  }
}

INSTANTIATE_TEST_SUITE_P(Searches, SearchBits, ::testing::Values("random", "tpe"),
                         [](const auto& info) { return info.param; });

TEST(Search, TrainsTheBestTrialsDocumentAsARunOfItsOwnWould) {
  const Workspace workspace;
  const RunOutcome found = run(workspace, document_of());
  const Json& search = found.result.at("search");
  double best = value_of(search, 0);
  for (std::size_t trial = 0; trial < search.at("trials").size(); ++trial)
    best = std::min(best, value_of(search, trial));
  EXPECT_EQ(search.at("trials").size(), 9U);
  EXPECT_EQ(value_of(search, search.at("best_trial").get<std::size_t>()), best);
  EXPECT_EQ(search.at("objectives")[0].at("direction"), "minimize");

  const Runtime runtime = watching_runtime();
  const Workspace alone;
  const RunOutcome again =
      run_workflow(runtime, runtime.read(found.folder / "best.json"), alone.options());

  EXPECT_FALSE(again.result.contains("search"));
  EXPECT_EQ(read_file(again.folder / "model.safetensors"),
            read_file(found.folder / "model.safetensors"));
  EXPECT_EQ(again.result.at("validation").at("loss"), found.result.at("validation").at("loss"));
}

// Whoever uses the model builds it by the best trial's document, whatever the run's says.
TEST(Search, LeavesAModelThatPredicts) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["search"]["space"] = {{"model.hidden", {{"choice", {{6}, {7}}}}}};

  const fs::path folder = run(workspace, document).folder;

  const Runtime runtime = watching_runtime();
  EXPECT_NO_THROW(Predictor::load(runtime, folder));
  const Json best = Json::parse(read_file(folder / "best.json"));
  EXPECT_THAT(best.at("model").at("hidden").dump(), ::testing::AnyOf("[6]", "[7]"));
}

TEST(Search, EndsWithTheGridAndComparesByTheMeanOfFolds) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["validation"] = {{"use", "k_fold"}, {"folds", 2}};
  document["metrics"] = {"accuracy"};
  document["search"]["objective"] = "accuracy";
  document["search"]["space"] = {{"model.hidden", {{"choice", {{4}, {16}}}}}};

  const RunOutcome outcome = run(workspace, document);

  const Json& search = outcome.result.at("search");
  ASSERT_EQ(search.at("trials").size(), 2U);
  EXPECT_EQ(search.at("objectives")[0].at("direction"), "maximize");
  const double first = value_of(search, 0);
  const double second = value_of(search, 1);
  EXPECT_EQ(search.at("best_trial"), second > first ? 1 : 0);
  // The best run has the same folds, but random streams of its own.
  EXPECT_EQ(outcome.result.at("fold_results").size(), 2U);
  EXPECT_THAT(read_file(outcome.folder / "history.csv"),
              ::testing::AllOf(HasSubstr("trials/1/fold-2,2,"), HasSubstr("\nfinal,")));
}

TEST(Search, CountsATrainingThatDivergesAsFailed) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["search"]["space"] = {{"optimizer.learning_rate", {{"choice", {1e30, 0.1}}}}};

  const Json search = run(workspace, document).result.at("search");

  EXPECT_EQ(search.at("trials")[0].at("state"), "failed");
  EXPECT_THAT(search.at("trials")[0].at("error").get<std::string>(), HasSubstr("trials/0"));
  EXPECT_EQ(search.at("best_trial"), 1);
}

// The second fold would begin with the weights of the first, which has none.
TEST(Search, GoesOnWithoutTheFoldsThatFollowOneThatFails) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["validation"] = Json::parse(R"({"use": "walk_forward", "start": 40, "test_size": 10,
    "retrain_every": 2, "validation_size": 8, "warm_start": true})");
  document["search"]["space"] = {{"optimizer.learning_rate", {{"choice", {1e30, 0.1}}}}};

  const RunOutcome outcome = run(workspace, document);

  const Json& search = outcome.result.at("search");
  EXPECT_EQ(search.at("trials")[0].at("state"), "failed");
  EXPECT_EQ(search.at("best_trial"), 1);
  EXPECT_THAT(read_file(outcome.folder / "history.csv"),
              ::testing::AllOf(HasSubstr("trials/1/"), ::testing::Not(HasSubstr("trials/0/"))));
}

TEST(Search, FailsWhereAllTrialsDo) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["search"]["space"] = {{"optimizer.learning_rate", {{"choice", {1e30, 1e31}}}}};

  try {
    run(workspace, document);
    FAIL() << "nothing was learned";
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("all 2 trials of the search failed, the first with: "));
  }
}

struct Mistake {
  std::string name;
  Json change;  // of "search"
  std::string message;
};
std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.name;
}
class SearchMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(SearchMistakes, AreNamedWhereTheyStand) {
  const Workspace workspace;
  Json document = document_of();
  document["search"].update(GetParam().change);

  try {
    run(workspace, document);
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

Json space_of(const std::string& path, const Json& dimension) {
  return {{"space", {{path, dimension}}}};
}

INSTANTIATE_TEST_SUITE_P(
    Searches, SearchMistakes,
    ::testing::Values(
        Mistake{"UnknownPath", space_of("optimizer.learning_rat", {{"uniform", {0.1, 1}}}),
                "/search/space/optimizer.learning_rat: with 0.1: "},
        Mistake{"OutsideTheSchema", space_of("model.dropout", {{"uniform", {0.1, 2}}}),
                "/search/space/model.dropout: with 2"},
        Mistake{"WhatAllTrialsShare", space_of("data.rows", {{"int", {10, 20}}}),
                "/search/space/data.rows: \"data\" is the same for all trials"},
        Mistake{"UnknownObjective",
                {{"objective", "acuracy"}},
                "/search/objective: no number of the validation is called \"acuracy\"; there are "
                "val_loss, parameter_count, accuracy"},
        Mistake{"EmptySpace", {{"space", Json::object()}}, "/search/space"},
        Mistake{"UnknownTuner", {{"tuner", "tpr"}}, "/search/tuner"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace treadle
