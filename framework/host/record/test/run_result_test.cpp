#include <treadle/host/record/run_result.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Metrics in an order that no alphabet has.
std::vector<MetricValue> metrics(double recall, double accuracy) {
  return {{"recall", recall, Direction::kHigherIsBetter},
          {"accuracy", accuracy, Direction::kHigherIsBetter},
          {"count", 3, Direction::kNone}};
}

EvaluationResult evaluation(double loss, std::vector<ResultTable> tables = {}) {
  return {{loss, metrics(loss / 2, loss / 4)}, 20, 0.5, std::move(tables), std::nullopt};
}

/// A training with every member that another one may lack.
FitResult full_training(const std::string& name = "final") {
  FitResult fit;
  fit.name = name;
  fit.final_loss = 0.25;
  fit.best_loss = 0.125;
  fit.best_epoch = 3;
  fit.total_epochs = 5;
  fit.stop_reason = "early stopping";
  fit.training_time_seconds = 1.5;
  fit.replayed_steps = 7;
  fit.not_captured = "the loss copies";
  fit.skipped_steps = {2, {4, 9}};
  fit.weights = {3, true, "validation", "recall", true};
  fit.rows = {80, 20, "hash", 0, ""};
  fit.transformed_target = true;
  fit.model_info = {"run",
                    "1",
                    Json{{"use", "mlp"}},
                    42,
                    {{"float32", 168}},
                    {{"features", {4}}},
                    {{"class", {3}}},
                    ""};
  fit.forward_cost = {100, 200, 3};
  fit.validation = evaluation(0.5, {{"confusion_matrix", {"a"}, {"a"}, {{20.0}}, {}, "", 0}});
  fit.structures = {{"cell", {{"0_1", "1", {{"skip", 0.75}}, "skip"}, {"0_2", "2", {}, {}}}}};
  return fit;
}

PrequentialResult prequential() {
  PrequentialResult result;
  result.loss = 0.5;
  result.metrics = metrics(0.5, 0.25);
  result.sample_count = 40;
  result.window_rows = 20;
  result.windows = {{{0.25, metrics(1, 1)}, 0, 20, "first"}, {{0.75, metrics(0, 0)}, 20, 20, ""}};
  result.changes = {{20, "second", 1, result.windows[0], result.windows[1], std::nullopt, {}}};
  result.recovery = {"recall", 0.75, std::nullopt};
  result.variances = Scores{0.0625, metrics(0.25, 0.25)};
  return result;
}

SearchResult search() {
  SearchResult result;
  result.tuner = "tpe";
  result.pruner = "asha";
  result.objectives = {{"recall", true}, {"val_loss", false}};
  result.best_trial = 1;
  result.pareto_trials = {{1}};
  result.trials = {{0, "failed", {{"a", 1}}, {}, {}, {{1, 0.5}, {2, NAN}}, "no memory", {}},
                   {1, "complete", {{"a", 2}}, {0.5, 0.25}, {-1.0}, {}, "", 0}};
  result.space = {{"a", {1, 2}}};
  result.ended = {"time", "the time budget was used up"};
  result.asynchronous = true;
  result.wants_ensemble = true;
  result.ensemble = {"recall", 0.75, "linear", nullptr, {{"members/0", 0, 0.5}}};
  result.ensemble->uncertainty = {std::nullopt, std::nullopt, 0.25};
  return result;
}

RunResult full_run() {
  RunResult run;
  run.training = full_training();
  run.training.test = evaluation(0.75);
  run.training.prequential = prequential();
  run.model_path = "model.safetensors";
  run.cross_validation = summarize_folds({full_training("fold-1"), full_training("fold-2")});
  run.cross_validation->inner = {summarize_folds({full_training("inner-1")}),
                                 summarize_folds({full_training("inner-1")})};
  run.tables = {{"residuals", {}, {"output", "from"}, {{0.0, 1.5}, {1.0, 2.5}}, 2, "", 0},
                {"large", {}, {"x"}, {}, {}, "tables/large.csv", 1000}};
  run.baselines = {{{0.5, metrics(0.5, 0.5)}, "naive", "test", 0, 0.25}};
  run.started_at = "2026-05-04T10:11:12Z";
  run.task = "classification";
  run.choices = {"batch size: 32"};
  run.time = {2, 2, 1, {{"forward", 1.0}, {"idle", 3.0}}, 0.25, 100, {}};
  run.time.ranks = {{"node-1", 0.5, 0.25, 0.875}, {"node-2", 0.75, 0.375, 0.5}};
  run.device = DeviceResult{"cuda:0", 1, 2, 3, 4, 5, 0.5, 6, 7, 1.5, 0.5, 0.25};
  run.data = {{"rows", 100}};
  run.environment = {{"workers", 2}};
  run.plan = {{"steps", 10}};
  run.search = search();
  run.extensions = {{"note", "mine"}};
  return run;
}

