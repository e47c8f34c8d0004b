// Runs that start from weights that are there already.
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/core/model/quantized_weights.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/safetensors.h>

#include "workspace.h"

namespace treadle {
namespace {

using testing::moons;
using testing::Workspace;
namespace fs = std::filesystem;
using ::testing::Contains;

class Notes final : public RunObserver {
 public:
  std::vector<std::string> heard;

 private:
  void do_noted(const std::string& text) override { heard.push_back(text); }
};

/// Two layers that start from `file` and hardly move.
nlohmann::json starting_from(const fs::path& file) {
  nlohmann::json document = moons();
  document["transforms"] = nlohmann::json::array();
  document["validation"] = {{"use", "hold_out"}};
  document["model"] = {{"use", "mlp"}, {"hidden", {3}}, {"weights", {{"path", file.string()}}}};
  document["optimizer"] = {{"use", "adamw"}, {"learning_rate", 1e-30}, {"weight_decay", 0}};
  document["training"] = {{"use", "standard"}, {"epochs", 1}};
  return document;
}

TensorFile weights() {
  return {{{"layers.0.weight", at::full({3, 2}, 0.25)},
           {"layers.0.bias", at::full({3}, -0.5)},
           {"layers.1.weight", at::full({2, 3}, 2.0)},
           {"layers.1.bias", at::full({2}, 1.0)}},
          {}};
}

TEST(GivenWeights, AreWhereTheTrainingStarts) {
  const Workspace workspace;
  const Runtime runtime;
  const TensorFile given = weights();
  write_safetensors(workspace.folder() / "given.safetensors", given);
  Notes notes;
  RunOptions options = workspace.options();
  options.observers = {&notes};

  // A relative path starts at the document's folder.
  const RunOutcome run = run_workflow(
      runtime, runtime.resolve(starting_from("given.safetensors"), workspace.folder()), options);

  const TensorFile trained = read_safetensors(run.folder / "model.safetensors");
  for (const auto& [name, tensor] : given.tensors)
    EXPECT_TRUE(at::equal(trained.tensors.at(name), tensor)) << name;
  EXPECT_THAT(notes.heard,
              Contains("weights: from " + (workspace.folder() / "given.safetensors").string()));
  EXPECT_EQ(run.result.environment.at("weights_hash").get<std::string>().size(), 32);

  // A trained model has weights of its own.
  fs::remove(workspace.folder() / "given.safetensors");
  EXPECT_EQ(Predictor::load(runtime, run.folder).predict(at::full({1, 2}, 0.5)).values.size(0), 1);
}

/// The weights that a run has which hardly moves from those of `file`.
NamedTensors trained_from(const fs::path& file, bool is_strict, const Workspace& workspace) {
  const Runtime runtime;
  nlohmann::json document = starting_from(file);
  document["model"]["weights"]["strict"] = is_strict;
  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  return read_safetensors(run.folder / "model.safetensors").tensors;
}

TEST(GivenWeights, MayBeInt8WithScalesOrInHalfPrecision) {
  const Workspace workspace;
  const fs::path file = workspace.folder() / "given.safetensors";
  TensorFile given = weights();
  given.tensors["layers.0.weight"] = at::tensor({1.0F, 0.3F, -0.2F, 0.7F, 0.0F, 0.0F}).view({3, 2});
  for (const NamedWeightDtype& stored : weight_dtypes()) {
    const NamedTensors converted = convert_weights(given.tensors, {}, stored.dtype);
    write_safetensors(file, {converted, {}});
    for (const bool is_strict : {true, false}) {
      const NamedTensors trained = trained_from(file, is_strict, workspace);

      ASSERT_EQ(trained.size(), 4U);
      for (const auto& [name, tensor] : trained) {
        const at::Tensor expected = converted.at(name).scalar_type() == at::kChar
                                        ? dequantized(converted, name)
                                        : converted.at(name).to(at::kFloat);
        EXPECT_TRUE(at::equal(tensor, expected)) << stored.name << ": " << name;
      }
    }
  }
}

TEST(GivenWeights, MayBeThoseOfAnExportedModel) {
  const Workspace workspace;
  const Runtime runtime;
  const fs::path given = workspace.folder() / "given.safetensors";
  const fs::path exported = workspace.folder() / "exported.safetensors";
  write_safetensors(given, weights());
  const RunOutcome run =
      run_workflow(runtime, runtime.resolve(starting_from(given)), workspace.options());
  const NamedTensors first = read_safetensors(run.folder / "model.safetensors").tensors;

  export_model(run.folder, exported);
  for (const auto& [name, tensor] : trained_from(exported, true, workspace))
    EXPECT_TRUE(at::equal(tensor, first.at(name))) << name;
  export_model(run.folder, exported, WeightDtype::kInt8);
  for (const auto& [name, tensor] : trained_from(exported, true, workspace))
    EXPECT_TRUE(tensor.allclose(first.at(name), 1.0 / 254)) << name;

  TensorFile damaged = read_safetensors(exported);
  damaged.tensors.at("model/layers.1.weight.scale").fill_(1);
  write_safetensors(exported, damaged);
  try {
    trained_from(exported, true, workspace);
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_EQ(error.what(), exported.string() +
                                ": is damaged: its checksum does not match; export the run again: "
                                "workflow-runner runs export RUN -o FILE");
  }
}

TEST(GivenWeights, WithoutAUsableScaleAreAnErrorEvenWhereFewNeedToFit) {
  const Workspace workspace;
  const fs::path file = workspace.folder() / "given.safetensors";
  NamedTensors stored = convert_weights(weights().tensors, {}, WeightDtype::kInt8);
  stored["layers.0.weight.scale"] = at::full({3, 1}, 0.5, at::kHalf);
  write_safetensors(file, {stored, {}});
  for (const bool is_strict : {true, false}) {
    try {
      trained_from(file, is_strict, workspace);
      FAIL();
    } catch (const StorageError& error) {
      EXPECT_EQ(error.what(),
                file.string() +
                    ": saved weights do not fit the model; unusable scales: layers.0.weight.scale "
                    "(expected float32 [3, 1] of finite numbers that are not negative, got float16 "
                    "[3, 1]); int8 weights cannot be read without their scales: export the model "
                    "again, or take an undamaged copy of the file");
    }
  }
}

TEST(GivenWeights, ThatDoNotFitEndTheRunWithAllThatIsWrong) {
  const Workspace workspace;
  const Runtime runtime;
  const fs::path file = workspace.folder() / "given.safetensors";
  TensorFile given = weights();
  given.tensors["layers.0.weight"] = at::full({3, 5}, 0.25);
  given.tensors["layers.1.biass"] = given.tensors.at("layers.1.bias");
  given.tensors.erase("layers.1.bias");
  write_safetensors(file, given);

  std::string said = "nothing was thrown";
  try {
    run_workflow(runtime, runtime.resolve(starting_from(file)), workspace.options());
  } catch (const StorageError& error) {
    said = error.what();
  }

  EXPECT_EQ(said, file.string() +
                      ": saved weights do not fit the model; missing: layers.1.bias; unexpected: "
                      "layers.1.biass (did you mean \"layers.1.bias\"?); of another shape: "
                      "layers.0.weight (expected [3, 2], got [3, 5])");
}

TEST(GivenWeights, ThatFitAreTakenWhereThatIsAskedFor) {
  const Workspace workspace;
  const Runtime runtime;
  const fs::path file = workspace.folder() / "given.safetensors";
  TensorFile given = weights();
  given.tensors.erase("layers.1.bias");
  given.tensors.erase("layers.1.weight");
  write_safetensors(file, given);
  nlohmann::json document = starting_from(file);
  document["model"]["weights"]["strict"] = false;
  Notes notes;
  RunOptions options = workspace.options();
  options.observers = {&notes};

  const RunOutcome run = run_workflow(runtime, runtime.resolve(document), options);

  const TensorFile trained = read_safetensors(run.folder / "model.safetensors");
  EXPECT_TRUE(at::equal(trained.tensors.at("layers.0.weight"), at::full({3, 2}, 0.25)));
  EXPECT_FALSE(at::equal(trained.tensors.at("layers.1.weight"), at::full({2, 3}, 2.0)));
  EXPECT_THAT(notes.heard,
              Contains("weights: from " + file.string() +
                       ", as far as they fit; missing: layers.1.bias, layers.1.weight"));
}

TEST(GivenWeights, MayBeOfSeveralFilesForPartsOfAModel) {
  const Workspace workspace;
  const Runtime runtime;
  const TensorFile given = weights();
  write_safetensors(workspace.folder() / "first.safetensors", given);
  write_safetensors(
      workspace.folder() / "second.safetensors",
      {{{"block.weight", at::full({2, 3}, 7.0)}, {"block.bias", at::full({2}, 8.0)}}, {}});
  nlohmann::json document = starting_from("first.safetensors");
  document["model"]["weights"] = nlohmann::json::parse(R"([
    {"path": "first.safetensors", "from": "layers.0"},
    {"path": "second.safetensors", "from": "block", "to": "layers.1"}])");
  Notes notes;
  RunOptions options = workspace.options();
  options.observers = {&notes};

