// A search that ends with an ensemble: which trials are its members, that their mean is what is
// predicted, and that nothing else of the run changes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/run/predictor.h>
#include <treadle/host/run/state_folder.h>
#include <treadle/tensor/safetensors.h>

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

Json ensemble_document(const std::string& validation, const std::string& method = "mean") {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "moons", "seed": 3,
    "data": {"use": "moons", "rows": 120, "noise": 0.3},
    "transforms": ["standardize"],
    "model": {"use": "mlp", "hidden": [4]},
    "loss": "cross_entropy",
    "optimizer": {"use": "adamw", "learning_rate": 0.03},
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 6, "batch_size": 16, "checkpoint": {"every": "5st"}},
    "metrics": ["log_loss", "accuracy"],
    "search": {
      "tuner": "grid", "trials": 4, "objective": "log_loss", "ensemble": {"size": 8},
      "space": {"model.hidden": {"choice": [[12], [14], [16], [18]]}}},
    "resources": {"workers": 1}})");
  document["search"]["ensemble"]["method"] = method;
  document["validation"] = validation == "k_fold" ? Json{{"use", "k_fold"}, {"folds", 3}}
                                                  : Json{{"use", "hold_out"}, {"fraction", 0.3}};
  return document;
}

// Of ensemble_document(): 84 of its 120 rows train with hold_out, 80 in a fold, in batches of 16.
constexpr int kTrials = 4;
constexpr int kEpochs = 6;
constexpr int kStepsOfTrial = kEpochs * 6;
constexpr int kStepsOfFold = kEpochs * 5;
constexpr int kStepsOfRefit = kEpochs * 8;

