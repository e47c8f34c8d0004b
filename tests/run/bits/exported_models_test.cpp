#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/core/model/quantized_weights.h>
#include <treadle/host/run/predictor.h>
#include <treadle/host/run/state_folder.h>
#include <treadle/tensor/safetensors.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;
using testing::read_file;
using ::testing::StartsWith;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Classes, categories, missing values and a transformed input: every kind of state that predicting
/// needs beside the weights.
void write_flowers(const fs::path& path) {
  std::ofstream file(path);
  file << "width,colour,kind\n";
  for (int row = 0; row < 48; ++row) {
    file << (row % 7 == 0 ? "" : std::to_string(row % 12)) << ',' << (row % 3 == 0 ? "red" : "blue")
         << ',' << (row % 2 == 0 ? "iris" : "rose") << '\n';
  }
}

Json flowers(const fs::path& data) {
  return {{"treadle", 1},
          {"name", "flowers"},
          {"seed", 3},
          {"data",
           {{"use", "csv"},
            {"path", data.string()},
            {"target", "kind"},
            {"categorical", {"colour"}},
            {"missing", "nan"}}},
          {"transforms", {"impute", "one_hot", "standardize"}},
          {"model", {{"use", "mlp"}, {"hidden", {4}}}},
          {"training", {{"use", "standard"}, {"epochs", 2}, {"batch_size", 16}}},
          {"resources", {{"workers", 1}}}};
}

class ExportedModels : public ::testing::Test {
 protected:
  ExportedModels() {
    write_flowers(data_);
    run_ = run_workflow(runtime_, runtime_.resolve(flowers(data_)), workspace_.options()).folder;
    export_model(run_, file_);
  }

