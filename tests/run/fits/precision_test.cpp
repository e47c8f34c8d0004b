// Whole runs in every precision that this libtorch has on a CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include <ATen/ops/randn.h>

#include <treadle/base/error.h>
#include <treadle/core/precision/precision.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/task_random.h>
#include <treadle/tensor/torch_versions.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::bits_of;
using ::testing::HasSubstr;
using testing::Impatient;
using testing::moons;
using testing::read_file;
using testing::watching_runtime;
using testing::Workspace;

json result_of(const std::filesystem::path& folder) {
  return json::parse(read_file(folder / "result.json"));
}

std::vector<std::string> below_float32() {
  std::vector<std::string> all{"bf16", "bf16-mixed", "fp8-tensorwise", "fp8-rowwise",
                               "fp8-delayed"};
  if (torch_versions::kHasHalfOnCpu)
    all.emplace_back("fp16-mixed");
  return all;
}

/// Batch and layer normalization, dropout, a recurrent layer, branches, recomputation.
json networks(const std::string& precision) {
  json mlp = moons(1);
  mlp["model"] = {{"use", "mlp"}, {"hidden", {8, 8}}, {"norm", "batch"}, {"dropout", 0.2}};
  json recomputed = mlp;
  recomputed["model"]["recompute_layers"] = 1;
  json branches = moons(1);
  branches["model"] = json::parse(R"({"use": "flow", "branches": "parallel", "flow": [
    {"use": "dense", "out_features": 8}, "layer_norm",
    {"use": "split", "branches": [[{"use": "dense", "out_features": 4}, "gelu"],
                                   [{"use": "dense", "out_features": 4}, "tanh"]]},
    {"use": "merge", "with": "cat"}, {"use": "dropout", "p": 0.2}, "head"]})");
  json sequences = json::parse(R"({"treadle": 1, "seed": 5, "name": "series",
    "data": {"use": "ar_series", "length": 90, "window": 8},
    "model": {"use": "flow", "flow": [{"use": "unflatten", "shape": [8, 1]},
      {"use": "lstm", "hidden_size": 6, "return_sequences": false}, "head"]},
    "training": {"epochs": 2, "batch_size": 10}})");
  json attention = json::parse(R"({"treadle": 1, "seed": 5, "name": "series",
    "data": {"use": "ar_series", "length": 60, "window": 8},
    "model": {"use": "flow", "flow": [{"use": "unflatten", "shape": [8, 1]},
      {"use": "dense", "out_features": 8}, {"use": "attention", "num_heads": 2},
      {"use": "recompute", "body": [{"use": "dense", "out_features": 8}, "gelu"]},
      {"use": "reduce", "dims": [1], "reduction": "mean"}, "head"]},
    "training": {"epochs": 2, "batch_size": 10, "ema": {"use": "ema", "decay": 0.8}}})");
  json shards = moons(1);
  json parts = moons(1);
  parts["training"]["gradients"] = {{"use", "accumulate"}, {"micro_batches", 3}};
  json all = {{"mlp", mlp},
              {"recomputed", recomputed},
              {"branches", branches},
              {"sequences", sequences},
              {"attention", attention},
              {"shards", shards},
              {"parts", parts}};
  for (auto& [name, document] : all.items()) {
    document["precision"] = precision;
    document["resources"] = {{"workers", 1}};
  }
  all["shards"]["resources"]["shards"] = 3;
  return all;
}

class Precisions : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path run(const json& document) {
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options()).folder;
  }

  const Runtime runtime_ = watching_runtime();
  const Workspace workspace_;
};

TEST_P(Precisions, GiveTheSameBitsForAnyNumberOfWorkers) {
  const json all = networks(GetParam());
  for (const auto& [name, document] : all.items()) {
    const std::string alone = bits_of(run(document));
    json together = document;
    together["resources"]["workers"] = 3;
    EXPECT_EQ(alone, bits_of(run(together))) << name;
  }
}

