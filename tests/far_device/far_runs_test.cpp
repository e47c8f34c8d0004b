// Whole runs on a device that is not there, beside the same runs on a CPU by tensor operations.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>

#include <treadle/base/error.h>
#include <treadle/host/run/devices.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>

#include "far_runs.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::all_bits;
using testing::CaseName;
using testing::far_memory;
using testing::far_runtime;
using testing::FarCrossings;
using testing::Impatient;
using testing::on;
using testing::read_file;
using testing::run;
using testing::Workspace;
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct FarRun {
  std::string name;
  json document;
  /// The operators of recurrent layers are others on a device: libtorch looks at inputs of all
  /// times at once on a CPU alone.
  double tolerance = 0;
  /// In the result of a run whose steps are captured.
  const char* captured = "\"replayed_steps\":";
};

/// Dropout, on a device without generators.
constexpr const char* kHostDraws = "a seed that the host draws";

json document(const char* text) {
  return json::parse(text);
}

std::vector<FarRun> runs() {
  return {
      {"Mlp", document(R"({"data": {"use": "moons", "rows": 90}, "transforms": ["standardize"],
          "model": {"use": "mlp", "hidden": [8, 8], "norm": "batch", "dropout": 0.2},
          "training": {"epochs": 3, "batch_size": 16, "ema": {"use": "ema", "decay": 0.8},
                       "early_stopping": {"use": "early_stopping", "patience": "1ep"}},
          "validation": {"use": "k_fold", "folds": 2}, "metrics": ["accuracy", "macro_f1", "auc"]})"),
       0, kHostDraws},
      {"LeNet", document(R"({"data": {"use": "friedman1", "rows": 60, "features": 64},
          "transforms": [{"use": "standardize", "target": true}, {"use": "noise", "std": 0.1}],
          "model": {"use": "flow", "flow": [{"use": "unflatten", "shape": [1, 8, 8]},
              {"use": "conv2d", "out_channels": 3, "kernel_size": 3, "padding": 1}, "relu",
              {"use": "max_pool2d", "kernel_size": 2}, "flatten", {"use": "dense", "out_features": 8},
              "silu", "head"]},
          "optimizer": {"use": "sgd", "learning_rate": 0.01, "momentum": 0.9},
          "schedule": {"use": "cosine", "warmup": "2st"},
          "training": {"epochs": 3, "batch_size": 8, "clip": {"norm": 1},
                       "swa": {"use": "swa", "start": "1ep"}},
          "metrics": ["rmse", "r2"]})")},
      {"Lstm", document(R"({"data": {"use": "ar_series", "length": 60, "window": 8},
          "model": {"use": "flow", "flow": [{"use": "unflatten", "shape": [8, 1]},
              {"use": "lstm", "hidden_size": 6, "return_sequences": false}, "head"]},
          "training": {"epochs": 3, "batch_size": 10}, "metrics": ["rmse"]})"),
       1e-5},
      {"Transformer", document(R"({"data": {"use": "ar_series", "length": 60, "window": 8},
          "model": {"use": "flow", "flow": [{"use": "unflatten", "shape": [8, 1]},
              {"use": "dense", "out_features": 8}, "positional_encoding",
              {"use": "residual", "body": [{"use": "attention", "num_heads": 2}]}, "layer_norm",
              {"use": "residual", "body": [{"use": "dense", "out_features": 16}, "gelu",
                                           {"use": "dense", "out_features": 8}]}, "layer_norm",
              {"use": "reduce", "dims": [1], "reduction": "mean"}, "head"]},
          "training": {"epochs": 2, "batch_size": 10}, "metrics": ["rmse"]})")},
      {"Experts", document(R"({"data": {"use": "spirals", "rows": 80}, "seed": 3,
          "loss": {"use": "cross_entropy", "class_weights": "balanced"},
          "model": {"use": "flow", "flow": [{"use": "dense", "out_features": 8},
              {"use": "mixture_of_experts", "router": {"use": "softmax_router", "num_experts": 2},
               "experts": [[{"use": "dense", "out_features": 8}, "tanh"],
                           [{"use": "dense", "out_features": 8}, "relu"]]},
              {"use": "switch", "by": "row",
               "router": {"use": "argmax_selector", "num_branches": 2, "by": "row"},
               "branches": [[{"use": "dense", "out_features": 8}], ["identity"]]},
              {"use": "loop", "body": [{"use": "dense", "out_features": 8}, "tanh"], "times": 2},
              "head"]},
          "training": {"epochs": 3, "batch_size": 16,
                       "sampler": {"use": "weighted"}},
          "metrics": ["log_loss"]})"),
       0, "\"not_captured\":\"node \\\"switch_0\\\" (switch) failed"},
      // The host draws a seed for the branches from the generator that this device draws from.
      {"DropoutInFrontOfBranches", document(R"({"data": {"use": "moons", "rows": 90},
          "model": {"use": "flow", "flow": [{"use": "dense", "out_features": 8},
              {"use": "dropout", "p": 0.3},
              {"use": "split", "branches": [[{"use": "dense", "out_features": 8}, "tanh"],
                                            [{"use": "dense", "out_features": 8}, "relu"]]},
              {"use": "merge", "with": "add"}, "head"]},
          "training": {"epochs": 3, "batch_size": 16}, "metrics": ["accuracy"]})"),
       0, "\"not_captured\":\"node \\\"dropout_0\\\" (dropout) failed"},
      {"Shards", document(R"({"data": {"use": "moons", "rows": 90},
          "model": {"use": "mlp", "hidden": [8], "norm": "batch", "dropout": 0.1},
          "resources": {"shards": 3}, "optimizer": {"use": "lamb", "learning_rate": 0.01},
          "training": {"epochs": 3, "batch_size": 30}, "metrics": ["accuracy"]})"),
       0, kHostDraws},
      {"Parts", document(R"({"data": {"use": "moons", "rows": 90}, "precision": "float64",
          "model": {"use": "mlp", "hidden": [8]}, "optimizer": {"use": "rmsprop"},
          "training": {"epochs": 3, "batch_size": 32, "clip": {"value": 0.01},
                       "gradients": {"use": "accumulate", "micro_batches": 4},
                       "callbacks": ["log_gradient_norm", "divergence_guard"]},
          "metrics": ["accuracy"]})")},
      {"Bf16", document(R"({"data": {"use": "moons", "rows": 90}, "precision": "bf16",
          "model": {"use": "mlp", "hidden": [8]}, "optimizer": {"use": "adafactor"},
          "training": {"epochs": 3, "batch_size": 16}, "metrics": ["accuracy"]})")},
      {"Fp8Delayed", document(R"({"data": {"use": "ar_series", "length": 60, "window": 8},
          "precision": "fp8-delayed", "resources": {"shards": 2},
          "model": {"use": "flow", "flow": [{"use": "unflatten", "shape": [8, 1]},
              {"use": "dense", "out_features": 8}, {"use": "attention", "num_heads": 2}, "gelu",
              {"use": "reduce", "dims": [1], "reduction": "mean"}, "head"]},
          "training": {"epochs": 3, "batch_size": 10}, "metrics": ["rmse"]})")},
      {"Fp8Rowwise", document(R"({"data": {"use": "moons", "rows": 90}, "precision": "fp8-rowwise",
          "model": {"use": "flow", "flow": [{"use": "dense", "out_features": 8}, "relu",
              {"use": "fp8_linear", "out_features": 20}, "relu",
              {"use": "nvfp4_linear", "out_features": 8}, "relu", "head"]},
          "training": {"epochs": 3, "batch_size": 16}, "metrics": ["accuracy"]})")},
      {"Compiled", document(R"({"data": {"use": "friedman1", "rows": 60},
          "model": {"use": "flow", "execution": "compiled",
                    "flow": [{"use": "dense", "out_features": 16}, "layer_norm", "softplus",
                             {"use": "residual", "body": [{"use": "dense", "out_features": 16}, "tanh"]},
                             "head"]},
          "loss": {"use": "quantile", "quantiles": [0.1, 0.5, 0.9]},
          "training": {"epochs": 3, "batch_size": 16}, "metrics": ["mae"]})")},
  };
}