  std::string predictions_of(const fs::path& saved) const {
    const fs::path output = workspace_.folder() / "out.csv";
    Predictor::load(runtime_, saved).predict_file(data_, output);
    return read_file(output);
  }
  /// Of loading the file after `change`, checksum and all as they were.
  std::string refusal_of(const fs::path& saved) const {
    try {
      Predictor::load(runtime_, saved);
    } catch (const StorageError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  /// Puts `content` in the place of the run's weights, with the right checksum.
  void replace_weights(const TensorFile& content) const {
    const fs::path weights = run_ / "model.safetensors";
    write_safetensors(weights, content);
    StateDict preprocessing = read_state_folder(run_ / "preprocessing");
    preprocessing.put("model_checksum", Json(hash_file(weights)));
    write_state_folder(run_ / "preprocessing", preprocessing);
  }

  const Runtime runtime_ = watching_runtime();
  const Workspace workspace_;
  const fs::path data_ = workspace_.folder() / "flowers.csv";
  const fs::path file_ = workspace_.folder() / "flowers.model";
  fs::path run_;
};

TEST_F(ExportedModels, PredictWithoutTheRunAsItDid) {
  const std::string expected = predictions_of(run_);
  fs::remove_all(run_);

  EXPECT_EQ(predictions_of(file_), expected);
}

TEST_F(ExportedModels, EvaluateAsTheRunDid) {
  Json expected = to_json(Predictor::load(runtime_, run_).evaluate_file(data_));
  fs::remove_all(run_);
  Json evaluated = to_json(Predictor::load(runtime_, file_).evaluate_file(data_));

  for (Json* one : {&expected, &evaluated})
    one->erase("validation_time_seconds");
  EXPECT_EQ(evaluated, expected);
}

TEST_F(ExportedModels, AreTheSameEveryTime) {
  const fs::path again = workspace_.folder() / "again.model";
  export_model(run_, again);

  EXPECT_EQ(read_file(again), read_file(file_));
}

TEST_F(ExportedModels, NameThePluginsTheyNeed) {
  const Json plugins = Json::parse(read_safetensors(file_).metadata.at("plugins"));
  ASSERT_FALSE(plugins.at("plugins").empty());
  EXPECT_EQ(plugins.at("plugins")[0].at("sha256").get<std::string>().size(), 64U);

  Json few = plugins;
  few["plugins"] = {
      {{"id", "org.example.gone"}, {"version", "2.1"}, {"build_id", ""}, {"sha256", ""}}};
  std::ofstream(run_ / "plugins.lock") << few.dump();
  Json document = Json::parse(read_file(run_ / "workflow.json"));
  document["model"] = {{"use", "gone"}};
  std::ofstream(run_ / "workflow.json") << document.dump();
  export_model(run_, file_);
  try {
    Predictor::load(runtime_, file_);
    FAIL();
  } catch (const PluginError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the run used plugin org.example.gone 2.1, which "));
  }
}

/// A model with buffers, the running statistics of a batch_norm.
Json normed(const fs::path& data) {
  Json document = flowers(data);
  document["model"] = {
      {"use", "flow"},
      {"flow", {{{"use", "dense"}, {"out_features", 32}}, "batch_norm", "relu", "head"}}};
  return document;
}

TEST_F(ExportedModels, MayBeInAnotherDtype) {
  const fs::path run =
      run_workflow(runtime_, runtime_.resolve(normed(data_)), workspace_.options()).folder;
  const NamedTensors trained = read_safetensors(run / "model.safetensors").tensors;
  const Predictor as_trained = Predictor::load(runtime_, run);
  const std::vector<at::Tensor> rows{at::tensor({3.0, 7.0, 11.0}).view({3, 1}),
                                     at::tensor({0, 1, 0}).view({3, 1})};
  const auto exported = [&](WeightDtype dtype) {
    export_model(run, file_, dtype);
    return read_safetensors(file_).tensors;
  };
  const auto distance = [&] {
    const Predictions predicted = Predictor::load(runtime_, file_).predict(rows);
    return (predicted.front().values - as_trained.predict(rows).front().values)
        .abs()
        .max()
        .item<double>();
  };

  for (const auto& [dtype, type, limit] : {std::tuple(WeightDtype::kFloat32, at::kFloat, 0.0),
                                           std::tuple(WeightDtype::kBFloat16, at::kBFloat16, 0.005),
                                           std::tuple(WeightDtype::kFloat16, at::kHalf, 0.0005),
                                           std::tuple(WeightDtype::kInt8, at::kChar, 0.005)}) {
    const auto tensors = exported(dtype);
    int quantized = 0;
    for (const auto& [name, tensor] : trained) {
      const at::Tensor& stored = tensors.at("model/" + name);
      const bool is_buffer = name.find("running_") != std::string::npos ||
                             name.find("num_batches") != std::string::npos;
      const bool is_changed = !is_buffer && (dtype != WeightDtype::kInt8 || tensor.dim() > 1);
      EXPECT_EQ(stored.scalar_type(), is_changed ? type : tensor.scalar_type()) << name;
      quantized += stored.scalar_type() == at::kChar ? 1 : 0;
      EXPECT_EQ(tensors.count("model/" + name + ".scale"),
                stored.scalar_type() == at::kChar ? 1U : 0U)
          << name;
    }
    EXPECT_EQ(quantized, dtype == WeightDtype::kInt8 ? 2 : 0);
    EXPECT_LE(distance(), limit) << "of probabilities";
    EXPECT_EQ(distance() > 0, limit > 0) << "other weights";
    RecordProperty(c10::toString(type), std::to_string(distance() * 1e6));
  }
}

TEST_F(ExportedModels, WithDamagedScalesAreRefused) {
  // With the right checksums: as a program would write them that gets the scales wrong.
  const fs::path weights = run_ / "model.safetensors";
  TensorFile stored = read_safetensors(weights);
  stored.tensors = convert_weights(stored.tensors, {}, WeightDtype::kInt8);
  const auto refusal_with = [&](const TensorFile& content) {
    replace_weights(content);
    export_model(run_, file_);
    return refusal_of(file_);
  };
  EXPECT_EQ(refusal_with(stored), "nothing was thrown");

  TensorFile damaged = stored;
  damaged.tensors["layers.0.weight.scale"] = at::ones({1, 1});
  damaged.tensors.erase("layers.1.weight.scale");
  const std::string remedy =
      " of finite numbers that are not negative, got nothing); int8 weights cannot be read without "
      "their scales: export the model again, or take an undamaged copy of the file";
  EXPECT_EQ(refusal_with(damaged),
            file_.string() +
                ": saved weights do not fit the model; unusable scales: layers.0.weight.scale "
                "(expected float32 [4, 1] of finite numbers that are not negative, got float32 [1, "
                "1]), layers.1.weight.scale (expected float32 [2, 1]" +
                remedy);
}

TEST_F(ExportedModels, OfRunsThatDoNotNameTheirBuffersAreAsTrained) {
  const fs::path weights = run_ / "model.safetensors";
  TensorFile earlier = read_safetensors(weights);
  const auto refusal_with = [&] {
    replace_weights(earlier);
    export_model(run_, file_);
    try {
      export_model(run_, file_, WeightDtype::kInt8);
    } catch (const StorageError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  earlier.metadata.at("buffers") = "{";
  EXPECT_THAT(refusal_with(),
              StartsWith(weights.string() + ": does not name its buffers as a list "));
  earlier.metadata.erase("buffers");
  EXPECT_THAT(refusal_with(), StartsWith(weights.string() + ": does not name its buffers, which "));
}

TEST_F(ExportedModels, WithWeightsThatAreNotFiniteKeepTheirDtype) {
  const fs::path weights = run_ / "model.safetensors";
  TensorFile stored = read_safetensors(weights);
  stored.tensors.at("layers.1.weight")[1][0] = std::numeric_limits<float>::quiet_NaN();
  replace_weights(stored);

  try {
    export_model(run_, file_, WeightDtype::kBFloat16);
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_EQ(error.what(), weights.string() +
                                ": parameter layers.1.weight: expected finite values, got nan at "
                                "[1, 0]; keep the dtype that the model was trained in, or train it "
                                "again");
  }
}

// As a stranger would write them, with correct checksums.
TEST_F(ExportedModels, WhoseStateDoesNotFitTheirDocumentAreRefused) {
  const StateDict good = read_state_folder(run_ / "preprocessing");
  const auto refusal_with = [&](const char* name, const auto& part) {
    StateDict state = good;
    state.put(name, part);
    write_state_folder(run_ / "preprocessing", state);
    export_model(run_, file_);
    return refusal_of(file_);
  };
  Json spec = good.value("data_spec");
  spec["inputs"][0]["shape"] = {"wide"};

  for (const Json& wrong : {Json("nothing"), Json::object(), spec}) {
    EXPECT_THAT(refusal_with("data_spec", wrong), StartsWith(file_.string() + ": ")) << wrong;
  }
  EXPECT_THAT(refusal_with("transforms", StateDict()), StartsWith(file_.string() + ": "));
}

TEST_F(ExportedModels, CannotBeMadeOfARunWithoutAModel) {
  const fs::path target = workspace_.folder() / "none.model";
  const auto refusal = [&](const fs::path& run) -> std::string {
    try {
      export_model(run, target);
    } catch (const StorageError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(refusal(workspace_.folder()),
            workspace_.folder().string() + ": is not the folder of a run: it has no workflow.json");
  fs::remove(run_ / "model.safetensors");
  EXPECT_EQ(refusal(run_),
            run_.string() +
                ": has no model: the run is not finished (continue it with \"workflow-runner "
                "resume\"), or it only scored folds (\"refit\": false)");
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(ExportedModels, AreToldFromOtherFiles) {
  EXPECT_THAT(refusal_of(data_), HasSubstr("flowers.csv: not a valid safetensors file: "));
  EXPECT_THAT(refusal_of(data_), HasSubstr("; expected the folder of a run, or a file that "));
  EXPECT_THAT(refusal_of(run_ / "model.safetensors"),
              HasSubstr("is no exported run, but some other safetensors file"));
}

}  // namespace
}  // namespace treadle
