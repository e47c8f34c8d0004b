// Loops that the framework has never heard of, as plugins of a test: a GAN, whose steps have two
// losses for two sets of parameters, and a stump, which is computed from all rows without
// gradients.
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/host/run/exported_model.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/training/training_contract.h>

#include "app_process.h"
#include "loops/stump/stump.h"
#include "watched_runs.h"

namespace treadle {
namespace {

using testing::AppProcess;
using testing::bits_of;
using ::testing::HasSubstr;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string refusal_of(const Runtime& runtime, const Json& document) {
  try {
    runtime.resolve(document);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// --- The GAN

constexpr std::int64_t kModes = 8;
constexpr double kDeviation = 0.1;

/// The centers of the mixture, on a circle of radius 1.
std::array<double, 2> center(std::int64_t mode) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(mode) / kModes;
  return {std::cos(angle), std::sin(angle)};
}

/// Rows of noise beside rows of the mixture, which have nothing to do with them.
fs::path mixture(const fs::path& folder, std::int64_t rows) {
  const TaskRandom random(5);
  const at::Tensor noise = at::randn({rows, 4}, at::kDouble);
  const fs::path path = folder / "mixture.csv";
  std::ofstream file(path);
  file << "noise_1,noise_2,x,y\n";
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::array<double, 2> at = center(i % kModes);
    const double* const numbers = noise.data_ptr<double>() + 4 * i;
    file << numbers[0] << ',' << numbers[1] << ',' << at[0] + kDeviation * numbers[2] << ','
         << at[1] + kDeviation * numbers[3] << '\n';
  }
  return path;
}

Json gan(const fs::path& data, std::int64_t epochs, int workers = 2) {
  return {{"treadle", 1},
          {"name", "mixture"},
          {"seed", 1},
          {"data", {{"use", "csv"}, {"path", data.string()}, {"target", {"x", "y"}}}},
          {"model", {{"use", "gan_tables"}, {"hidden", 64}}},
          {"loss", {{{"use", "mse"}, {"target", "x"}}, {{"use", "mse"}, {"target", "y"}}}},
          {"optimizer", {{"use", "adam"}, {"learning_rate", 0.001}, {"betas", {0.5, 0.99}}}},
          {"training",
           {{"use", "gan"},
            {"epochs", epochs},
            {"batch_size", 200},
            {"checkpoint", {{"every", "7st"}}}}},
          {"validation", {{"use", "hold_out"}, {"fraction", 0.1}}},
          {"resources", {{"workers", workers}}}};
}

// A mode is hit by a sample within three standard deviations (Srivastava et al. 2017, VEEGAN).
TEST(Gan, HitsAllModesOfAMixture) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const RunOutcome run = run_workflow(
      runtime, runtime.resolve(gan(mixture(workspace.folder(), 4000), 120)), workspace.options());

  const TaskRandom random(6);
  const at::Tensor noise = at::randn({1000, 2});
  const std::vector<at::Tensor> inputs{noise};
  const Predictions made = Predictor::load(runtime, run.folder).predict(inputs);
  const at::Tensor rows =
      at::stack({made[0].values.flatten(), made[1].values.flatten()}, 1).to(at::kDouble);
  std::string hits;
  for (std::int64_t mode = 0; mode < kModes; ++mode) {
    const std::array<double, 2> its = center(mode);
    const at::Tensor distance =
        rows.sub(at::tensor({its[0], its[1]}, at::kDouble)).square().sum(1).sqrt();
    const auto hit = distance.lt(3 * kDeviation).sum().item<std::int64_t>();
    hits += " " + std::to_string(hit);
    EXPECT_GT(hit, 0) << "mode " << mode;
  }
  RecordProperty("hits", hits);
}

TEST(Gan, BothLossesAreInTheHistory) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const RunOutcome run = run_workflow(
      runtime, runtime.resolve(gan(mixture(workspace.folder(), 600), 2)), workspace.options());
  const std::string history = testing::read_file(run.folder / "history.csv");
  EXPECT_THAT(history, HasSubstr("loss.discriminator"));
  EXPECT_THAT(history, HasSubstr("loss.generator"));
}

TEST(Gan, HasTheSameBitsForAnyWorkersAndAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path data = mixture(workspace.folder(), 600);
  const auto bits = [&](int workers, const Json& more = Json::object()) {
    Json document = gan(data, 4, workers);
    document.merge_patch(more);
    return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
  };
  const std::string whole = bits(1);
  EXPECT_EQ(bits(3), whole);
  const Json shards{{"resources", {{"shards", 3}}}};
  EXPECT_EQ(bits(1, shards), bits(3, shards));

  Json watched = gan(data, 4);
  watched["schedule"] = "watched";
  const std::string expected = bits(1, {{"schedule", "watched"}});
  testing::Impatient impatient(runtime, 5);
  RunOptions options = workspace.options();
  options.stop = impatient.token();
  options.output = workspace.folder() / "stopped";
  EXPECT_THROW(run_workflow(runtime, runtime.resolve(watched), options), Interrupted);
  const fs::path stopped = fs::directory_iterator(options.output)->path();
  EXPECT_EQ(bits_of(resume_run(runtime, stopped).folder), expected);
}

// --- The stump