std::string refusal(const Json& stored) {
  try {
    run_result_from(stored, "runs/a/result.json");
  } catch (const StorageError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(RunResult, IsReadAsItWasWritten) {
  const Json written = to_json(full_run());

  const RunResult read = run_result_from(written, "result.json");

  EXPECT_EQ(to_json(read), written);
  EXPECT_EQ(read.training.weights.by, "recall");
  EXPECT_EQ(read.cross_validation->inner.at(1).fold_results.front().name, "inner-1");
  EXPECT_EQ(read.training.prequential->changes.front().before->at("accuracy"), 1);
  EXPECT_EQ(read.tables.back().file, "tables/large.csv");
  EXPECT_EQ(read.search->find(1)->values.front(), 0.5);
  EXPECT_EQ(read.search->find(7), nullptr);
}

TEST(RunResult, MentionsRanksWhereThereAreSeveralAlone) {
  RunResult run = full_run();
  const Json written = to_json(run);
  EXPECT_EQ(written.at("time").at("ranks").at(1), Json({{"host", "node-2"},
                                                        {"exchange_seconds", 0.75},
                                                        {"waiting_share", 0.375},
                                                        {"budget_used", 0.5}}));
  EXPECT_EQ(run_result_from(written, "result.json").time.ranks.at(1).host, "node-2");

  run.time.ranks.clear();
  EXPECT_FALSE(to_json(run).at("time").contains("ranks"));
}

TEST(RunResult, KeepsTheOrderAndTheDirectionsOfMetrics) {
  const RunResult read = run_result_from(to_json(full_run()), "result.json");

  for (const std::vector<MetricValue>* const found :
       {&read.training.validation->metrics, &read.training.prequential->metrics,
        &read.cross_validation->mean_metrics, &read.cross_validation->std_metrics}) {
    std::vector<std::string> names;
    for (const MetricValue& metric : *found)
      names.push_back(metric.name);
    EXPECT_THAT(names, ElementsAre("recall", "accuracy", "count"));
    EXPECT_EQ(found->front().direction, Direction::kHigherIsBetter);
    EXPECT_EQ(found->back().direction, Direction::kNone);
  }
}

TEST(RunResult, KeepsWhyANumberIsUndefined) {
  RunResult run;
  run.model_path = "model.safetensors";
  run.training.validation = evaluation(1);
  run.training.validation->loss = Number::undefined("no row has a weight above 0");
  run.training.validation->metrics[1].value = Number::undefined("all rows are of class \"yes\"");
  run.training.best_loss = INFINITY;

  const RunResult read = run_result_from(to_json(run), "result.json");

  EXPECT_EQ(read.loss().why(), "no row has a weight above 0");
  EXPECT_EQ(read.at("accuracy").why(), "all rows are of class \"yes\"");
  EXPECT_FALSE(read.training.best_loss.is_known());
  EXPECT_FALSE(read.training.best_loss.is_undefined());
}

TEST(RunResult, WithoutAModelHasWhatItsFoldsShare) {
  RunResult run = full_run();
  run.model_path = "";

  const Json written = to_json(run);

  EXPECT_FALSE(written.contains("total_epochs"));
  EXPECT_FALSE(written.contains("test"));
  EXPECT_EQ(written.at("model_info").at("parameter_count"), 42);
  EXPECT_EQ(written.at("folds_evaluated_on"), "validation");
  EXPECT_EQ(run_result_from(written, "result.json").metrics().size(), 3U);
}

TEST(RunResult, TellsASearchWithoutAnEnsembleFromOneThatFoundNone) {
  RunResult run = full_run();
  run.search->ensemble.reset();
  const Json none = to_json(run);
  EXPECT_TRUE(none.at("search").at("ensemble").is_null());
  EXPECT_TRUE(run_result_from(none, "result.json").search->wants_ensemble);

  run.search->wants_ensemble = false;
  EXPECT_FALSE(to_json(run).at("search").contains("ensemble"));
}

TEST(RunResult, IsMeasuredByItsFoldsElseByItsValidationRowsElseByItsLastEpoch) {
  RunResult run = full_run();
  EXPECT_EQ(run.loss(), 0.5) << "the mean over the folds";
  run.cross_validation.reset();
  run.training.prequential.reset();
  run.training.validation->loss = 0.375;
  EXPECT_EQ(run.loss(), 0.375);
  run.training.validation.reset();
  EXPECT_EQ(run.loss(), 0.25);
  EXPECT_TRUE(run.metrics().empty());
}

TEST(RunResult, NamesTheMetricsThereAreForOneThereIsNot) {
  try {
    full_run().at("f1");
    ADD_FAILURE() << "there is no f1";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"f1\""), HasSubstr("\"recall\"")));
  }
}

// A file of an older version lacks keys, one of a newer version has more.
TEST(RunResult, PassesOverKeysThatAreNotThereOrUnknown) {
  const RunResult read = run_result_from({{"task", "regression"}, {"new", 1}}, "result.json");

  EXPECT_EQ(read.task, "regression");
  EXPECT_FALSE(read.has_model());
  EXPECT_FALSE(read.cross_validation);
  EXPECT_FALSE(run_result_from({{"validation", {{"sample_count", 3}}}, {"model_path", "m"}}, "")
                   .loss()
                   .is_known());
}