RunOutcome run_search(const Workspace& workspace, const Json& document) {
  const Runtime runtime = watching_runtime();
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

Json ensemble_in(const fs::path& folder) {
  return Json::parse(read_file(folder / "ensemble.json"));
}

/// Equal between equal runs: the members and their weights, and everything else that is trained.
std::string ensemble_bits(const RunOutcome& outcome) {
  std::string bits = bits_of(outcome.folder) + read_file(outcome.folder / "ensemble.json");
  if (const auto& test = outcome.result.training.test)
    bits += std::to_string(test->metrics.at(0).value.value());
  const Json ensemble = ensemble_in(outcome.folder);
  for (const Json& member : ensemble.at("members")) {
    bits += read_file(outcome.folder / member.at("path").get<std::string>() / "model.safetensors");
  }
  return bits;
}

struct EnsembleCase {
  std::string validation;
  std::string method;
  int tested_seed = 0;  ///< one whose trials make an ensemble beside test rows; 0: no test rows
};

class Ensembles : public ::testing::TestWithParam<EnsembleCase> {
 protected:
  static Json document() {
    Json document = ensemble_document(GetParam().validation, GetParam().method);
    if (GetParam().tested_seed != 0) {
      document["seed"] = GetParam().tested_seed;
      document["validation"]["test_fraction"] = 0.2;
      document["data"]["rows"] = 170;  // as many train as otherwise
    }
    return document;
  }
};

TEST(Ensemble, PredictsTheWeightedMeanOfItsMembers) {
  const Workspace workspace;
  const RunOutcome outcome = run_search(workspace, ensemble_document("k_fold"));
  const Json ensemble = ensemble_in(outcome.folder);
  ASSERT_GE(ensemble.at("members").size(), 2U) << ensemble;
  EXPECT_EQ(to_json(*outcome.result.search).at("ensemble"), ensemble);

  const Runtime runtime = watching_runtime();
  const at::Tensor rows = at::rand({50, 2}) * 4 - 2;
  at::Tensor mean;
  double weights = 0;
  for (const Json& member : ensemble.at("members")) {
    const auto path = outcome.folder / member.at("path").get<std::string>();
    const at::Tensor part =
        Predictor::load(runtime, path).predict(rows).values * member.at("weight").get<double>();
    mean = mean.defined() ? mean + part : part;
    weights += member.at("weight").get<double>();
  }

  EXPECT_NEAR(weights, 1, 1e-12);
  EXPECT_TRUE(at::allclose(Predictor::load(runtime, outcome.folder).predict(rows).values, mean));
}

// The pool that scipy finds for predictions is in stacking_test.cpp; here, that it is the one used.
TEST(Ensemble, ThatIsStackedPoolsTheLogarithmsOfProbabilities) {
  const Workspace workspace;
  const RunOutcome outcome = run_search(workspace, ensemble_document("k_fold", "stacking"));
  const Json ensemble = ensemble_in(outcome.folder);
  ASSERT_GE(ensemble.at("members").size(), 2U) << ensemble;
  EXPECT_EQ(ensemble.at("pool"), Json("logarithmic"));

  const Runtime runtime = watching_runtime();
  const at::Tensor rows = at::rand({50, 2}) * 4 - 2;
  at::Tensor logits = at::tensor(ensemble.at("intercept").get<std::vector<double>>(), at::kDouble);
  for (const Json& member : ensemble.at("members")) {
    const auto path = outcome.folder / member.at("path").get<std::string>();
    logits = logits + Predictor::load(runtime, path).predict(rows).values.to(at::kDouble).log() *
                          member.at("weight").get<double>();
  }

  EXPECT_TRUE(at::allclose(Predictor::load(runtime, outcome.folder).predict(rows).values,
                           at::softmax(logits, 1).to(at::kFloat)));
}

TEST_P(Ensembles, HaveTheSameBitsForAnyWorkersAndAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  Json document = Ensembles::document();
  const Workspace one;
  const std::string expected = ensemble_bits(run_search(one, document));
  document["resources"]["workers"] = 3;
  const Workspace many;
  EXPECT_EQ(ensemble_bits(run_search(many, document)), expected);
  for (const int steps : {30, 100, 130}) {
    const Workspace workspace;
    EXPECT_EQ(ensemble_bits(stopped_and_resumed(runtime, workspace, document, steps)), expected)
        << "stopped after " << steps << " steps";
  }
}

TEST_P(Ensembles, ChangeNothingElseOfTheRun) {
  const Workspace with;
  const Workspace without;
  Json document = Ensembles::document();
  const RunOutcome ensemble = run_search(with, document);
  document["search"].erase("ensemble");

  const RunOutcome alone = run_search(without, document);

  EXPECT_EQ(read_file(ensemble.folder / "model.safetensors"),
            read_file(alone.folder / "model.safetensors"));
  EXPECT_EQ(read_file(ensemble.folder / "best.json"), read_file(alone.folder / "best.json"));
  EXPECT_FALSE(fs::exists(alone.folder / "ensemble.json"));
}

INSTANTIATE_TEST_SUITE_P(Validations, Ensembles,
                         ::testing::Values(EnsembleCase{"k_fold", "mean", 7},
                                           EnsembleCase{"hold_out", "mean", 7},
                                           EnsembleCase{"k_fold", "stacking"}),
                         [](const auto& info) {
                           return info.param.validation + "_" + info.param.method;
                         });

TEST_P(Ensembles, AreOneFileToPredictWith) {
  const Workspace workspace;
  const RunOutcome outcome = run_search(workspace, document());
  const fs::path file = workspace.folder() / "ensemble.safetensors";
  const Runtime runtime = watching_runtime();
  const at::Tensor rows = at::rand({50, 2});
  const at::Tensor expected = Predictor::load(runtime, outcome.folder).predict(rows).values;

  export_model(outcome.folder, file);
  fs::rename(outcome.folder, workspace.folder() / "gone");

  EXPECT_TRUE(Predictor::load(runtime, file).predict(rows).values.equal(expected));
}

TEST(Ensemble, OfOneSplitHasTheModelsOfItsTrialsAndTrainsNothing) {
  const Runtime runtime = watching_runtime();
  std::atomic<int> steps{0};
  const testing::StepWatch watch(runtime, [&] { ++steps; });
  const Workspace workspace;

  const RunOutcome outcome =
      run_workflow(runtime, runtime.resolve(ensemble_document("hold_out")), workspace.options());

  const Json ensemble = ensemble_in(outcome.folder);
  ASSERT_GE(ensemble.at("members").size(), 2U) << ensemble;
  EXPECT_EQ(steps, kTrials * kStepsOfTrial + kStepsOfTrial);
  for (const Json& member : ensemble.at("members")) {
    const std::string trial = "trials/" + member.at("trial").dump();
    const StateDict record = read_state_folder(outcome.folder / "fits" / trial);
    const NamedTensors weights =
        read_safetensors(outcome.folder / member.at("path").get<std::string>() /
                         "model.safetensors")
            .tensors;
    ASSERT_FALSE(weights.empty());
    for (const auto& [name, tensor] : weights)
      EXPECT_TRUE(tensor.equal(record.part("model").tensor(name))) << trial << ": " << name;
  }
}

/// 120 rows of two noisy moons; `part`: of each row, in turn, or of the test rows alone.
void write_rows(const fs::path& file, bool are_test_alone) {
  std::ofstream out(file);
  out << "a,b,y,part\n";
  std::mt19937 bits(5);
  std::normal_distribution<double> noise(0, 0.3);
  for (int i = 0; i < 120; ++i) {
    const char* const part = i % 4 == 0 ? "test" : i % 4 == 1 ? "validation" : "train";
    const bool is_up = i % 3 != 0;
    const double angle = i * 37 % 101 / 101.0 * 3.14;
    const double a = (is_up ? std::cos(angle) : 1 - std::cos(angle)) + noise(bits);
    const double b = (is_up ? std::sin(angle) : 0.5 - std::sin(angle)) + noise(bits);
    if (!are_test_alone || part == std::string("test"))
      out << a << "," << b << "," << (is_up ? "up" : "down") << "," << part << "\n";
  }
}

TEST(Ensemble, IsMeasuredByTestRowsThatChoseNothing) {
  const Workspace workspace;
  write_rows(workspace.folder() / "all.csv", false);
  write_rows(workspace.folder() / "test.csv", true);
  Json document = ensemble_document("hold_out");
  document["data"] = {{"use", "csv"},
                      {"path", (workspace.folder() / "all.csv").string()},
                      {"target", "y"},
                      {"columns", {"a", "b"}}};
  document["validation"] = {{"use", "predefined"}, {"parts", "part"}};
  document["optimizer"]["learning_rate"] = 0.2;  // trials that differ

  RunOutcome outcome;
  for (int seed = 1; seed <= 12 && (seed == 1 || !outcome.result.search->ensemble); ++seed) {
    document["seed"] = seed;
    outcome = run_search(workspace, document);
  }

  const Runtime runtime = watching_runtime();
  ASSERT_TRUE(outcome.result.search->ensemble) << "no seed has an ensemble";
  const EvaluationResult expected =
      Predictor::load(runtime, outcome.folder).evaluate_file(workspace.folder() / "test.csv");
  const std::optional<EvaluationResult>& test = outcome.result.training.test;
  ASSERT_TRUE(test);
  EXPECT_EQ(test->sample_count, 30);
  ASSERT_EQ(test->metrics.size(), 2U);
  for (const MetricValue& metric : test->metrics)
    EXPECT_NEAR(metric.value, expected.at(metric.name), 1e-6) << metric.name;
  EXPECT_FALSE(test->loss.is_known());
  const std::vector<MetricValue>& alone = outcome.result.search->ensemble->best_trial_test;
  ASSERT_EQ(alone.size(), 2U);
  EXPECT_NE(alone[0].value.value(), test->metrics[0].value.value());
  const std::string predictions = read_file(outcome.folder / "predictions.csv");
  EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 1 + 30);
}

