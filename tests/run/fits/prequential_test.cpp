// Trainings that test each batch before they train on it: beside a loop by hand, through stops, for
// any number of workers, and on data that ends or does not.
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>

#include <ATen/ops/addmm.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/tensor/safetensors.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using ::testing::HasSubstr;
using testing::read_file;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::int64_t kRows = 2000;
constexpr std::int64_t kBatch = 10;
constexpr std::int64_t kWindow = 250;
constexpr double kRate = 0.05;

/// A linear classifier of the SEA concepts, which change every 500 rows.
Json linear_on_sea() {
  return Json::parse(R"({
    "treadle": 1, "name": "sea", "seed": 7, "precision": "float64",
    "data": {"use": "sea", "concept_rows": 500, "seed": 5},
    "model": {"use": "mlp", "hidden": []},
    "loss": "cross_entropy",
    "metrics": ["accuracy"],
    "optimizer": {"use": "sgd", "learning_rate": 0.05},
    "training": {"use": "prequential", "window": 250, "batch_size": 10, "changes": "groups",
                 "recovery": {"metric": "accuracy", "threshold": 0.75, "share": 0.95}}})");
}

/// With everything that has a state of its own.
Json restless() {
  Json document = linear_on_sea();
  document["precision"] = "float32";
  document["transforms"] = {"standardize"};
  document["model"] = {{"use", "mlp"}, {"hidden", {8}}, {"norm", "batch"}, {"dropout", 0.2}};
  document["optimizer"] = {{"use", "adamw"}, {"learning_rate", 0.01}};
  document["schedule"] = "watched";
  document["training"]["ema"] = {{"decay", 0.9}};
  document["training"]["checkpoint"] = {{"every", "7st"}};
  return document;
}

/// The results of a run, bit for bit.
std::string all_of(const RunOutcome& run) {
  return bits_of(run.folder) + to_json(run.result).at("prequential").dump();
}

RunOutcome trained(const Runtime& runtime, const Json& document, const Workspace& workspace) {
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

struct Window {
  double accuracy = 0;
  double loss = 0;
};

/// The plain loop: predict a batch, count, take a step of gradient descent.
std::vector<Window> by_hand(const Runtime& runtime, at::Tensor weight, at::Tensor bias) {
  const auto data = runtime.registry().make<DataProvider>(
      "sea", Config(Json{{"concept_rows", 500}, {"seed", 5}}));
  data->open({});
  std::vector<std::int64_t> all(kRows);
  std::iota(all.begin(), all.end(), 0);
  Batch rows;
  data->ask<RowReader>()->gather(all, rows);

  weight = weight.clone().requires_grad_();
  bias = bias.clone().requires_grad_();
  std::vector<Window> windows(kRows / kWindow);
  for (std::int64_t row = 0; row < kRows; row += kBatch) {
    const at::Tensor x = rows.inputs[0].narrow(0, row, kBatch).to(at::kDouble);
    const at::Tensor y = rows.targets[0].narrow(0, row, kBatch);
    const at::Tensor scores = at::addmm(bias, x, weight.t());
    const at::Tensor loss = torch::nn::functional::cross_entropy(scores, y);
    Window& window = windows[static_cast<std::size_t>(row / kWindow)];
    window.accuracy += scores.argmax(1).eq(y).sum().item<double>() / kWindow;
    window.loss += loss.item<double>() * kBatch / kWindow;
    loss.backward();
    const at::NoGradGuard no_gradients;
    for (at::Tensor* const parameter : {&weight, &bias}) {
      parameter->sub_(parameter->grad(), kRate);
      parameter->mutable_grad().zero_();
    }
  }
  return windows;
}

TEST(Prequential, HasTheWindowsOfTheLoopByHand) {
  const Runtime runtime;
  const Workspace workspace;
  Json untrained = linear_on_sea();  // a step that no number is changed by
  untrained["optimizer"]["learning_rate"] = 1e-300;
  untrained["training"]["max_steps"] = 1;
  const TensorFile weights =
      read_safetensors(trained(runtime, untrained, workspace).folder / "model.safetensors");
  at::Tensor weight;
  at::Tensor bias;
  for (const auto& [name, tensor] : weights.tensors)
    (tensor.dim() == 2 ? weight : bias) = tensor;

  const Json result = to_json(trained(runtime, linear_on_sea(), workspace).result);
  const Json& tested = result.at("prequential");
  const std::vector<Window> expected = by_hand(runtime, weight, bias);

  ASSERT_EQ(tested.at("windows").size(), expected.size());
  double mean = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Json& window = tested.at("windows")[i];
    EXPECT_EQ(window.at("first_row"), static_cast<std::int64_t>(i) * kWindow);
    EXPECT_EQ(window.at("rows"), kWindow);
    EXPECT_EQ(window.at("task"), "group " + std::to_string(i / 2));
    EXPECT_NEAR(window.at("metrics").at("accuracy").get<double>(), expected[i].accuracy, 1e-12);
    EXPECT_NEAR(window.at("loss").get<double>(), expected[i].loss, 1e-9);
    mean += expected[i].accuracy / static_cast<double>(expected.size());
  }
  EXPECT_NEAR(tested.at("metrics").at("accuracy").get<double>(), mean, 1e-12);
  EXPECT_EQ(result.at("metrics").at("accuracy"), tested.at("metrics").at("accuracy"));
  EXPECT_EQ(result.at("evaluated_on"), "prequential");
  ASSERT_EQ(tested.at("changes").size(), 3U);
  EXPECT_EQ(tested.at("changes")[1].at("row"), 1000);
  EXPECT_NEAR(tested.at("changes")[1].at("before").at("metrics").at("accuracy").get<double>(),
              expected[3].accuracy, 1e-12);
}