Json stump_on_iris(int workers = 2) {
  return {{"treadle", 1},
          {"name", "iris"},
          {"seed", 3},
          {"data",
           {{"use", "csv"},
            {"path", (testing::source_folder() / "examples/data/iris.csv").string()},
            {"target", "species"}}},
          {"model", "stump"},
          {"metrics", {"accuracy"}},
          {"training", {{"use", "fit_stump"}}},
          {"validation", {{"use", "k_fold"}, {"folds", 5}, {"stratify", true}}},
          {"resources", {{"workers", workers}}}};
}

class StumpOnIris : public ::testing::Test {
 protected:
  RunOutcome run(const Json& document, const std::string& name) const {
    RunOptions options = workspace_.options();
    options.output = workspace_.folder() / name;
    return run_workflow(runtime_, runtime_.resolve(document), options);
  }

  const Runtime runtime_ = watching_runtime();
  const Workspace workspace_;
};

// scikit-learn's DecisionTreeClassifier(max_depth=1) splits iris at petal length 2.45 as well: on
// one side all 50 setosas, on the other 50 of each of the other two.
TEST_F(StumpOnIris, IsThatOfScikitLearn) {
  // The model of the run is refitted on all rows.
  const Predictor predictor = Predictor::load(runtime_, run(stump_on_iris(), "all").folder);
  const auto share = [&](double petal_length, std::int64_t species) {
    const at::Tensor rows = at::tensor({5.0, 3.0, petal_length, 1.0}).view({1, 4});
    return predictor.predict(rows).values[0][species].item<double>();
  };
  EXPECT_NEAR(share(2.449, 0), 1, 0.01);
  EXPECT_NEAR(share(2.451, 0), 0, 0.01);
  EXPECT_NEAR(share(2.451, 1), 0.5, 0.01);
  EXPECT_NEAR(share(6, 2), 0.5, 0.01);
}

TEST_F(StumpOnIris, IsCrossValidatedToTheSameBitsForAnyWorkers) {
  const RunOutcome one = run(stump_on_iris(1), "one");
  const RunOutcome three = run(stump_on_iris(3), "three");
  EXPECT_EQ(bits_of(one.folder), bits_of(three.folder));
  EXPECT_NEAR(one.result.at("accuracy"), 2.0 / 3, 0.02) << to_json(one.result).dump(1);
}

TEST_F(StumpOnIris, IsPredictedFromItsExport) {
  const RunOutcome whole = run(stump_on_iris(), "whole");
  const fs::path file = workspace_.folder() / "stump.safetensors";
  export_model(whole.folder, file);
  const at::Tensor rows = at::rand({20, 4}) * 7;
  EXPECT_TRUE(at::equal(Predictor::load(runtime_, whole.folder).predict(rows).values,
                        Predictor::load(runtime_, file).predict(rows).values));
}

TEST_F(StumpOnIris, IsTuned) {
  Json document = stump_on_iris();
  document["search"] = {{"tuner", "grid"},
                        {"space", {{"training.min_rows", {{"choice", {1, 20, 60}}}}}},
                        {"trials", 3}};
  const RunOutcome tuned = run(document, "tuned");
  EXPECT_EQ(tuned.result.search->trials.size(), 3U) << to_json(tuned.result).dump(1);
}

TEST_F(StumpOnIris, GoesOnAfterAnyKill) {
  const std::string expected = bits_of(run(stump_on_iris(), "expected").folder);
  const fs::path document = workspace_.folder() / "iris.json";
  std::ofstream(document) << stump_on_iris();
  const std::string plugins = testing::test_plugins().string();
  for (int kill = 0; kill < 5; ++kill) {
    const fs::path output = workspace_.folder() / ("killed-" + std::to_string(kill));
    AppProcess killed({testing::runner(), "run", document.string(), "--quiet", "--output",
                       output.string(), "--plugin-dir", plugins});
    const auto folder = [&] {
      std::error_code error;
      const fs::directory_iterator runs(output, error);
      return runs == fs::directory_iterator() ? fs::path() : runs->path();
    };
    // Once there is something to resume, at different places.
    killed.wait(std::chrono::seconds(60), [&] { return fs::exists(folder() / "workflow.json"); });
    killed.wait(std::chrono::milliseconds(10 * kill));
    killed.kill_now();
    AppProcess resumed(
        {testing::runner(), "resume", folder().string(), "--quiet", "--plugin-dir", plugins});
    EXPECT_EQ(resumed.join(), 0);
    EXPECT_EQ(bits_of(folder()), expected) << kill;
  }
}

TEST_F(StumpOnIris, HasNoUseForWhatIsAboutGradients) {
  Json document = stump_on_iris();
  document["optimizer"] = "adamw";
  EXPECT_THAT(refusal_of(runtime_, document), HasSubstr("has no gradients"));
}

}  // namespace

namespace testing {

INSTANTIATE_TEST_SUITE_P(Stump, TrainingContract,
                         ::testing::Values(TrainingCase{
                             .name = "Stump",
                             .make =
                                 [] {
                                   return std::make_unique<stumps::StumpTraining>(
                                       Config(nlohmann::json::object()));
                                 },
                             .loss_falls_to = 0.9,  // one question explains little of a line
                             .make_model =
                                 [] {
                                   ModelSpec spec;
                                   spec.inputs.push_back({"x", {2}});
                                   spec.outputs.push_back({"value", {1}});
                                   spec.dtype = at::kDouble;
                                   return std::make_shared<stumps::StumpModel>(spec);
                                 }}),
                         CaseName());

}  // namespace testing
}  // namespace treadle