TEST_P(Precisions, ResumeToTheSameBits) {
  const json all = networks(GetParam());
  for (const auto& [name, document] : all.items()) {
    json watched = document;
    watched["training"]["checkpoint"] = {{"every", "1st"}};
    watched["schedule"] = "watched";
    const Workspace workspace;
    const Impatient impatient(runtime_, 5);
    RunOptions options = workspace.options();
    options.stop = impatient.token();
    ASSERT_THROW(run_workflow(runtime_, runtime_.resolve(watched), options), Interrupted) << name;
    const auto stopped = std::filesystem::directory_iterator(options.output)->path();
    resume_run(runtime_, stopped, workspace.options());
    EXPECT_EQ(bits_of(stopped), bits_of(run(watched))) << name;
  }
}

TEST_P(Precisions, LearnWhatFloat32Learns) {
  json document = moons(1);
  document["training"]["epochs"] = 12;
  document["training"].erase("early_stopping");
  document["model"].erase("dropout");  // draws other numbers in another dtype
  document["validation"] = {{"use", "hold_out"}};
  const double loss = result_of(run(document))["final_loss"].get<double>();
  document["precision"] = GetParam();
  const double its = result_of(run(document))["final_loss"].get<double>();
  EXPECT_NEAR(its, loss, 0.03 * loss);
  EXPECT_NE(its, loss);
}

TEST_P(Precisions, ChangeNoBitWhereLayersAreRecomputedOrBranchesRunAtOnce) {
  json all = networks(GetParam());
  json sequential = all["branches"];
  sequential["model"]["branches"] = "sequential";
  for (const char* name : {"mlp", "recomputed"})
    all[name]["model"].erase("dropout");  // a part that is recomputed draws from a seed of its own
  EXPECT_EQ(bits_of(run(all["mlp"])), bits_of(run(all["recomputed"])));
  json at_once = all["branches"];
  at_once["resources"]["workers"] = 3;
  EXPECT_EQ(bits_of(run(sequential)), bits_of(run(at_once)));
}

TEST_P(Precisions, PredictFloat32ForAnyNumberOfRows) {
  json document = networks(GetParam())["mlp"];
  document["validation"] = {{"use", "hold_out"}};
  const auto folder = run(document);
  const Predictor predictor = Predictor::load(runtime_, folder);
  const TaskRandom random(3);
  const at::Tensor rows = at::randn({50, 2});

  const Prediction prediction = predictor.predict(rows);

  EXPECT_EQ(prediction.values.scalar_type(), at::kFloat);
  EXPECT_TRUE(prediction.values.isfinite().all().item<bool>());
  // In 16 bits a row's result may depend on the rows beside it as little as in 32. A scale of all
  // values moves it by a step of E4M3 at most.
  EXPECT_TRUE(predictor.predict(rows.slice(0, 0, 7))
                  .values.allclose(prediction.values.slice(0, 0, 7), 0.02, 0.02));
}

INSTANTIATE_TEST_SUITE_P(Of, Precisions, ::testing::ValuesIn(below_float32()), [](const auto& one) {
  std::string name = one.param;
  std::erase(name, '-');
  return name;
});

TEST(Precision, IsWrittenWhereItIsUsed) {
  const Runtime runtime;
  const Workspace workspace;
  json document = networks("bf16")["mlp"];
  const auto folder = run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
  EXPECT_THAT(read_file(folder / "model.safetensors"), HasSubstr("\"BF16\""));
  document["precision"] = "bf16-mixed";
  const auto mixed = run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
  EXPECT_THAT(read_file(mixed / "model.safetensors"),
              AllOf(HasSubstr("\"F32\""), ::testing::Not(HasSubstr("\"BF16\""))));
}