class FarRuns : public ::testing::TestWithParam<FarRun> {
 protected:
  void expect_alike(const RunOutcome& got, const RunOutcome& expected) {
    const double tolerance = GetParam().tolerance;
    if (tolerance == 0) {
      EXPECT_EQ(all_bits(got), all_bits(expected));
      return;
    }
    for (const MetricValue& metric : expected.result.metrics())
      EXPECT_NEAR(got.result.at(metric.name), metric.value, tolerance);
  }
};

TEST_P(FarRuns, HaveTheBitsOfTensorsOnACpu) {
  const Workspace here;
  const Workspace there;
  const RunOutcome near = run(on("near", GetParam().document), here);
  const std::int64_t before = far_memory().in_use;
  const RunOutcome far = run(on("far", GetParam().document), there);

  expect_alike(far, near);
  EXPECT_EQ(far_memory().in_use, before) << "what the run has taken is given back";
  EXPECT_EQ(far.result.environment.at("device"), "far (a device that is not there)");
}

// Protection is for the whole process, so hidden accesses are found with one worker; with more,
// fits and batches are there at the same time.
TEST_P(FarRuns, HaveTheSameBitsForAnyNumberOfWorkers) {
  const Workspace one;
  const Workspace three;

  EXPECT_EQ(all_bits(run(on("far", GetParam().document, 3), three)),
            all_bits(run(on("far", GetParam().document), one)));
}

