// Outputs that predict with the models of all folds: conformal intervals by CV+.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stop_token>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/host/run/exported_model.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/task_random.h>

#include "workspace.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::read_file;
using testing::Workspace;

/// y is the sum of four columns, and noise.
fs::path sums(const fs::path& folder, int rows) {
  RandomBits random(11);
  const fs::path file = folder / "sums.csv";
  std::ofstream table(file);
  table << "a,b,c,d,y\n";
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int column = 0; column < 4; ++column) {
      const double value = random.normal();
      sum += value;
      table << value << ',';
    }
    table << sum + random.normal() << '\n';
  }
  return file;
}

json with_folds(const fs::path& table, const json& change = json::object()) {
  json document = {{"treadle", 1},
                   {"data", {{"use", "csv"}, {"path", table.string()}, {"target", "y"}}},
                   {"transforms", {{{"use", "standardize"}, {"target", true}}}},
                   {"model", "linear"},
                   {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.05}}},
                   {"training", {{"epochs", 8}, {"batch_size", 16}}},
                   {"validation", {{"use", "k_fold"}, {"folds", 4}, {"test_fraction", 0.25}}},
                   {"metrics", {"rmse", "interval_coverage"}},
                   {"outputs", {{"conformal", {{"method", "cv+"}, {"coverage", 0.9}}}}}};
  document.merge_patch(change);
  return document;
}

double value_of(const std::vector<MetricValue>& values, const std::string& name) {
  for (const MetricValue& value : values) {
    if (value.name == name)
      return value.value;
  }
  return std::nan("");
}

void expect_same(const Prediction& a, const Prediction& b) {
  EXPECT_TRUE(a.values.equal(b.values));
  ASSERT_EQ(a.extras.size(), 2U);
  ASSERT_EQ(b.extras.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(a.extras[i].values.equal(b.extras[i].values)) << a.extras[i].name;
}

at::Tensor some_rows() {
  const TaskRandom random(2);
  return at::randn({50, 4}, at::kFloat);
}

std::string refusal_of(const Runtime& runtime, const json& document) {
  try {
    static_cast<void>(dry_run(runtime, runtime.resolve(document)));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FoldModels, PredictIntervalsFromTheFolderAndFromAnExportedFile) {
  const Runtime runtime;
  const Workspace workspace;
  const json document = with_folds(sums(workspace.folder(), 240));
  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const fs::path exported = workspace.folder() / "model.safetensors";
  export_model(run.folder, exported);
  const at::Tensor rows = some_rows();
  const Predictor predictor = Predictor::load(runtime, run.folder);
  const Prediction here = predictor.predict(rows);

  expect_same(here, Predictor::load(runtime, exported).predict(rows));
  EXPECT_EQ(run.result.outputs->rows, 180) << "all but the test rows";
  EXPECT_FALSE(here.folds.defined()) << "they are behind the intervals";
  EXPECT_TRUE(here.extras[0].values.lt(here.extras[1].values).all().item<bool>());
  for (std::int64_t row = 0; row < 3; ++row) {
    const Prediction alone = predictor.predict(rows.narrow(0, row, 1));
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(alone.extras[i].values.item<double>(), here.extras[i].values[row].item<double>(),
                  1e-5)
          << "by itself";
    }
  }
}

TEST(FoldModels, AreMeasuredOnTestRowsAlone) {
  const Runtime runtime;
  const Workspace workspace;
  const fs::path table = sums(workspace.folder(), 400);
  const RunOutcome run =
      run_workflow(runtime, runtime.resolve(with_folds(table)), workspace.options());
  const RunOutcome split = run_workflow(
      runtime,
      runtime.resolve(with_folds(table, {{"outputs", {{"conformal", {{"method", nullptr}}}}}})),
      workspace.options());
  ASSERT_TRUE(run.result.training.test);
  const std::vector<MetricValue>& tested = run.result.training.test->metrics;

  EXPECT_EQ(run.result.outputs->not_evaluated.size(), 4U);
  EXPECT_TRUE(std::isnan(value_of(run.result.cross_validation->mean_metrics, "interval_coverage")));
  EXPECT_NEAR(value_of(tested, "interval_coverage"), 0.9, 0.08);
  EXPECT_EQ(read_file(run.folder / "model.safetensors"),
            read_file(split.folder / "model.safetensors"));
  EXPECT_EQ(value_of(tested, "rmse"), value_of(split.result.training.test->metrics, "rmse"));
  // The same rows from a file, by the models as they were saved: those that no fold validated.
  std::vector<bool> is_validated(400, false);
  std::istringstream predictions(read_file(run.folder / "predictions.csv"));
  std::string line;
  std::getline(predictions, line);
  while (std::getline(predictions, line))
    is_validated[std::stoul(line)] = true;
  std::ofstream file(workspace.folder() / "test.csv");
  std::istringstream all(read_file(table));
  std::getline(all, line);
  file << line << '\n';
  for (const bool is_left_out : is_validated) {
    std::getline(all, line);
    if (!is_left_out)
      file << line << '\n';
  }
  file.close();
  const EvaluationResult again =
      Predictor::load(runtime, run.folder).evaluate_file(workspace.folder() / "test.csv");
  EXPECT_EQ(again.sample_count, 100);
  EXPECT_EQ(value_of(again.metrics, "interval_coverage"), value_of(tested, "interval_coverage"));
  EXPECT_NEAR(value_of(again.metrics, "interval_width"), value_of(tested, "interval_width"), 1e-6);
}

TEST(FoldModels, OfAStoppedAndResumedRunHaveTheBitsOfAWholeOne) {
  const Runtime runtime;
  const Workspace workspace;
  const json document = with_folds(sums(workspace.folder(), 120), {{"training", {{"epochs", 30}}}});
  const RunOutcome whole = run_workflow(runtime, runtime.resolve(document), workspace.options());
  std::stop_source stop;
  RunOptions stopping = workspace.options();
  stopping.stop = stop.get_token();
  stopping.hooks.on_epoch = [&](const FitId& fit, const EpochSummary& epoch) {
    if (fit.path() == "fold-2" && epoch.epoch == 2)  // the first fold is done
      stop.request_stop();
  };
  EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), stopping), Interrupted);
  fs::path cut;
  for (const auto& entry : fs::directory_iterator(workspace.folder() / "runs")) {
    if (!fs::exists(entry.path() / "result.json"))
      cut = entry.path();
  }
  // As a kill between the two halves of a model leaves it, before the fit has a record.
  fs::create_directories(cut / "folds" / "4");
  std::ofstream(cut / "folds" / "4" / "model.safetensors") << "half";
  resume_run(runtime, cut, workspace.options());

  for (const char* const file :
       {"model.safetensors", "folds/1/model.safetensors", "folds/4/model.safetensors",
        "folds/4/preprocessing/state.json", "outputs/state.json", "outputs/state.safetensors"}) {
    ASSERT_TRUE(fs::exists(whole.folder / file)) << file;
    EXPECT_EQ(read_file(cut / file), read_file(whole.folder / file)) << file;
  }
  expect_same(Predictor::load(runtime, cut).predict(some_rows()),
              Predictor::load(runtime, whole.folder).predict(some_rows()));
}