/// Runs a search whose steps become slow when its trials have ended, whose times are what it goes
/// by: at its end the time budget is used up, on any machine. `steps` counts them.
RunOutcome run_with_a_slow_end(const Workspace& workspace, Json document, int steps_of_trials,
                               int& steps) {
  const Runtime runtime = watching_runtime();
  using Seconds = std::chrono::duration<double>;
  const auto begun = std::chrono::steady_clock::now();
  {
    const Workspace quick;
    run_workflow(runtime, runtime.resolve(document), quick.options());
  }
  const Seconds budget = 3 * Seconds(std::chrono::steady_clock::now() - begun) + Seconds(0.5);
  document["search"]["budget"] = {{"time", std::to_string(budget.count()) + "s"}};
  constexpr int kSlow = 22;
  std::atomic<int> seen{0};
  const testing::StepWatch watch(runtime, [&] {
    if (++seen > steps_of_trials && seen <= steps_of_trials + kSlow)
      std::this_thread::sleep_for(budget / 20);
  });
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());
  steps = seen;
  return outcome;
}

TEST(Ensemble, LeavesOutMembersThatAreNotTrainedWithinTheTimeBudget) {
  constexpr int kStepsOfTrials = kTrials * 3 * kStepsOfFold;
  constexpr int kStepsOfLast = 3 * kStepsOfFold + kStepsOfRefit;
  const Workspace workspace;
  int steps = 0;

  const RunOutcome outcome =
      run_with_a_slow_end(workspace, ensemble_document("k_fold"), kStepsOfTrials, steps);

  EXPECT_EQ(outcome.result.search->trials.size(), 4U);
  EXPECT_FALSE(fs::exists(outcome.folder / "ensemble.json"))
      << read_file(outcome.folder / "ensemble.json");
  EXPECT_EQ(steps, kStepsOfTrials + kStepsOfLast) << "no member is trained";
}

TEST(Ensemble, OfOneSplitNeedsNoTimeForItsMembers) {
  const Workspace workspace;
  int steps = 0;

  const RunOutcome outcome =
      run_with_a_slow_end(workspace, ensemble_document("hold_out"), kTrials * kStepsOfTrial, steps);

  EXPECT_LT(outcome.result.training.total_epochs, 6) << "the last training ends with the budget";
  EXPECT_THAT(outcome.result.training.stop_reason, HasSubstr("time budget"));
  EXPECT_GE(ensemble_in(outcome.folder).at("members").size(), 2U);
}