// The recurrent, the routed and the sharded ones too.
TEST_P(FarRuns, HaveTheSameBitsWhereStepsAreCaptured) {
  const Workspace eager;
  const Workspace captured;
  json document = on("far", GetParam().document);
  document["training"]["epochs"] = 5;
  const RunOutcome expected = run(document, eager);
  document["resources"]["execution"] = "captured";
  document["resources"]["workers"] = 3;  // fits that capture at once take turns

  const RunOutcome outcome = run(document, captured);

  EXPECT_EQ(all_bits(outcome), all_bits(expected));
  EXPECT_THAT(to_json(outcome.result).dump(), ::testing::Not(HasSubstr("records other work")));
  EXPECT_THAT(to_json(outcome.result).dump(), HasSubstr(GetParam().captured));
}

TEST_P(FarRuns, PredictTheSameWhereverTheyAreLoaded) {
  const Workspace workspace;
  const RunOutcome outcome = run(on("far", GetParam().document), workspace);
  const TaskRandom random(4);
  const Predictor there = Predictor::load(far_runtime(), outcome.folder, "far");
  const Predictor here = Predictor::load(far_runtime(), outcome.folder, "near");
  const auto dtype =
      GetParam().document.value("precision", "") == "float64" ? at::kDouble : at::kFloat;
  std::vector<std::int64_t> sizes = there.data_spec().inputs.front().shape;
  sizes.insert(sizes.begin(), 7);
  const at::Tensor rows = at::randn(sizes, dtype);

  const at::Tensor far = there.predict(rows).values;

  EXPECT_TRUE(far.is_cpu());
  EXPECT_TRUE(far.allclose(here.predict(rows).values, GetParam().tolerance, GetParam().tolerance));
}

INSTANTIATE_TEST_SUITE_P(Workloads, FarRuns, ::testing::ValuesIn(runs()), CaseName());

// --- what steps cost

/// Rows whose steps nothing makes wait: no value of a batch decides what is computed.
class FarSteps : public ::testing::TestWithParam<FarRun> {
 protected:
  struct Cost {
    std::int64_t waits = 0;
    std::int64_t to_host = 0;
  };

  /// Of a whole run whose epochs have so many batches, fewer than there are between two reads.
  static Cost cost_of(json document, std::int64_t rows, std::int64_t batches) {
    document["training"]["batch_size"] = rows / batches;
    document["training"]["epochs"] = 2;
    document["validation"] = {{"use", "hold_out"}, {"rows", 16}};
    document["training"]["evaluation_batch_size"] = 64;
    const Workspace workspace;
    const FarCrossings crossings;
    run(on("far", document), workspace);
    return {crossings.waits(), crossings.to_host()};
  }
};