TEST(FoldModels, ThatAreGoneOrDamagedAreNamed) {
  const Runtime runtime;
  const Workspace workspace;
  const json document = with_folds(sums(workspace.folder(), 120), {{"training", {{"epochs", 1}}}});
  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const auto expect_failure = [&](const std::string& what) {
    try {
      Predictor::load(runtime, run.folder).predict(some_rows());
      FAIL() << what;
    } catch (const StorageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
  };
  std::ofstream(run.folder / "folds" / "2" / "model.safetensors", std::ios::app) << "more";
  expect_failure("checksum");
  EXPECT_THROW(resume_run(runtime, run.folder, workspace.options()), StorageError);
  fs::remove_all(run.folder / "folds" / "2");
  expect_failure("no model of fold 2");
  fs::remove_all(run.folder / "folds");
  expect_failure("models of the folds are missing");
}

TEST(FoldModels, AreRefusedBeforeTheTrainingWhereTheyCannotCoverTheRows) {
  const Runtime runtime;
  const Workspace workspace;
  const fs::path table = sums(workspace.folder(), 120);
  const auto refusal = [&](const json& validation) {
    json document = with_folds(table);
    document["validation"] = validation;
    return refusal_of(runtime, document);
  };

  EXPECT_THAT(refusal({{"use", "hold_out"}}),
              HasSubstr("expected 2 folds or more, got 1 of \"hold_out\""));
  EXPECT_THAT(refusal({{"use", "k_fold"}, {"refit", false}}), HasSubstr("\"refit\": true"));
  EXPECT_THAT(refusal({{"use", "repeated"}, {"repeats", 2}}), HasSubstr("rows in several"));
  EXPECT_THAT(refusal({{"use", "walk_forward"}, {"test_size", 0.2}}), HasSubstr("rows in none"));
  EXPECT_EQ(refusal({{"use", "k_fold"}}), "");
  json searching = with_folds(table);
  searching["search"] = {{"space", {{"optimizer.learning_rate", {{"log_uniform", {0.01, 0.1}}}}}},
                         {"trials", 2}};
  EXPECT_THAT(refusal_of(runtime, searching), HasSubstr("which a search does not keep"));
}

}  // namespace
}  // namespace treadle
