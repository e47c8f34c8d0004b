// Documents with "outputs": the rows that they learn from, and every use of the model.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/host/run/exported_model.h>
#include <treadle/host/run/predictor.h>

#include "workspace.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::bits_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::read_file;
using testing::Workspace;

/// 800 rows of which a fifth has the wrong class, and a network that learns them by heart: it is
/// far too sure.
std::filesystem::path noisy_table(const std::filesystem::path& folder) {
  RandomBits random(3);
  const auto file = folder / "noisy.csv";
  std::ofstream table(file);
  table << "a,b,c,d,e,f,y\n";
  for (int row = 0; row < 800; ++row) {
    double sum = 0;
    for (int column = 0; column < 6; ++column) {
      const double value = random.normal();
      sum += column < 2 ? value : 0;
      table << value << ',';
    }
    const bool is_wrong = random.uniform() < 0.2;
    table << ((sum > 0) != is_wrong ? "yes" : "no") << '\n';
  }
  return file;
}

json sure_of(const std::filesystem::path& table, const json& change = json::object()) {
  json document = {{"treadle", 1},
                   {"seed", 5},
                   {"data", {{"use", "csv"}, {"path", table.string()}, {"target", "y"}}},
                   {"model", {{"use", "mlp"}, {"hidden", {64}}}},
                   {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.01}}},
                   {"training", {{"epochs", 60}, {"batch_size", 32}}},
                   {"validation", {{"use", "k_fold"}, {"folds", 4}}},
                   {"metrics", {"accuracy", "log_loss", "macro_f1"}}};
  document.update(change, /*merge_objects=*/true);
  return document;
}

double metric(const std::vector<MetricValue>& values, const std::string& name) {
  for (const MetricValue& value : values) {
    if (value.name == name)
      return value.value;
  }
  return std::nan("");
}

std::vector<std::vector<std::string>> table_in(const std::filesystem::path& file) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(read_file(file));
  for (std::string line; std::getline(text, line);) {
    std::vector<std::string>& row = rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');)
      row.push_back(field);
  }
  return rows;
}

TEST(Outputs, CalibrateFoldsByOtherFolds) {
  const Runtime runtime;
  const Workspace workspace;
  const json document =
      sure_of(noisy_table(workspace.folder()), {{"outputs", {{"calibration", "temperature"}}}});
  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const RunOutcome without = run_workflow(
      runtime, runtime.resolve(sure_of(noisy_table(workspace.folder()))), workspace.options());

  ASSERT_TRUE(run.result.outputs);
  const OutputsResult& outputs = *run.result.outputs;
  EXPECT_EQ(outputs.rows_from, "folds");
  EXPECT_EQ(outputs.rows, 800);
  EXPECT_THAT(outputs.not_evaluated, ::testing::IsEmpty());
  EXPECT_GT(double(outputs.stages.at(0).learned.at(0).value), 1.5) << "it was too sure";
  const std::vector<MetricValue>& with = run.result.cross_validation->mean_metrics;
  const std::vector<MetricValue>& raw = without.result.cross_validation->mean_metrics;
  EXPECT_LT(metric(with, "log_loss"), 0.9 * metric(raw, "log_loss"));
  EXPECT_EQ(metric(with, "accuracy"), metric(raw, "accuracy"));
  EXPECT_EQ(metric(outputs.metrics_without, "log_loss"), metric(raw, "log_loss"));
  EXPECT_EQ(bits_of(run.folder), bits_of(without.folder)) << "the model itself is the same";
}

TEST(Outputs, LearnFromRowsSetAsideWhereThereIsOneSplit) {
  const Runtime runtime;
  const Workspace workspace;
  const json document = sure_of(noisy_table(workspace.folder()),
                                {{"validation", {{"use", "hold_out"}, {"fraction", 0.25}}},
                                 {"outputs", {{"calibration", "temperature"}, {"fraction", 0.3}}}});
  json one_split = document;
  one_split["validation"].erase("folds");
  const RunOutcome run = run_workflow(runtime, runtime.resolve(one_split), workspace.options());

  EXPECT_EQ(run.result.outputs->rows_from, "set_aside");
  EXPECT_EQ(run.result.outputs->rows, 180);
  EXPECT_EQ(run.result.training.rows.training, 420);
  EXPECT_EQ(run.result.training.rows.validation, 200);
  EXPECT_LT(metric(run.result.training.validation->metrics, "log_loss"),
            metric(run.result.outputs->metrics_without, "log_loss"));
}