TEST_P(FarSteps, WaitForNothingBetweenTwoReads) {
  const Cost few = cost_of(GetParam().document, 64, 4);
  const Cost many = cost_of(GetParam().document, 64, 16);

  EXPECT_EQ(many.waits, few.waits) << "steps four times as many";
  EXPECT_EQ(many.to_host, few.to_host) << "steps four times as many";
  EXPECT_GT(few.to_host, 0) << "epochs are read";
}

std::vector<FarRun> runs_without_waits() {
  std::vector<FarRun> all{
      {"Mlp", document(R"({"data": {"use": "moons", "rows": 80}, "transforms": ["standardize"],
          "model": {"use": "mlp", "hidden": [8, 8], "norm": "batch", "dropout": 0.2},
          "training": {"ema": {"use": "ema", "decay": 0.8}}, "metrics": ["accuracy", "auc"]})")},
      {"LeNet", document(R"({"data": {"use": "friedman1", "rows": 80, "features": 64},
          "transforms": [{"use": "standardize", "target": true}, {"use": "noise", "std": 0.1}],
          "model": {"use": "flow", "flow": [{"use": "unflatten", "shape": [1, 8, 8]},
              {"use": "conv2d", "out_channels": 3, "kernel_size": 3, "padding": 1}, "relu",
              {"use": "max_pool2d", "kernel_size": 2}, "flatten", {"use": "dense", "out_features": 8},
              "silu", "head"]},
          "schedule": {"use": "cosine", "warmup": "2st"}, "training": {"clip": {"norm": 1}}})")},
      {"Lstm", document(R"({"data": {"use": "ar_series", "length": 88, "window": 8},
          "model": {"use": "flow", "flow": [{"use": "unflatten", "shape": [8, 1]},
              {"use": "lstm", "hidden_size": 6, "return_sequences": false}, "head"]}})")},
      {"Transformer", document(R"({"data": {"use": "ar_series", "length": 88, "window": 8},
          "model": {"use": "flow", "flow": [{"use": "unflatten", "shape": [8, 1]},
              {"use": "dense", "out_features": 8}, "positional_encoding",
              {"use": "residual", "body": [{"use": "attention", "num_heads": 2}]}, "layer_norm",
              {"use": "reduce", "dims": [1], "reduction": "mean"}, "head"]}})")},
      {"Experts", document(R"({"data": {"use": "spirals", "rows": 80},
          "loss": {"use": "cross_entropy", "class_weights": "balanced"},
          "model": {"use": "flow", "flow": [{"use": "dense", "out_features": 8},
              {"use": "mixture_of_experts", "router": {"use": "softmax_router", "num_experts": 2},
               "experts": [[{"use": "dense", "out_features": 8}, "tanh"],
                           [{"use": "dense", "out_features": 8}, "relu"]]}, "head"]}})")},
      {"Shards", document(R"({"data": {"use": "moons", "rows": 80},
          "model": {"use": "mlp", "hidden": [8]}, "resources": {"shards": 3},
          "optimizer": {"use": "lamb", "learning_rate": 0.01}})")},
      {"MicroBatches", document(R"({"data": {"use": "moons", "rows": 80},
          "model": {"use": "mlp", "hidden": [8]},
          "training": {"gradients": {"use": "accumulate", "micro_batches": 2}}})")},
      {"Compiled", document(R"({"data": {"use": "friedman1", "rows": 80},
          "model": {"use": "flow", "execution": "compiled",
                    "flow": [{"use": "dense", "out_features": 16}, "layer_norm", "softplus", "head"]},
          "loss": {"use": "quantile", "quantiles": [0.1, 0.5, 0.9]}})")}};
  // Two targets, each with its loss: how much and of which kind.
  static const Workspace* const kFiles = new Workspace;  // as long as the process
  const std::string table = (kFiles->folder() / "two.csv").string();
  std::ofstream file(table);
  file << "x,y,kind,price\n";
  for (int i = 0; i < 80; ++i)
    file << i % 7 << ',' << i % 5 << ',' << (i % 2 == 0 ? "old" : "new") << ',' << i % 11 << '\n';
  json two = document(R"({"data": {"use": "csv",
          "target": ["kind", "price"]},
      "loss": [{"use": "cross_entropy", "target": "kind"}, {"use": "mse", "target": "price"}],
      "model": {"use": "flow", "flow": [{"use": "dense", "out_features": 8},
          "tanh", "head"]}})");
  two["data"]["path"] = table;
  all.push_back({"TwoTargets", two});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Workloads, FarSteps, ::testing::ValuesIn(runs_without_waits()),
                         CaseName());