TEST(RunResult, NamesThePlaceOfAValueOfAnotherType) {
  Json stored = to_json(full_run());
  stored["fold_results"][1]["validation"]["sample_count"] = "many";
  EXPECT_THAT(refusal(stored),
              AllOf(HasSubstr("runs/a/result.json: /fold_results/1/validation/sample_count"),
                    HasSubstr("expected an integer"), HasSubstr("\"many\""), HasSubstr("damaged")));

  stored = to_json(full_run());
  stored["time"]["ranks"][1]["waiting_share"] = "most";
  EXPECT_THAT(refusal(stored),
              AllOf(HasSubstr("/time/ranks/1/waiting_share"), HasSubstr("a number")));

  stored = to_json(full_run());
  stored["weights"]["chosen"] = "worst";
  EXPECT_THAT(refusal(stored), AllOf(HasSubstr("/weights/chosen"), HasSubstr("\"best\"")));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("expected an object"));
}

/// Every value within `json`, and each object and array.
void add_pointers(const Json& json, const Json::json_pointer& place,
                  std::vector<Json::json_pointer>& pointers) {
  if (!json.is_structured())
    return;
  for (const auto& [key, value] : json.items()) {
    pointers.push_back(json.is_array() ? place / std::stoul(key) : place / key);
    const Json::json_pointer child = pointers.back();
    add_pointers(value, child, pointers);
  }
}

/// Whether a changed file is refused. Else it can be written, and then reads the same.
bool is_refused(const Json& changed, const std::string& change) {
  try {
    const Json written = to_json(run_result_from(changed, "result.json"));
    EXPECT_EQ(to_json(run_result_from(written, "result.json")), written) << change;
    return false;
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("result.json: /")) << change;
    return true;
  }
}

TEST(RunResult, WithAnyValueReplacedOrRemovedIsReadOrRefused) {
  const Json whole = to_json(full_run());
  const Json others = {nullptr,          true,           -1,           0.5, "text",
                       Json::array({1}), Json::object(), Json::array()};
  std::vector<Json::json_pointer> pointers;
  add_pointers(whole, Json::json_pointer(), pointers);
  std::int64_t refused = 0;
  for (const Json::json_pointer& pointer : pointers) {
    for (const Json& other : others) {
      Json changed = whole;
      changed[pointer] = other;
      refused += is_refused(changed, pointer.to_string() + " = " + other.dump());
    }
    Json without = whole;
    Json& parent = without[pointer.parent_pointer()];
    parent.is_array() ? parent.erase(std::stoul(pointer.back()))
                      : (void)parent.erase(pointer.back());
    refused += is_refused(without, pointer.to_string() + " removed");
  }
  EXPECT_GT(refused, 1000);
}

TEST(RunResult, IsReadFromItsFileOrRefusedWithItsPath) {
  std::string folder = (std::filesystem::temp_directory_path() / "treadle-result-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "result.json";
  const auto refusal_of_file = [&] {
    try {
      read_run_result(file);
    } catch (const StorageError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(refusal_of_file(), AllOf(HasSubstr(file.string()), HasSubstr("cannot be read")));
  std::ofstream(file) << to_json(full_run()).dump();
  EXPECT_EQ(to_json(read_run_result(file)), to_json(full_run()));
  std::ofstream(file) << "{\"task\": ";
  EXPECT_THAT(refusal_of_file(), AllOf(HasSubstr(file.string()), HasSubstr("not JSON")));
  std::filesystem::remove_all(folder);
}

TEST(Folds, AreSummarizedBySampleDeviationsOfThoseThatHaveANumber) {
  std::vector<FitResult> folds;
  for (const double loss : {0.25, 0.75, 0.5}) {
    FitResult& fold = folds.emplace_back();
    fold.name = "fold-" + std::to_string(folds.size());
    fold.training_time_seconds = 1;
    fold.validation = evaluation(loss);
  }
  folds[2].validation->metrics[0].value = Number::undefined("one class");

  const CrossValidationResult summary = summarize_folds(folds);

  EXPECT_EQ(summary.mean_loss, 0.5);
  EXPECT_EQ(summary.std_loss, 0.25);  // of 0.25, 0.5, 0.75: sqrt(2 * 0.0625 / 2)
  EXPECT_EQ(summary.mean_metrics[0].value, 0.25) << "of two folds: 0.125 and 0.375";
  EXPECT_NEAR(summary.std_metrics[0].value, 0.25 / std::sqrt(2), 1e-15);
  EXPECT_EQ(summary.undefined.at("recall"), "in 1 of 3 folds (fold-3: one class)");
  EXPECT_EQ(summary.total_time_seconds, 4.5);
}

}  // namespace
}  // namespace treadle
