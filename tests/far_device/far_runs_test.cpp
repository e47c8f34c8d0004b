// Whole runs on a device that is not there, beside the same runs on a CPU by tensor operations.
#include <cstdlib>

#include <gmock/gmock.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>

#include <treadle/base/error.h>
#include <treadle/core/device_backend.h>
#include <treadle/host/run/devices.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/case_name.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::bits_of;
using testing::CaseName;
using testing::Impatient;
using testing::read_file;
using testing::Workspace;
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// With the far device among its plugins, which libtorch knows from the first use on.
Runtime& runtime() {
  static Runtime* const kRuntime = [] {
    RuntimeOptions options;
    options.plugin_dirs = {TREADLE_FAR_PLUGINS, TREADLE_TEST_PLUGINS};
    return new Runtime(options);
  }();
  return *kRuntime;
}

json on(const std::string& device, json document, int workers = 1) {
  document["treadle"] = 1;
  document["resources"]["device"] = device;
  document["resources"]["workers"] = workers;
  return document;
}

RunOutcome run(const json& document, const Workspace& workspace) {
  return run_workflow(runtime(), runtime().resolve(document), workspace.options());
}

/// Weights, history, and what was measured at the end.
std::string all_bits(const RunOutcome& outcome) {
  return bits_of(outcome.folder) + outcome.result.at("metrics").dump();
}

std::int64_t memory_in_use() {
  const auto far = runtime().registry().make<DeviceBackend>("far");
  const c10::Device device = far->find().devices.front().device;
  far->synchronize(device);  // batches copied ahead of a training that has ended
  return far->memory(device).in_use;
}

struct FarRun {
  std::string name;
  json document;
  /// The operators of recurrent layers are others on a device: libtorch looks at inputs of all
  /// times at once on a CPU alone.
  double tolerance = 0;
};

json document(const char* text) {
  return json::parse(text);
}

std::vector<FarRun> runs() {
  return {
      {"Mlp", document(R"({"data": {"use": "moons", "rows": 90}, "transforms": ["standardize"],
          "model": {"use": "mlp", "hidden": [8, 8], "norm": "batch", "dropout": 0.2},
          "training": {"epochs": 3, "batch_size": 16, "ema": {"use": "ema", "decay": 0.8},
                       "early_stopping": {"use": "early_stopping", "patience": "1ep"}},
          "validation": {"use": "k_fold", "folds": 2}, "metrics": ["accuracy", "macro_f1", "auc"]})")},
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
          "metrics": ["log_loss"]})")},
      {"Shards", document(R"({"data": {"use": "moons", "rows": 90},
          "model": {"use": "mlp", "hidden": [8], "norm": "batch", "dropout": 0.1},
          "resources": {"shards": 3}, "optimizer": {"use": "lamb", "learning_rate": 0.01},
          "training": {"epochs": 3, "batch_size": 30}, "metrics": ["accuracy"]})")},
      {"Parts", document(R"({"data": {"use": "moons", "rows": 90}, "dtype": "float64",
          "model": {"use": "mlp", "hidden": [8]}, "optimizer": {"use": "rmsprop"},
          "training": {"epochs": 3, "batch_size": 32, "clip": {"value": 0.01},
                       "gradients": {"use": "accumulate", "micro_batches": 4},
                       "callbacks": ["log_gradient_norm", "divergence_guard"]},
          "metrics": ["accuracy"]})")},
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
    for (const auto& [name, value] : expected.result.at("metrics").items())
      EXPECT_NEAR(got.result.at("metrics").at(name).get<double>(), value.get<double>(), tolerance);
  }
};

TEST_P(FarRuns, HaveTheBitsOfTensorsOnACpu) {
  const Workspace here;
  const Workspace there;
  const RunOutcome near = run(on("near", GetParam().document), here);
  const std::int64_t before = memory_in_use();
  const RunOutcome far = run(on("far", GetParam().document), there);

  expect_alike(far, near);
  EXPECT_EQ(memory_in_use(), before) << "what the run has taken is given back";
  EXPECT_EQ(far.result.at("environment").at("device"), "far (a device that is not there)");
}

// Protection is for the whole process, so hidden accesses are found with one worker; with more,
// fits and batches are there at the same time.
TEST_P(FarRuns, HaveTheSameBitsForAnyNumberOfWorkers) {
  const Workspace one;
  const Workspace three;

  EXPECT_EQ(all_bits(run(on("far", GetParam().document, 3), three)),
            all_bits(run(on("far", GetParam().document), one)));
}