// The guide lists the waits of each of these steps: a callback that reads numbers, a switch.
TEST(FarStepsThatWait, AreCounted) {
  const auto waits_with = [](const char* text, std::int64_t batches) {
    json asked = document(text);
    asked["training"]["batch_size"] = 48 / batches;
    asked["training"]["epochs"] = 1;
    asked["validation"] = {{"use", "hold_out"}, {"rows", 16}};
    const Workspace workspace;
    const FarCrossings crossings;
    run(on("far", asked), workspace);
    return crossings.waits() + crossings.to_host();
  };
  for (const char* const text :
       {R"({"data": {"use": "moons", "rows": 64}, "model": {"use": "mlp", "hidden": [8]},
            "training": {"callbacks": ["divergence_guard"]}})",
        R"({"data": {"use": "moons", "rows": 64},
            "model": {"use": "flow", "flow": [{"use": "switch", "by": "row",
                "router": {"use": "argmax_selector", "num_branches": 2, "by": "row"},
                "branches": [[{"use": "dense", "out_features": 2}], ["identity"]]}, "head"]}})"})
    EXPECT_GE(waits_with(text, 16) - waits_with(text, 4), 12) << text;
}

TEST(FarFits, GiveTheirMemoryBackOneByOne) {
  const auto peak_with = [](int folds) {
    json asked = document(R"({"data": {"use": "moons", "rows": 96},
        "model": {"use": "mlp", "hidden": [64, 64]}, "training": {"epochs": 1, "batch_size": 24},
        "validation": {"use": "k_fold"}})");
    asked["validation"]["folds"] = folds;
    const auto far = far_runtime().registry().make<DeviceBackend>("far");
    far->reset_peak(far->find().devices.front().device);
    const Workspace workspace;
    run(on("far", asked), workspace);
    return far_memory().peak;
  };
  const std::int64_t before = far_memory().in_use;
  const std::int64_t of_two = peak_with(2);
  const std::int64_t of_eight = peak_with(8);

  EXPECT_GT(of_two - before, 64 * 64 * 4);
  // One fit's parameters, gradients and optimizer have more than a quarter of it.
  EXPECT_LT(of_eight - before, (of_two - before) * 5 / 4) << "fits that ended hold memory";
}

// --- stopping, resuming, other devices

json watched(json document) {
  document["schedule"] = "watched";
  return document;
}

/// A run on the far device that was stopped on its way.
class StoppedFarRun : public ::testing::Test {
 protected:
  StoppedFarRun() {
    const Impatient impatient(far_runtime(), 9);
    RunOptions options = workspace_.options();
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(far_runtime(), far_runtime().resolve(on("far", document_)), options),
                 Interrupted);
    folder_ = fs::directory_iterator(workspace_.options().output)->path();
  }

  const json document_ = watched(runs().front().document);
  Workspace workspace_;
  fs::path folder_;
};

TEST_F(StoppedFarRun, EndsWithTheBitsOfOneThatNeverStopped) {
  const Workspace whole;
  const RunOutcome expected = run(on("far", document_), whole);

  EXPECT_EQ(all_bits(resume_run(far_runtime(), folder_, workspace_.options())), all_bits(expected));
}

TEST_F(StoppedFarRun, GoesOnElsewhereOnlyWhereThatIsAllowed) {
  RunOptions options = workspace_.options();
  options.device = "near";
  try {
    resume_run(far_runtime(), folder_, options);
    FAIL() << "the kind of device is a condition of the run";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("device was far (a device that is not there)"),
                                    HasSubstr("is now near"), HasSubstr("--allow-differences")));
  }
  options.allow_differences = true;

  const RunOutcome outcome = resume_run(far_runtime(), folder_, options);

  // Both compute the same, so the end is that of either.
  const Workspace whole;
  EXPECT_EQ(all_bits(outcome), all_bits(run(on("near", document_), whole)));
}