TEST(Precision, OfFloat16IsRefusedWhereLibtorchLacksIt) {
  const Runtime runtime;
  const Workspace workspace;
  json document = networks("fp16-mixed")["mlp"];
  if (torch_versions::kHasHalfOnCpu) {
    const auto folder =
        run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
    EXPECT_THAT(read_file(folder / "history.csv"),
                AllOf(HasSubstr("loss_scale"), HasSubstr("skipped_steps")));
    return;
  }
  try {
    run_workflow(runtime, runtime.resolve(document), workspace.options());
    FAIL() << "libtorch 1.13 has no float16 operators for a CPU";
  } catch (const DocumentError& error) {
    EXPECT_EQ(error.problems().front().pointer, "/precision");
    EXPECT_THAT(error.what(), HasSubstr("bf16-mixed"));
  }
}

// "avx512_bf16", "amx_bf16": as Linux has them.
TEST(Precision, SaysBeforehandThatItIsSlow) {
#if defined(__x86_64__)
  std::ifstream file("/proc/cpuinfo");
  const std::string flags((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const bool is_fast =
      flags.find("avx512_bf16") != std::string::npos || flags.find("amx_bf16") != std::string::npos;
  const Runtime runtime;
  const Workspace workspace;
  const auto folder =
      run_workflow(runtime, runtime.resolve(networks("bf16-mixed")["mlp"]), workspace.options())
          .folder;
  const std::string choices = result_of(folder)["choices"].dump();
  EXPECT_EQ(choices.find("is slower than one in float32") == std::string::npos, is_fast) << choices;
#else
  GTEST_SKIP() << "/proc/cpuinfo has other words here";
#endif
}

TEST(Precision, OfFloat8SaysThatItIsEmulated) {
  const Runtime runtime;
  for (const char* precision : {"fp8-tensorwise", "fp8-rowwise", "fp8-delayed"}) {
    const Workspace workspace;
    const auto folder =
        run_workflow(runtime, runtime.resolve(networks(precision)["mlp"]), workspace.options())
            .folder;
    EXPECT_THAT(result_of(folder)["choices"].dump(), HasSubstr("fp8 is emulated")) << precision;
  }
}

// Scales of fp8-delayed are found anew, and are no weights.
TEST(Precision, OfFloat8TakesAndGivesWeightsOfFloat32) {
  const Runtime runtime;
  const Workspace workspace;
  json document = networks("fp8-delayed")["mlp"];
  document["training"]["epochs"] = 2;
  const auto narrow = run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
  EXPECT_THAT(read_file(narrow / "model.safetensors"), HasSubstr("float8_scales.scale"));

  document["precision"] = "float32";
  document["model"]["weights"] = {{"path", (narrow / "model.safetensors").string()}};
  const auto wide = run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
  EXPECT_THAT(read_file(wide / "model.safetensors"), ::testing::Not(HasSubstr("float8_scales")));

  document["precision"] = "fp8-delayed";
  document["model"]["weights"]["path"] = (wide / "model.safetensors").string();
  EXPECT_NO_THROW(run_workflow(runtime, runtime.resolve(document), workspace.options()));
}

TEST(Precision, OfFloat8PredictsWithTheScalesOfTheTraining) {
  const Runtime runtime;
  const Workspace workspace;
  const auto folder =
      run_workflow(runtime, runtime.resolve(networks("fp8-delayed")["mlp"]), workspace.options())
          .folder;
  const Predictor predictor = Predictor::load(runtime, folder);
  const TaskRandom random(3);
  const at::Tensor rows = at::randn({20, 2});
  const at::Tensor alone = predictor.predict(rows.slice(0, 0, 1)).values;

  at::Tensor far = rows.clone();
  far.slice(0, 1).mul_(1e4);  // by scales of the values at hand, nothing would be left of the first

  EXPECT_TRUE(predictor.predict(far).values.slice(0, 0, 1).allclose(alone, 1e-5, 1e-5));
  EXPECT_TRUE(predictor.predict(rows).values.slice(0, 0, 1).allclose(alone, 1e-5, 1e-5));
}

TEST(Precision, HasANameInTheSchema) {
  std::vector<std::string> names;
  for (const NamedPrecision& one : precisions())
    names.emplace_back(one.name);
  EXPECT_EQ(workflow_schema()["properties"]["precision"]["enum"], json(names));
}

}  // namespace
}  // namespace treadle
