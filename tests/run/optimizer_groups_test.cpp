#include <map>
#include <string>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <treadle/base/problem.h>
#include <treadle/core/safetensors.h>

#include "workspace.h"

namespace treadle {
namespace {

using testing::moons;
using testing::Workspace;

nlohmann::json with_groups(const nlohmann::json& groups, int epochs = 2) {
  nlohmann::json document = moons();
  document["validation"] = {{"use", "hold_out"}};
  document["model"] = {{"use", "mlp"}, {"hidden", {8}}};
  document["training"] = {{"use", "standard"}, {"epochs", epochs}};
  document["optimizer"]["groups"] = groups;
  return document;
}

std::map<std::string, at::Tensor, std::less<>> weights_of(const Runtime& runtime,
                                                          const nlohmann::json& document) {
  const Workspace workspace;
  const auto run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  return read_safetensors(run.folder / "model.safetensors").tensors;
}

TEST(OptimizerGroups, GiveTheParametersTheyNameOtherValues) {
  const Runtime runtime;
  const nlohmann::json still = {
      {{"parameters", {"layers.0.*"}}, {"learning_rate", 1e-30}, {"weight_decay", 0}},
      {{"parameters", {"*.bias"}}, {"learning_rate", 0.02}}};

  const auto short_run = weights_of(runtime, with_groups(still, 1));
  const auto long_run = weights_of(runtime, with_groups(still, 3));
  const auto without = weights_of(runtime, with_groups(nlohmann::json::array(), 3));

  EXPECT_TRUE(at::equal(short_run.at("layers.0.weight"), long_run.at("layers.0.weight")));
  EXPECT_TRUE(at::equal(short_run.at("layers.0.bias"), long_run.at("layers.0.bias")))
      << "the first group that names it has it";
  EXPECT_FALSE(at::equal(short_run.at("layers.1.weight"), long_run.at("layers.1.weight")));
  EXPECT_FALSE(at::equal(without.at("layers.0.weight"), long_run.at("layers.0.weight")));
}

std::string mistake_in_groups(const nlohmann::json& groups) {
  const Runtime runtime;
  try {
    weights_of(runtime, with_groups(groups));
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(OptimizerGroups, SayWhatTheyCannotFind) {
  EXPECT_EQ(mistake_in_groups({{{"parameters", {"norms.*"}}}}),
            "/optimizer/groups/0/parameters: no parameter matches, or an earlier group has all "
            "that do; the "
            "model's are layers.0.weight, layers.0.bias, layers.1.weight, layers.1.bias");
  EXPECT_EQ(
      mistake_in_groups({{{"parameters", {"*"}}, {"weight_decai", 0}}}),
      "/optimizer/groups/0/weight_decai: unknown key \"weight_decai\" (AdamW takes: betas, eps, "
      "learning_rate, weight_decay)");
}

}  // namespace
}  // namespace treadle
