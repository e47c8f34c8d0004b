// A search of the structure of a network within a run: DARTS, on structures small enough to train
// each of them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using ::testing::HasSubstr;
using testing::read_file;
using testing::stopped_and_resumed;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;

Json document_of(const std::string& selection, Json edges = Json()) {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "structure", "seed": 7,
    "data": {"use": "moons", "rows": 320, "noise": 0.1},
    "transforms": ["standardize"],
    "model": {"use": "flow", "flow": [
      {"use": "graph", "builder": {"use": "cell_network", "width": 8, "cells": 1, "nodes": 2,
                                   "operations": ["zero", "skip", "dense"]}}]},
    "optimizer": {"use": "sgd", "learning_rate": 0.1, "momentum": 0.9, "groups": [
      {"parameters": ["*.alphas"], "optimizer": {"use": "adam", "learning_rate": 0.05}}]},
    "schedule": "watched",
    "training": {"use": "darts", "epochs": 12, "batch_size": 16, "checkpoint": {"every": "3st"}},
    "validation": {"use": "hold_out", "fraction": 0.25},
    "resources": {"workers": 1}})");
  document["training"]["selection"] = selection;
  if (!edges.is_null()) {
    document["model"]["flow"][0]["builder"]["edges"] = std::move(edges);
    document["optimizer"].erase("groups");
    document["training"]["use"] = "standard";
    document["training"].erase("selection");
  }
  return document;
}

RunOutcome run(const Workspace& workspace, const Json& document) {
  const Runtime runtime = watching_runtime();
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

Json chosen_edges(const RunOutcome& outcome) {
  return Json::parse(read_file(outcome.folder / "architecture.json"))
      .at("model")
      .at("flow")
      .at(0)
      .at("builder")
      .at("edges");
}

class Darts : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Selections, Darts, ::testing::Values("argmax", "perturbation"),
                         [](const auto& info) { return info.param; });

/// The target is a sum of relu of each column: of the five operations in front of the last layer
/// only relu can do it.
Json document_of_relu(const Workspace& workspace, const Json& edges) {
  RandomBits bits(1);
  std::string table = "a,b,c,y\n";
  for (int row = 0; row < 400; ++row) {
    const double a = bits.normal();
    const double b = bits.normal();
    const double c = bits.normal();
    const double y = std::max(a, 0.0) - 2 * std::max(b, 0.0) + 0.5 * std::max(c, 0.0);
    table += std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(c) + "," +
             std::to_string(y) + "\n";
  }
  const std::filesystem::path file = workspace.folder() / "relu.csv";
  std::ofstream(file) << table;
  Json define = Json::array();
  for (const char* operation : {"relu", "tanh", "sigmoid"})
    define.push_back({{"name", operation}, {"flow", {operation}}});
  Json document = document_of("argmax");
  document["data"] = {{"use", "csv"}, {"path", file.string()}, {"target", "y"}};
  document["model"]["flow"] = {
      {{"use", "graph"},
       {"builder", {{"use", "cell"}, {"nodes", 2}, {"define", define}, {"edges", edges}}}},
      "head"};
  document["optimizer"].erase("momentum");
  document["training"]["epochs"] = 15;
  return document;
}

TEST_P(Darts, ChoosesTheOperationWithWhichTrainingAloneIsBest) {
  const Json operations{"zero", "skip", "relu", "tanh", "sigmoid"};
  std::map<double, std::string> table;
  for (const std::string operation : operations) {
    const Workspace workspace;
    Json alone = document_of_relu(workspace, Json::array({operation}));
    alone["optimizer"].erase("groups");
    alone["training"]["use"] = "standard";
    alone["training"].erase("selection");
    table[run(workspace, alone).result.training.final_loss] = operation;
  }
  ASSERT_EQ(table.begin()->second, "relu");
  EXPECT_LT(table.begin()->first, 0.01);
  EXPECT_GT(std::next(table.begin())->first, 0.3);
  const Workspace workspace;
  Json document = document_of_relu(workspace, Json::array({operations}));
  document["training"]["selection"] = GetParam();
  const RunOutcome outcome = run(workspace, document);
  EXPECT_EQ(chosen_edges(outcome), Json({"relu"}));
  const Json choice = to_json(outcome.result).at("structures").at(0).at("choices").at(0);
  EXPECT_EQ(choice.at("chosen"), "relu");
  EXPECT_EQ(choice.at("name"), "0_1");
  EXPECT_GT(choice.at("weights").at("relu").get<double>(), 0.8);
}

