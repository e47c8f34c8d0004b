#include <map>
#include <string>

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <treadle/base/problem.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/tensor/safetensors.h>

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

TEST(OptimizerGroups, MayHaveAnOptimizerOfAnotherKind) {
  const Runtime runtime;
  nlohmann::json sgd = with_groups(nlohmann::json::array(
      {{{"parameters", {"layers.0.*"}},
        {"optimizer", {{"use", "sgd"}, {"learning_rate", 0.01}, {"momentum", 0.9}}}}}));
  const auto mixed = weights_of(runtime, sgd);
  sgd["optimizer"]["groups"][0]["optimizer"]["momentum"] = 0.5;
  const auto other = weights_of(runtime, sgd);
  EXPECT_FALSE(at::equal(mixed.at("layers.0.weight"), other.at("layers.0.weight")));
  // A group of the other kind with everything is that optimizer alone.
  sgd["optimizer"]["groups"][0]["parameters"] = {"*"};
  const auto all = weights_of(runtime, sgd);
  nlohmann::json alone = with_groups(nlohmann::json::array());
  alone["optimizer"] = {{"use", "sgd"}, {"learning_rate", 0.01}, {"momentum", 0.5}};
  const auto expected = weights_of(runtime, alone);
  for (const auto& [name, tensor] : expected)
    EXPECT_TRUE(at::equal(all.at(name), tensor)) << name;
}

// A linear decay to 0 within the first epoch leaves the bias alone in the second.
TEST(OptimizerGroups, FollowSchedulesOfTheirOwn) {
  const Runtime runtime;
  const nlohmann::json decays = {
      {{"parameters", {"layers.0.*"}},
       {"schedule", {{"use", "linear"}, {"end_rate", 0}, {"length", "1ep"}}},
       {"weight_decay", 0}}};
  nlohmann::json constant = decays;
  constant[0]["schedule"] = "constant";

  const auto trained = [&](const nlohmann::json& groups, int epochs) {
    nlohmann::json document = with_groups(groups, epochs);
    document["schedule"] = "constant";
    return weights_of(runtime, document);
  };
  const auto one_epoch = trained(decays, 1);
  const auto two_epochs = trained(decays, 2);
  const auto undecayed = trained(constant, 2);

  EXPECT_TRUE(at::equal(one_epoch.at("layers.0.weight"), two_epochs.at("layers.0.weight")));
  EXPECT_FALSE(at::equal(one_epoch.at("layers.1.weight"), two_epochs.at("layers.1.weight")));
  EXPECT_FALSE(at::equal(undecayed.at("layers.0.weight"), two_epochs.at("layers.0.weight")));
}

// Half of the warm-up in each of two epochs.
TEST(OptimizerGroups, ShowTheRatesOfTheirSchedules) {
  const Runtime runtime;
  const Workspace workspace;
  nlohmann::json document =
      with_groups({{{"parameters", {"*.bias"}},
                    {"learning_rate", 0.5},
                    {"schedule", {{"use", "constant"}, {"warmup", "2ep"}}}},
                   {{"parameters", {"layers.0.weight"}}, {"learning_rate", 0.75}}},
                  2);
  document["optimizer"]["learning_rate"] = 1e-3;
  document["schedule"] = "constant";
  const auto run = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const std::string history = testing::read_file(run.folder / "history.csv");

  EXPECT_THAT(history,
              ::testing::HasSubstr("log.learning_rate.groups.0,log.learning_rate.groups.1"));
  EXPECT_THAT(history, ::testing::HasSubstr(",0.25,0.75,")) << "after the first of two epochs";
  EXPECT_THAT(history, ::testing::HasSubstr(",0.5,0.75,"));
}

// Beside one that follows in proportion: the same schedule said twice gives the same bits.
TEST(OptimizerGroups, WithTheScheduleOfTheRestAreInProportion) {
  const Runtime runtime;
  nlohmann::json document =
      with_groups({{{"parameters", {"*.bias"}}, {"learning_rate", 0.5 * 0.01}}});
  document["optimizer"]["learning_rate"] = 0.01;
  document["schedule"] = {{"use", "cosine"}, {"warmup", "3st"}};
  const auto in_proportion = weights_of(runtime, document);
  document["optimizer"]["groups"][0]["schedule"] = document["schedule"];
  const auto by_itself = weights_of(runtime, document);

  for (const auto& [name, weight] : in_proportion)
    EXPECT_TRUE(at::allclose(weight, by_itself.at(name), 1e-5, 1e-6)) << name;
}

std::string mistake_in(const nlohmann::json& document) {
  const Runtime runtime;
  try {
    weights_of(runtime, document);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string mistake_in_groups(const nlohmann::json& groups) {
  return mistake_in(with_groups(groups));
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

TEST(OptimizerGroups, SayThatTheyLeaveNothingToAValueOfTheRest) {
  nlohmann::json all = with_groups({{{"parameters", {"*.bias"}}, {"weight_decay", 0}},
                                    {{"parameters", {"*"}}, {"weight_decay", 0.1}}});
  all["optimizer"]["weight_decay"] = 0.5;
  EXPECT_EQ(mistake_in(all),
            "/optimizer/weight_decay: has no effect: every parameter is in a group, and each group "
            "has its own; leave it out here, or there");

  nlohmann::json one_without = all;
  one_without["optimizer"]["groups"][0].erase("weight_decay");
  EXPECT_EQ(mistake_in(one_without), "nothing was thrown");
  nlohmann::json some_left = all;
  some_left["optimizer"]["groups"].erase(1);
  EXPECT_EQ(mistake_in(some_left), "nothing was thrown");
}

// All that the runtime has: a new one is tested as it comes.
TEST(EveryOptimizer, TakesTheStepsOfWholeBatchesWithAccumulatedGradients) {
  const Runtime runtime;
  for (const std::string& name : runtime.registry().names<Optimizer>()) {
    SCOPED_TRACE(name);
    nlohmann::json document = with_groups(nlohmann::json::array(), 3);
    document["optimizer"] = {{"use", name}, {"learning_rate", 0.01}};
    // Bases of what no gradient of the first step reaches are the last bits' choice.
    if (name == "soap")
      document["optimizer"]["max_precond_dim"] = 2;
    document["precision"] = "float64";
    const auto whole = weights_of(runtime, document);
    document["training"]["gradients"] = {{"use", "accumulate"}, {"micro_batches", 4}};
    const auto accumulated = weights_of(runtime, document);
    for (const auto& [parameter, tensor] : whole)
      EXPECT_TRUE(at::allclose(accumulated.at(parameter), tensor, 1e-9, 1e-9)) << parameter;
  }
}

TEST(OptimizerGroups, SayThatTheLastHasNoValueOfItsOwn) {
  const nlohmann::json without = {{"parameters", {"*.bias"}}};
  const nlohmann::json with = {{"parameters", {"*"}}, {"weight_decay", 0}};
  EXPECT_EQ(
      mistake_in_groups({with, without}),
      "/optimizer/groups/1/parameters: no parameter matches, or an earlier group has all "
      "that do; the model's are layers.0.weight, layers.0.bias, layers.1.weight, layers.1.bias");
  EXPECT_EQ(mistake_in_groups(nlohmann::json::array({without})),
            "/optimizer/groups/0/parameters: the last group has no value of its own, and no "
            "effect; give it one, or leave it out");
  EXPECT_EQ(mistake_in_groups({without, with}), "nothing was thrown") << "it keeps the biases";
}

}  // namespace
}  // namespace treadle