  const RunOutcome run =
      run_workflow(runtime, runtime.resolve(document, workspace.folder()), options);

  const NamedTensors trained = read_safetensors(run.folder / "model.safetensors").tensors;
  EXPECT_TRUE(at::equal(trained.at("layers.0.weight"), given.tensors.at("layers.0.weight")));
  EXPECT_TRUE(at::equal(trained.at("layers.1.weight"), at::full({2, 3}, 7.0)));
  EXPECT_TRUE(at::equal(trained.at("layers.1.bias"), at::full({2}, 8.0)));
  EXPECT_THAT(notes.heard, Contains("weights: of layers.1, from " +
                                    (workspace.folder() / "second.safetensors").string()));
  EXPECT_EQ(run.result.environment.at("weights_hash").get<std::string>().size(), 32);
}

/// A stopped run goes on where its files have moved, and not where one has other weights.
TEST(GivenWeights, OfSeveralFilesMayMoveAndNotChange) {
  const Workspace workspace;
  const Runtime runtime;
  write_safetensors(workspace.folder() / "first.safetensors", weights());
  nlohmann::json document = starting_from("first.safetensors");
  document["model"]["weights"] = nlohmann::json::parse(R"([
    {"path": "first.safetensors", "from": "layers.0"},
    {"path": "first.safetensors", "from": "layers.1"}])");
  const RunOutcome run =
      run_workflow(runtime, runtime.resolve(document, workspace.folder()), workspace.options());
  fs::remove(run.folder / "result.json");
  nlohmann::json saved = nlohmann::json::parse(testing::read_file(run.folder / "workflow.json"));
  const auto moved_to = [&](const std::string& name) {
    for (nlohmann::json& file : saved["model"]["weights"])
      file["path"] = (workspace.folder() / name).string();
    std::ofstream(run.folder / "workflow.json") << saved.dump();
  };

  write_safetensors(workspace.folder() / "moved.safetensors", weights());
  moved_to("moved.safetensors");
  EXPECT_NO_THROW(resume_run(runtime, run.folder));
  fs::remove(run.folder / "result.json");
  TensorFile other = weights();
  other.tensors["layers.1.bias"] = at::full({2}, 1.25);
  write_safetensors(workspace.folder() / "other.safetensors", other);
  moved_to("other.safetensors");

  EXPECT_THROW(resume_run(runtime, run.folder), StorageError);
}

TEST(GivenWeights, ThatAreNotThereAreAnErrorBeforeAnyTraining) {
  const Workspace workspace;
  const Runtime runtime;
  const fs::path file = workspace.folder() / "none.safetensors";

  std::string said = "nothing was thrown";
  try {
    dry_run(runtime, runtime.resolve(starting_from(file)));
  } catch (const StorageError& error) {
    said = error.what();
  }

  EXPECT_EQ(said, file.string() + ": cannot be read: no such file, or not readable");
}

}  // namespace
}  // namespace treadle