TEST(Outputs, GoWithTheModelWhereverItIsUsed) {
  const Runtime runtime;
  const Workspace workspace;
  const json document =
      sure_of(noisy_table(workspace.folder()), {{"outputs",
                                                 {{"calibration", "platt"},
                                                  {"conformal", {{"coverage", 0.9}}},
                                                  {"decision", {{"threshold", 0.2}}}}},
                                                {"metrics", {"macro_recall", "set_coverage"}}});
  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const auto exported = workspace.folder() / "model.safetensors";
  export_model(run.folder, exported);
  const at::Tensor features = at::arange(-60, 60, at::kFloat).view({20, 6}) / 10;
  const Prediction here = Predictor::load(runtime, run.folder).predict(features);
  const Prediction there = Predictor::load(runtime, exported).predict(features);

  EXPECT_TRUE(here.values.equal(there.values));
  EXPECT_TRUE(here.decision.equal(there.decision));
  EXPECT_TRUE(here.decision.equal(here.values.select(1, 1).ge(0.2).to(at::kLong)));
  ASSERT_EQ(here.extras.size(), 1U);
  EXPECT_TRUE(here.extras[0].values.equal(there.extras[0].values));
  EXPECT_NEAR(metric(run.result.cross_validation->mean_metrics, "set_coverage"), 0.9, 0.05);
}

TEST(Outputs, OfAnEnsembleLearnFromItsPooledPredictions) {
  const Runtime runtime;
  const Workspace workspace;
  json document =
      sure_of(noisy_table(workspace.folder()),
              {{"training", {{"epochs", 6}}},
               {"search",
                {{"space", {{"optimizer.learning_rate", {{"log_uniform", {0.001, 0.1}}}}}},
                 {"trials", 5},
                 {"objective", "log_loss"},
                 {"ensemble", json::object()}}},
               {"outputs", {{"calibration", "temperature"}, {"decision", {{"threshold", 0.2}}}}}});
  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  ASSERT_TRUE(run.result.search->ensemble) << "several trials predict together";
  const at::Tensor features = at::arange(-60, 60, at::kFloat).view({20, 6}) / 10;
  const Prediction predicted = Predictor::load(runtime, run.folder).predict(features);

  EXPECT_EQ(run.result.outputs->rows, 800);
  EXPECT_TRUE(predicted.decision.equal(predicted.values.select(1, 1).ge(0.2).to(at::kLong)));
  document["search"].erase("ensemble");
  const RunOutcome best = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const auto temperature = [](const RunOutcome& of) {
    return static_cast<double>(of.result.outputs->stages.at(0).learned.at(0).value);
  };
  EXPECT_NE(temperature(run), temperature(best)) << "the best trial is sure in another way";
}

TEST(Outputs, LeaveThePredictionsOfEveryRow) {
  const Runtime runtime;
  const Workspace workspace;
  const json document =
      sure_of(noisy_table(workspace.folder()),
              {{"training", {{"epochs", 2}}}, {"outputs", {{"decision", {{"threshold", "f1"}}}}}});
  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const auto rows = table_in(run.folder / "predictions.csv");

  ASSERT_EQ(rows.size(), 801U);
  EXPECT_THAT(rows[0], ElementsAre("row", "fold", "actual", "predicted", "p(no)", "p(yes)"));
  std::set<std::string> numbers;
  std::map<std::string, int> right;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    numbers.insert(rows[i][0]);
    right[rows[i][1]] += rows[i][2] == rows[i][3] ? 1 : 0;
  }
  EXPECT_EQ(numbers.size(), 800U);
  for (const FitResult& fold : run.result.cross_validation->fold_results) {
    EXPECT_NEAR(metric(fold.validation->metrics, "accuracy"), right[fold.name] / 200.0, 1e-12)
        << "the file has what was measured";
  }
}

TEST(Outputs, LearnFromThePastAloneInAWalk) {
  const Runtime runtime;
  const Workspace workspace;
  json document =
      sure_of(noisy_table(workspace.folder()),
              {{"outputs", {{"conformal", {{"coverage", 0.8}}}}}, {"training", {{"epochs", 2}}}});
  document["data"] = {{"use", "friedman1"}, {"rows", 300}, {"noise", 1.0}};
  document["validation"] = {{"use", "walk_forward"}, {"test_size", 0.2}};
  document["metrics"] = {"rmse", "interval_coverage"};
  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), workspace.options());

  EXPECT_THAT(run.result.outputs->not_evaluated,
              ElementsAre(run.result.cross_validation->fold_results.front().name));
  const auto rows = table_in(run.folder / "predictions.csv");
  EXPECT_THAT(rows.front(), ElementsAre("row", "fold", "actual", "y", "y.lower", "y.upper"));
  EXPECT_EQ(rows.at(1).back(), "nan") << "the first fold has nothing to learn from";
  EXPECT_NE(rows.back().back(), "nan");
}

