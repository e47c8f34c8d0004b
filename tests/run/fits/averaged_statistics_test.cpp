// Statistics of batch normalization in an average of weights are those of the average: of a pass
// over the training rows with the saved weights, computed here by hand in float64.
#include <algorithm>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ops/linear.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/var.h>
#include <gtest/gtest.h>

#include <treadle/tensor/safetensors.h>
#include <treadle/tensor/task_random.h>

#include "watched_runs.h"

namespace treadle::testing {
namespace {

using nlohmann::json;

constexpr std::int64_t kTraining = 20;
constexpr std::int64_t kBatch = 8;

/// float64 [26, 4]: three inputs and the target, with three decimals.
at::Tensor table() {
  return at::rand({26, 4}, make_generator(3), at::kDouble).mul(1000).round().div(1000);
}

json document_in(const fs::path& folder, const json& averaging, const json& model) {
  std::ofstream out(folder / "a.csv");
  out << "a,b,c,y\n";
  const at::Tensor rows = table();
  for (std::int64_t row = 0; row < rows.size(0); ++row) {
    for (std::int64_t column = 0; column < 4; ++column)
      out << rows[row][column].item<double>() << (column == 3 ? '\n' : ',');
  }
  json document = {
      {"treadle", 1},
      {"data", {{"use", "csv"}, {"path", (folder / "a.csv").string()}}},
      {"resources", {{"workers", 1}}},
      {"model", model},
      {"optimizer", {{"use", "sgd"}, {"learning_rate", 0.1}}},
      {"training", {{"epochs", 6}, {"batch_size", kBatch}, {"shuffle", false}}},
      {"validation", {{"use", "hold_out"}, {"strategy", "chronological"}, {"fraction", 0.2308}}}};
  document["training"].update(averaging);
  return document;
}

class AveragedStatistics : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(AveragedStatistics, AreThoseOfAPassOverTheTrainingRows) {
  const json averaging = json::parse(std::get<0>(GetParam()));
  const json model = json::parse(std::get<1>(GetParam()));
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const auto run =
      run_workflow(runtime, runtime.resolve(document_in(workspace.folder(), averaging, model)),
                   workspace.options());

  const TensorFile saved = read_safetensors(run.folder / "model.safetensors");
  const auto named = [&](const std::string& end) {
    for (const auto& [name, tensor] : saved.tensors) {
      if (name.ends_with(end))
        return tensor.to(at::kDouble);
    }
    ADD_FAILURE() << end;
    return at::Tensor();
  };
  const bool is_flow = model.at("use") == "flow";
  const std::string first = is_flow ? "dense_0" : "layers.0";
  std::vector<at::Tensor> means;
  std::vector<at::Tensor> variances;
  for (std::int64_t row = 0; row < kTraining; row += kBatch) {
    const at::Tensor inputs =
        table().narrow(0, row, std::min(kBatch, kTraining - row)).narrow(1, 0, 3);
    const at::Tensor given = at::linear(inputs, named(first + ".weight"), named(first + ".bias"));
    means.push_back(given.mean(0));
    variances.push_back(at::var(given, at::IntArrayRef{0}, /*unbiased=*/true));
  }
  const auto worst = [](const at::Tensor& got, const std::vector<at::Tensor>& of_batches) {
    const at::Tensor expected = at::stack(of_batches).mean(0);
    return (got - expected).abs().div(expected.abs() + 1e-3).max().item<double>();
  };
  EXPECT_LT(worst(named("running_mean"), means), 1e-6);
  EXPECT_LT(worst(named("running_var"), variances), 1e-6);
}

constexpr const char* kDynamic =
    R"({"use": "flow", "execution": "dynamic",
        "flow": [{"use": "dense", "out_features": 4}, "batch_norm", "relu", "head"]})";
constexpr const char* kCompiled =
    R"({"use": "flow", "execution": "compiled",
        "flow": [{"use": "dense", "out_features": 4}, "batch_norm", "relu", "head"]})";
constexpr const char* kMlp = R"({"use": "mlp", "hidden": [4], "norm": "batch"})";

INSTANTIATE_TEST_SUITE_P(
    OfEachWay, AveragedStatistics,
    ::testing::Combine(::testing::Values(R"({"swa": {"start": "2ep", "every": "1ep"}})",
                                         R"({"ema": {"decay": 0.9}})"),
                       ::testing::Values(kDynamic, kCompiled, kMlp)));

}  // namespace
}  // namespace treadle::testing