TEST_P(Darts, GivesTheSameBitsForAnyWorkersAndAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  Json document = document_of(GetParam());
  document["model"]["flow"][0]["builder"]["nodes"] = 3;
  document["training"]["epochs"] = 6;
  document["training"]["edges_per_node"] = 1;
  const Workspace one;
  const RunOutcome whole = run(one, document);
  const std::string expected = bits_of(whole.folder) + chosen_edges(whole).dump();
  document["resources"]["workers"] = 3;
  const Workspace three;
  const RunOutcome by_three = run(three, document);
  EXPECT_EQ(bits_of(by_three.folder) + chosen_edges(by_three).dump(), expected);
  for (const int steps : {9, 31, 40}) {
    const Workspace workspace;
    const RunOutcome resumed = stopped_and_resumed(runtime, workspace, document, steps);
    EXPECT_EQ(bits_of(resumed.folder) + chosen_edges(resumed).dump(), expected)
        << "stopped after " << steps << " steps";
  }
}

TEST(StructureSearch, OfEachNodeTheStrongestEdgeStays) {
  Json document = document_of("argmax");
  document["model"]["flow"][0]["builder"]["nodes"] = 4;
  document["training"]["epochs"] = 3;
  document["training"]["edges_per_node"] = 1;
  const Workspace workspace;
  const RunOutcome outcome = run(workspace, document);
  const Json choices = to_json(outcome.result).at("structures").at(0).at("choices");
  std::map<std::string, std::pair<double, std::string>> strongest;
  std::map<std::string, std::vector<std::string>> chosen;
  for (const Json& choice : choices) {
    double weight = 0;
    for (const auto& [operation, its] : choice.at("weights").items()) {
      if (operation != "zero")
        weight = std::max(weight, its.get<double>());
    }
    auto& best = strongest[choice.at("node")];
    if (weight > best.first)
      best = {weight, choice.at("name").get<std::string>()};
    if (!choice.at("chosen").is_null()) {
      EXPECT_NE(choice.at("chosen"), "zero");
      chosen[choice.at("node")].push_back(choice.at("name"));
    }
  }
  ASSERT_EQ(strongest.size(), 3);
  for (const auto& [node, best] : strongest)
    EXPECT_EQ(chosen[node], std::vector{best.second}) << "node " << node;
}

TEST(StructureSearch, TheDocumentOfTheChosenNetworkRuns) {
  const Workspace workspace;
  const RunOutcome searched = run(workspace, document_of("argmax"));
  const Runtime runtime = watching_runtime();
  const Workspace other;
  const RunOutcome derived =
      run_workflow(runtime, runtime.read(searched.folder / "architecture.json"), other.options());
  EXPECT_FALSE(derived.result.training.structures.size() > 0);
  EXPECT_LT(derived.result.training.final_loss, 0.3);
}

TEST(StructureSearch, MistakesSayWhatToDo) {
  const auto expect_refused = [](const Json& document, const std::vector<std::string>& words) {
    const Workspace workspace;
    try {
      run(workspace, document);
      ADD_FAILURE() << "not refused: " << document.dump();
    } catch (const Error& error) {
      for (const std::string& word : words)
        EXPECT_THAT(error.what(), HasSubstr(word));
    }
  };
  Json fixed = document_of("argmax", Json::array({"dense"}));
  fixed["training"]["use"] = "darts";
  expect_refused(fixed, {"nothing in the model can be chosen", "\"cell_network\""});
  Json short_training = document_of("perturbation");
  short_training["training"]["tune_epochs"] = 12;
  expect_refused(short_training, {"/training/selection", "1 choices", "above 12", "tune_epochs"});
  Json twice = document_of("argmax");
  twice["model"]["flow"] = {{{"use", "graph"}, {"builder", {{"use", "cell"}, {"nodes", 2}}}},
                            {{"use", "graph"}, {"builder", {{"use", "cell"}, {"nodes", 2}}}},
                            "head"};
  expect_refused(twice, {"two structures", "\"cell\"", "name of its own"});
  Json large = document_of("argmax");
  large["training"]["max_parameters"] = 10;
  large["training"]["epochs"] = 2;
  expect_refused(large, {"parameters", "max_parameters is 10", "architecture.json", "allow more"});
  Json both = document_of("argmax");
  both["optimizer"]["groups"][0]["learning_rate"] = 0.1;
  expect_refused(both, {"/optimizer/groups/0/learning_rate", "optimizer of its own"});
}

}  // namespace
}  // namespace treadle