TEST(Outputs, ResumedHaveTheBitsOfAWholeRun) {
  const Runtime runtime;
  const Workspace workspace;
  const json document =
      sure_of(noisy_table(workspace.folder()), {{"training", {{"epochs", 20}}},
                                                {"outputs",
                                                 {{"calibration", "isotonic"},
                                                  {"conformal", {{"coverage", 0.8}}},
                                                  {"decision", {{"threshold", "mcc"}}}}}});
  const RunOutcome whole = run_workflow(runtime, runtime.resolve(document), workspace.options());
  std::stop_source stop;
  RunOptions stopping = workspace.options();
  stopping.stop = stop.get_token();
  std::atomic<int> steps = 0;
  stopping.hooks.on_step = [&](const FitId&, const StepProgress&) {
    if (++steps == 50)
      stop.request_stop();
  };
  std::filesystem::path cut;
  EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), stopping), Interrupted);
  for (const auto& entry : std::filesystem::directory_iterator(workspace.folder() / "runs")) {
    if (!std::filesystem::exists(entry.path() / "result.json"))
      cut = entry.path();
  }
  resume_run(runtime, cut, workspace.options());

  for (const char* const file : {"predictions.csv", "model.safetensors"})
    EXPECT_EQ(read_file(cut / file), read_file(whole.folder / file)) << file;
}

// One group is noisy; its number in another file is another one.
TEST(Outputs, HoldTheGroupsOfAnotherFileToTheirOwnRows) {
  const Runtime runtime;
  const Workspace workspace;
  RandomBits random(9);
  const auto write = [&](const char* name, const std::vector<std::string>& groups, int rows) {
    std::ofstream table(workspace.folder() / name);
    table << "x,who,y\n";
    for (int row = 0; row < rows; ++row) {
      const std::string& group = groups[static_cast<std::size_t>(row) % groups.size()];
      const double x = random.normal();
      table << x << ',' << group << ',' << x + random.normal() * (group == "loud" ? 5 : 0.1)
            << '\n';
    }
    return workspace.folder() / name;
  };
  json document = sure_of(write("train.csv", {"calm", "loud"}, 200));
  document["data"]["group"] = "who";
  document["training"] = {{"epochs", 5}};
  document["metrics"] = {"interval_coverage"};
  document["validation"] = {{"use", "k_fold"}, {"folds", 2}};
  document["outputs"] = {{"conformal", {{"coverage", 0.8}, {"by", "group"}}}};
  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const Predictor predictor = Predictor::load(runtime, run.folder);
  const auto predicted = workspace.folder() / "predicted.csv";
  predictor.predict_file(write("new.csv", {"loud", "new", "calm"}, 30), predicted);

  std::map<int, double> widths;  // by place in the cycle of groups
  const auto rows = table_in(predicted);
  ASSERT_THAT(rows[0], ElementsAre("row", "y", "y.lower", "y.upper"));
  for (std::size_t i = 1; i < rows.size(); ++i)
    widths[static_cast<int>(i - 1) % 3] = std::stod(rows[i][3]) - std::stod(rows[i][2]);
  EXPECT_GT(widths[0], widths[1]) << "loud, and a group that no row was learned from";
  EXPECT_GT(widths[1], widths[2]) << "that, and calm";
}

TEST(Outputs, WithoutEnoughRowsAreRefusedBeforeTheTraining) {
  const Runtime runtime;
  const Workspace workspace;
  const json document =
      sure_of(noisy_table(workspace.folder()),
              {{"validation", {{"use", "k_fold"}, {"folds", 2}}},
               {"outputs", {{"conformal", {{"coverage", 0.9999}, {"by", "class"}}}}}});
  try {
    static_cast<void>(dry_run(runtime, runtime.resolve(document)));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("needs 9999 held-out rows of \"no\""));
  }
}

TEST(Outputs, ThatSuitNoTargetAreRefusedBeforeTheTraining) {
  const Runtime runtime;
  const Workspace workspace;
  json document =
      sure_of(noisy_table(workspace.folder()), {{"outputs", {{"calibration", "temperature"}}}});
  document["data"] = {{"use", "friedman1"}, {"rows", 100}};
  document["metrics"] = {"rmse"};
  try {
    run_workflow(runtime, runtime.resolve(document), workspace.options());
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("temperature"));
    EXPECT_THAT(error.what(), HasSubstr("conformal"));
  }
}

}  // namespace
}  // namespace treadle