TEST_F(StoppedFarRun, SaysWhyItsDeviceIsNotThere) {
  setenv("FAR_DEVICE_GONE", "the cable is out; plug it in", 1);
  try {
    resume_run(far_runtime(), folder_, workspace_.options());
    ADD_FAILURE() << "there is no device";
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/resources/device"), HasSubstr("\"far\""),
                                    HasSubstr("the cable is out")));
  }
  unsetenv("FAR_DEVICE_GONE");

  EXPECT_NO_THROW(resume_run(far_runtime(), folder_, workspace_.options())) << "nothing was lost";
}

// The operator that happened to be called is not to blame, and what was saved is not lost.
TEST(FarDocuments, ADeviceThatDisappearsIsNamedAndTheRunCanGoOn) {
  json document = runs().front().document;
  document["training"]["checkpoint"]["every"] = "1st";
  const Workspace whole;
  const RunOutcome expected = run(on("far", document), whole);
  for (const std::string execution : {"eager", "captured"}) {
    document["resources"]["execution"] = execution;
    const Workspace workspace;
    setenv("FAR_DEVICE_FAILS_AT", "4000", 1);
    try {
      run(on("far", document), workspace);
      ADD_FAILURE() << "there are more calls than that";
    } catch (const TrainingError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("the device far:0 failed"), HasSubstr("resume"),
                                      HasSubstr("it showed as: "), HasSubstr("in training")));
    }
    unsetenv("FAR_DEVICE_FAILS_AT");
    const fs::path folder = fs::directory_iterator(workspace.options().output)->path();

    EXPECT_EQ(testing::bits_of(resume_run(far_runtime(), folder, workspace.options()).folder),
              testing::bits_of(expected.folder));
  }
}

// One fit more at a time would ask for memory that is not there, and end the run.
TEST(FarDocuments, FoldsWaitForTheMemoryOfTheDevice) {
  json document = json::parse(R"({"data": {"use": "moons", "rows": 120},
      "model": {"use": "mlp", "hidden": [200, 200]},
      "training": {"epochs": 6, "batch_size": 16, "evaluation_batch_size": 16},
      "validation": {"use": "k_fold", "folds": 4, "refit": false}})");
  const Workspace alone;
  const RunOutcome expected = run(on("far", document), alone);
  const auto peak = expected.result.device->memory_peak_bytes;
  const Workspace together;
  setenv("FAR_DEVICE_MEMORY", std::to_string(peak * 17 / 10).c_str(), 1);

  const RunOutcome outcome = run(on("far", document, 4), together);

  unsetenv("FAR_DEVICE_MEMORY");
  EXPECT_EQ(all_bits(outcome), all_bits(expected));
  const std::string events = read_file(outcome.folder / "events.jsonl");
  EXPECT_THAT(events, HasSubstr("of memory of far:0"));
}

TEST(FarDocuments, AutoTakesTheDeviceAndSaysSo) {
  const Workspace workspace;
  const RunOutcome outcome = run(on("auto", runs().front().document), workspace);

  EXPECT_EQ(json::parse(read_file(outcome.folder / "workflow.json"))["resources"]["device"],
            "far:0");
  EXPECT_THAT(to_json(outcome.result).at("choices").dump(),
              HasSubstr("device: far:0 (a device that is not there)"));
}

TEST(FarDocuments, AutoNamesAPluginThatItCouldNotUse) {
  setenv("FAR_DEVICE_BROKEN", "its library is too old", 1);
  const Workspace workspace;
  const RunOutcome outcome = run(on("auto", runs().front().document), workspace);
  unsetenv("FAR_DEVICE_BROKEN");

  EXPECT_EQ(json::parse(read_file(outcome.folder / "workflow.json"))["resources"]["device"], "cpu");
  EXPECT_THAT(to_json(outcome.result).at("choices").dump(),
              HasSubstr("device: without far: its library is too old"));
}

TEST(FarDocuments, ADeviceWithoutAPluginOrANumberTooHighIsRefused) {
  const Workspace workspace;
  const json document = runs().front().document;
  EXPECT_THROW(run(on("nowhere", document), workspace), DocumentError);
  try {
    run(on("far:1", document), workspace);
    FAIL();
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no device 1"), HasSubstr("1 device,")));
  }
}