TEST(Prequential, ResumesToTheSameBitsWhereverItIsStoppedAndForAnyNumberOfWorkers) {
  const Runtime runtime = watching_runtime();
  const Workspace whole;
  Json document = restless();
  document["resources"] = {{"workers", 1}};
  const std::string expected = all_of(trained(runtime, document, whole));

  document["resources"] = {{"workers", 3}};
  {
    const Workspace workspace;
    EXPECT_EQ(all_of(trained(runtime, document, workspace)), expected);
  }
  // In the first window, with its last batch, with the first of the next, in the last.
  for (const int steps : {3, 25, 26, 190}) {
    const Workspace workspace;
    EXPECT_EQ(all_of(testing::stopped_and_resumed(runtime, workspace, document, steps)), expected)
        << "stopped in step " << steps;
  }
}

TEST(Prequential, TakesAStreamWithoutEndUntilItsLastStep) {
  const Runtime runtime = watching_runtime();
  Json document = restless();
  document["data"] = {{"use", "moons"}, {"rows", "endless"}};
  document["training"]["changes"] = {{{"row", 600}, {"name", "second"}}};
  document["training"]["max_steps"] = 90;
  const Workspace whole;
  const RunOutcome run = trained(runtime, document, whole);

  const Json windows = to_json(run.result).at("prequential").at("windows");
  ASSERT_EQ(windows.size(), 4U);
  EXPECT_EQ(windows[2].at("task"), "task 1");
  EXPECT_EQ(windows[3].at("task"), "second");
  EXPECT_EQ(windows[3].at("rows"), 150);
  const Workspace stopped;
  EXPECT_EQ(all_of(testing::stopped_and_resumed(runtime, stopped, document, 40)), all_of(run));
}

TEST(Prequential, TestsTheRowsOfTheLastBatchHoweverFewTheyAre) {
  const Runtime runtime;
  Json document = linear_on_sea();
  document["data"]["concept_rows"] = 129;  // 516 rows: two windows, a batch, and 6 rows
  const Workspace workspace;

  const Json tested = to_json(trained(runtime, document, workspace).result).at("prequential");

  ASSERT_EQ(tested.at("windows").size(), 3U);
  EXPECT_EQ(tested.at("windows")[2].at("rows"), 16);
  EXPECT_EQ(tested.at("sample_count"), 516);
}

TEST(Prequential, IsDrawnInTheReport) {
  const Runtime runtime;
  const Workspace workspace;

  const std::string report =
      read_file(trained(runtime, linear_on_sea(), workspace).folder / "report.html");

  EXPECT_THAT(report, HasSubstr("\"block\":\"adaptation\""));
  EXPECT_THAT(report, HasSubstr("\"row\":500,\"task\":\"group 1\""));
}

TEST(Prequential, RefusesWhatMakesNoSenseWhereItStands) {
  const Runtime runtime;
  Json document = linear_on_sea();
  document["validation"] = {{"use", "k_fold"}, {"folds", 3}};
  document["training"].update({{"epochs", 2}, {"shuffle", true}, {"window", 255}});
  try {
    runtime.resolve(document);
    ADD_FAILURE() << "it was accepted";
  } catch (const DocumentError& error) {
    std::vector<std::string> places;
    for (const Problem& problem : error.problems())
      places.push_back(problem.pointer);
    EXPECT_THAT(places, ::testing::UnorderedElementsAre("/validation", "/training/epochs",
                                                        "/training/shuffle", "/training/window"));
    EXPECT_THAT(error.what(), HasSubstr("take 250 or 260"));
  }
  document = linear_on_sea();
  document["data"] = {{"use", "moons"}};
  const Workspace workspace;
  try {
    trained(runtime, document, workspace);
    ADD_FAILURE() << "moons have no groups";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/training/changes"));
  }
}

TEST(Prequential, NamesTheGroupsOfItsDataAsTheFileDoes) {
  const Runtime runtime;
  const Workspace workspace;
  {
    std::ofstream rows(workspace.folder() / "rows.csv");
    rows << "a,site,y\n";
    for (int row = 0; row < 300; ++row)
      rows << row % 7 << "," << (row < 150 ? "north" : "south") << "," << row % 2 << "\n";
  }
  Json document = linear_on_sea();
  document["data"] = {{"use", "csv"},
                      {"path", (workspace.folder() / "rows.csv").string()},
                      {"group", "site"},
                      {"target", "y"}};
  document["training"]["window"] = 50;

  const Json found = to_json(trained(runtime, document, workspace).result).at("prequential");

  EXPECT_EQ(found.at("windows").front().at("task"), "north");
  EXPECT_EQ(found.at("changes").front().at("task"), "south");
}

}  // namespace
}  // namespace treadle