TEST(Ensemble, WithMoreTrialsIsThatOfALargerSearch) {
  const Runtime runtime = watching_runtime();
  Json document = ensemble_document("hold_out");
  document["search"]["trials"] = 3;
  const Workspace workspace;
  const fs::path folder = run_search(workspace, document).folder;
  ASSERT_TRUE(fs::exists(folder / "ensemble.json"));

  const at::Tensor rows = at::rand({50, 2});
  const at::Tensor before = Predictor::load(runtime, folder).predict(rows).values;
  fs::create_directories(folder / "members" / "99");

  extend_search(runtime, folder, 1, "");
  EXPECT_TRUE(Predictor::load(runtime, folder).predict(rows).values.equal(before))
      << "until there is another one";
  const RunOutcome extended = resume_run(runtime, folder, workspace.options());
  EXPECT_FALSE(fs::exists(folder / "members" / "99")) << "it is no member any more";

  document["search"]["trials"] = 4;
  const Workspace whole;
  EXPECT_EQ(ensemble_bits(extended), ensemble_bits(run_search(whole, document)));
}

TEST(Ensemble, WhoseFileIsDamagedIsRefused) {
  const Workspace workspace;
  const RunOutcome outcome = run_search(workspace, ensemble_document("hold_out"));
  std::ofstream(outcome.folder / "ensemble.json") << R"({"members": [{"path": 3}]})";

  try {
    Predictor::load(watching_runtime(), outcome.folder);
    FAIL() << "it was read";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not list the members of an ensemble"));
  }
}

TEST(Ensemble, ThatIsStackedNeedsRowsToBeFittedTo) {
  const Workspace workspace;
  Json document = ensemble_document("hold_out", "stacking");
  document["validation"]["fraction"] = 0.01;

  try {
    run_search(workspace, document);
    FAIL() << "it was not refused";
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/search/ensemble: stacking is fitted to validation rows, "
                                        "of which there is 1; give the validation more rows"));
  }
}

TEST(Ensemble, HasTrialsThatKeepTheConstraintsAlone) {
  Json document = ensemble_document("k_fold");
  // 2 + 1 inputs and outputs of each hidden unit, and two biases: 5 * 14 + 2 = 72 of the second.
  document["search"]["constraints"] = {{"parameter_count", {{"max", 72}}}};
  const Workspace workspace;

  const RunOutcome outcome = run_search(workspace, document);

  const Json trials = to_json(*outcome.result.search).at("trials");
  const Json ensemble = ensemble_in(outcome.folder);
  for (const Json& member : ensemble.at("members")) {
    const Json& hidden =
        trials[member.at("trial").get<std::size_t>()].at("params").at("model.hidden");
    EXPECT_LE(hidden[0].get<int>(), 14) << trials;
  }
}

// Three trials that have learned nothing would be members in any case.
TEST(Ensemble, HasNoMembersThatOnlyMakeItWorse) {
  Json document = ensemble_document("hold_out");
  document["search"]["space"] = {{"training.epochs", {{"choice", {1, 2, 3, 60}}}}};
  const Workspace workspace;

  const Json search = to_json(*run_search(workspace, document).result.search);

  double best = 1e9;
  for (const Json& trial : search.at("trials"))
    best = std::min(best, trial.at("values")[0].get<double>());
  if (search.at("ensemble").is_object()) {
    EXPECT_LT(search.at("ensemble").at("validation"), best);
  }
}

TEST(Ensemble, NeedsAMetricToBeChosenBy) {
  const Workspace workspace;
  Json document = ensemble_document("hold_out");
  document["search"].erase("objective");

  try {
    run_search(workspace, document);
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("/search/ensemble: an ensemble pools predictions, which have "
                          "metrics and no val_loss"));
  }
}

TEST(Ensemble, IsRefusedBeforeAnythingIsTrained) {
  const Runtime runtime = watching_runtime();
  const auto refusal = [&](const Json& more) {
    Json document = ensemble_document("hold_out");
    document["search"].update(more);
    try {
      expect_search(runtime, runtime.resolve(document));
    } catch (const DocumentError& error) {
      return std::string(error.what());
    }
    return std::string("it was not refused");
  };
  EXPECT_THAT(refusal({{"objective", "parameter_count"}}), HasSubstr("no parameter_count; set"));
  EXPECT_THAT(refusal({{"objective", {"log_loss", "accuracy"}}, {"tuner", "random"}}),
              HasSubstr("by one objective"));
  EXPECT_THAT(refusal({{"storage", {{"use", "journal"}, {"location", "study"}}}}),
              HasSubstr("leave \"storage\" out"));
}

}  // namespace
}  // namespace treadle