TEST(FarDocuments, SayWhatToLowerWhereTheMemoryRunsOut) {
  json document = runs().front().document;
  document["model"]["hidden"] = {400, 400};
  const Workspace workspace;
  setenv("FAR_DEVICE_MEMORY", "1048576", 1);
  try {
    run(on("far", document), workspace);
    ADD_FAILURE() << "it takes more than a mebibyte";
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("memory of far:0"), HasSubstr("Tried to allocate"),
                                    HasSubstr("of 1 MiB"), HasSubstr("training.batch_size")));
  }
  unsetenv("FAR_DEVICE_MEMORY");

  EXPECT_NO_THROW(run(on("far", document), workspace)) << "the device is as good as before";
}

TEST(FarDocuments, AnOpenBatchSizeIsTheLargestThatFits) {
  const auto size_with = [](const char* memory) {
    setenv("FAR_DEVICE_MEMORY", memory, 1);
    const json document = json::parse(R"({"data": {"use": "moons", "rows": 1200},
        "model": {"use": "mlp", "hidden": [4096]},
        "training": {"epochs": 1, "batch_size": "auto", "evaluation_batch_size": 16}})");
    const Workspace workspace;
    const RunOutcome outcome = run(on("far", document), workspace);
    unsetenv("FAR_DEVICE_MEMORY");
    EXPECT_THAT(to_json(outcome.result).at("choices").dump(), HasSubstr("batch size: "));
    return json::parse(read_file(outcome.folder / "workflow.json"))["training"]["batch_size"]
        .get<std::int64_t>();
  };
  const std::int64_t little = size_with("12582912");
  const std::int64_t more = size_with("25165824");
  EXPECT_GT(more, little);
  EXPECT_LT(more, 512) << "all rows would need more";
  EXPECT_EQ(little & (little - 1), 0);
  EXPECT_THROW(size_with("20000"), TrainingError) << "not even one row fits";
  unsetenv("FAR_DEVICE_MEMORY");
}

TEST(FarDocuments, PredictingSaysWhatToLowerToo) {
  const Workspace workspace;
  const RunOutcome outcome = run(on("near", runs().front().document), workspace);
  const Predictor there = Predictor::load(far_runtime(), outcome.folder, "far");
  const TaskRandom random(4);
  const at::Tensor rows = at::randn({5000, 2});

  setenv("FAR_DEVICE_MEMORY", "65536", 1);
  EXPECT_THROW(there.predict(rows), TrainingError);
  EXPECT_THROW(Predictor::load(far_runtime(), outcome.folder, "nowhere"), DocumentError);
  unsetenv("FAR_DEVICE_MEMORY");

  EXPECT_NO_THROW(there.predict(rows));
}

TEST(FarDocuments, ADryRunEstimatesTheMemoryOfTheDevice) {
  const json document = runs().front().document;
  const DryRun far = dry_run(far_runtime(), far_runtime().resolve(on("far", document)));
  const DryRun near = dry_run(far_runtime(), far_runtime().resolve(on("near", document)));

  EXPECT_EQ(far.device, "far:0");
  EXPECT_GT(far.estimated_device_bytes, 0);
  EXPECT_EQ(near.device, "near");
  EXPECT_EQ(near.estimated_device_bytes, 0);
}

TEST(FarDocuments, AreListedWithWhatIsNotThere) {
  const DeviceListing listing = list_devices(far_runtime());
  ASSERT_EQ(listing.found.size(), 3U);
  EXPECT_EQ(listing.found[1].name, "far:0");
  EXPECT_EQ(listing.preferred, "far:0");

  setenv("FAR_DEVICE_GONE", "the cable is out", 1);
  const DeviceListing gone = list_devices(far_runtime());
  unsetenv("FAR_DEVICE_GONE");

  EXPECT_EQ(gone.found.size(), 2U);
  ASSERT_EQ(gone.absent.size(), 1U);
  EXPECT_EQ(gone.absent[0].why, "the cable is out");
  EXPECT_EQ(gone.preferred, "cpu");
}

}  // namespace
}  // namespace treadle