TEST_P(FarRuns, PredictTheSameWhereverTheyAreLoaded) {
  const Workspace workspace;
  const RunOutcome outcome = run(on("far", GetParam().document), workspace);
  const TaskRandom random(4);
  const Predictor there = Predictor::load(runtime(), outcome.folder, "far");
  const Predictor here = Predictor::load(runtime(), outcome.folder, "near");
  const auto dtype = GetParam().document.value("dtype", "") == "float64" ? at::kDouble : at::kFloat;
  std::vector<std::int64_t> sizes = there.data_spec().inputs.front().shape;
  sizes.insert(sizes.begin(), 7);
  const at::Tensor rows = at::randn(sizes, dtype);

  const at::Tensor far = there.predict(rows).values;

  EXPECT_TRUE(far.is_cpu());
  EXPECT_TRUE(far.allclose(here.predict(rows).values, GetParam().tolerance, GetParam().tolerance));
}

INSTANTIATE_TEST_SUITE_P(Workloads, FarRuns, ::testing::ValuesIn(runs()), CaseName());

// --- stopping, resuming, other devices

json watched(json document) {
  document["schedule"] = "watched";
  return document;
}

/// A run on the far device that was stopped on its way.
class StoppedFarRun : public ::testing::Test {
 protected:
  StoppedFarRun() {
    const Impatient impatient(runtime(), 9);
    RunOptions options = workspace_.options();
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime(), runtime().resolve(on("far", document_)), options),
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

  EXPECT_EQ(all_bits(resume_run(runtime(), folder_, workspace_.options())), all_bits(expected));
}

TEST_F(StoppedFarRun, GoesOnElsewhereOnlyWhereThatIsAllowed) {
  RunOptions options = workspace_.options();
  options.device = "near";
  try {
    resume_run(runtime(), folder_, options);
    FAIL() << "the kind of device is a condition of the run";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("device was far (a device that is not there)"),
                                    HasSubstr("is now near"), HasSubstr("--allow-differences")));
  }
  options.allow_differences = true;

  const RunOutcome outcome = resume_run(runtime(), folder_, options);

  // Both compute the same, so the end is that of either.
  const Workspace whole;
  EXPECT_EQ(all_bits(outcome), all_bits(run(on("near", document_), whole)));
}

TEST_F(StoppedFarRun, SaysWhyItsDeviceIsNotThere) {
  setenv("FAR_DEVICE_GONE", "the cable is out; plug it in", 1);
  try {
    resume_run(runtime(), folder_, workspace_.options());
    ADD_FAILURE() << "there is no device";
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/resources/device"), HasSubstr("\"far\""),
                                    HasSubstr("the cable is out")));
  }
  unsetenv("FAR_DEVICE_GONE");

  EXPECT_NO_THROW(resume_run(runtime(), folder_, workspace_.options())) << "nothing was lost";
}

TEST(FarDocuments, AutoTakesTheDeviceAndSaysSo) {
  const Workspace workspace;
  const RunOutcome outcome = run(on("auto", runs().front().document), workspace);

  EXPECT_EQ(json::parse(read_file(outcome.folder / "workflow.json"))["resources"]["device"],
            "far:0");
  EXPECT_THAT(outcome.result.at("choices").dump(),
              HasSubstr("device: far:0 (a device that is not there)"));
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

TEST(FarDocuments, ADryRunEstimatesTheMemoryOfTheDevice) {
  const json document = runs().front().document;
  const DryRun far = dry_run(runtime(), runtime().resolve(on("far", document)));
  const DryRun near = dry_run(runtime(), runtime().resolve(on("near", document)));

  EXPECT_EQ(far.device, "far:0");
  EXPECT_GT(far.estimated_device_bytes, 0);
  EXPECT_EQ(near.device, "near");
  EXPECT_EQ(near.estimated_device_bytes, 0);
}

TEST(FarDocuments, AreListedWithWhatIsNotThere) {
  const DeviceListing listing = list_devices(runtime());
  ASSERT_EQ(listing.found.size(), 3U);
  EXPECT_EQ(listing.found[1].name, "far:0");
  EXPECT_EQ(listing.preferred, "far:0");

  setenv("FAR_DEVICE_GONE", "the cable is out", 1);
  const DeviceListing gone = list_devices(runtime());
  unsetenv("FAR_DEVICE_GONE");

  EXPECT_EQ(gone.found.size(), 2U);
  ASSERT_EQ(gone.absent.size(), 1U);
  EXPECT_EQ(gone.absent[0].why, "the cable is out");
  EXPECT_EQ(gone.preferred, "cpu");
}

}  // namespace
}  // namespace treadle
