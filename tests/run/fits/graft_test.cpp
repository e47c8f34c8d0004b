// Networks made of pieces of trained ones: the document that `graft` writes, and what it trains.
#include "commands/graft.h"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/core/model/weights.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/tensor/safetensors.h>

#include "workspace.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::Workspace;
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json network(const json& flow) {
  json document = testing::moons(1);
  document["validation"] = {{"use", "hold_out"}};
  document["model"] = {{"use", "flow"}, {"flow", flow}};
  document["training"] = {{"use", "standard"}, {"epochs", 1}, {"batch_size", 64}};
  return document;
}

json small_flow() {
  return json::parse(R"([{"use": "dense", "out_features": 4}, "relu",
      {"use": "split", "name": "views", "branches": [
        [{"use": "dense", "out_features": 3}], [{"use": "dense", "out_features": 3}, "tanh"]]},
      {"use": "merge", "with": "cat"}, "head"])");
}

class Graft : public ::testing::Test {
 protected:
  std::string train(json document, const std::string& name, int seed) {
    document["name"] = name;
    document["seed"] = seed;
    return run_workflow(runtime_, runtime_.resolve(document, workspace_.folder()),
                        workspace_.options())
        .folder.string();
  }
  std::vector<std::string> two_runs() {
    return {train(network(small_flow()), "first", 1), train(network(small_flow()), "second", 2)};
  }

  json graft(const std::vector<std::string>& runs, const std::string& node,
             const std::string& combine, bool is_frozen = false) {
    notes_.clear();
    return cli::graft_document(runtime_, runs, {node, combine, is_frozen, workspace_.folder()},
                               [&](const std::string& note) { notes_.push_back(note); });
  }
  NamedTensors trained(const json& document) {
    return weights_of(run_workflow(runtime_, runtime_.resolve(document, workspace_.folder()),
                                   workspace_.options())
                          .folder);
  }
  static NamedTensors weights_of(const fs::path& run) {
    return read_safetensors(run / "model.safetensors").tensors;
  }
  template <typename Kind>
  std::string refusal(const std::vector<std::string>& runs, const std::string& node,
                      const std::string& combine = "cat") {
    try {
      graft(runs, node, combine);
    } catch (const Kind& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  const Workspace workspace_;
  const Runtime runtime_;
  std::vector<std::string> notes_;
};

/// Training that moves nothing.
json at_rest(json document) {
  document["optimizer"] = {{"use", "adamw"}, {"learning_rate", 1e-30}, {"weight_decay", 0}};
  return document;
}

TEST_F(Graft, BeginsWithTheWeightsOfTheRuns) {
  const std::vector<std::string> runs = two_runs();
  const NamedTensors first = weights_of(runs[0]);
  const NamedTensors second = weights_of(runs[1]);

  const NamedTensors grafted = trained(at_rest(graft(runs, "views_1", "add")));

  EXPECT_TRUE(at::equal(grafted.at("grafts_0.dense_0.weight"), first.at("dense_0.weight")));
  EXPECT_TRUE(at::equal(grafted.at("grafts_1.dense_0.weight"), second.at("dense_0.weight")));
  EXPECT_TRUE(
      at::equal(grafted.at("grafts_0.flow_0.dense_0.bias"), first.at("views_1.dense_0.bias")));
  EXPECT_TRUE(
      at::equal(grafted.at("grafts_1.flow_0.dense_0.bias"), second.at("views_1.dense_0.bias")));
  EXPECT_EQ(grafted.at("head_0.weight").sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(grafted.size(), 10U);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(Graft, LeavesTheRunsAsTheyAre) {
  const std::vector<std::string> runs = two_runs();
  const std::string before = hash_file(fs::path(runs[0]) / "model.safetensors");
  const NamedTensors first = weights_of(runs[0]);

  const NamedTensors grafted = trained(graft(runs, "relu_0", "cat"));

  EXPECT_FALSE(at::equal(grafted.at("grafts_0.dense_0.weight"), first.at("dense_0.weight")));
  EXPECT_EQ(hash_file(fs::path(runs[0]) / "model.safetensors"), before);
}

TEST_F(Graft, FrozenTrainsTheHeadAlone) {
  const std::vector<std::string> runs = two_runs();
  const NamedTensors first = weights_of(runs[0]);
  const json document = graft(runs, "views", "gate", /*is_frozen=*/true);

  const NamedTensors before = trained(at_rest(document));
  const NamedTensors after = trained(document);

  for (const auto& [name, tensor] : before) {
    EXPECT_EQ(at::equal(tensor, after.at(name)), name.find(".trained.") != std::string::npos)
        << name;
  }
  EXPECT_TRUE(at::equal(after.at("grafts_1.trained.flow_0.dense_0.weight"),
                        first.at("views_1.dense_0.weight")));
}

TEST_F(Graft, OfASplitHasEachOfItsBranches) {
  const std::vector<std::string> runs = two_runs();

  const json two = graft(runs, "views", "grid_cat");
  const json one = graft({runs[0]}, "views", "grid_cat");

  const json& steps = two.at("model").at("flow");
  EXPECT_EQ(steps.at(0).at("branches").size(), 4U);
  EXPECT_EQ(steps.at(1).at("with"), json::parse(R"({"use": "grid_cat", "grid": [2, 2, 1],
                            "positions": [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]]})"));
  EXPECT_EQ(steps.at(2), json({{"use", "head"}}));
  EXPECT_EQ(one.at("model").at("flow").at(0).at("branches").size(), 2U);
  const NamedTensors grafted = trained(two);
  EXPECT_EQ(grafted.at("head_0.weight").sizes(), (std::vector<std::int64_t>{2, 12}));
}

/// ceil(sqrt(5)) is 3: two cells of the second row, and none of the third.
TEST_F(Graft, InAGridStandsInTheSmallestSquare) {
  const std::string run = train(network(small_flow()), "first", 1);

  const json document = graft({run, run, run, run, run}, "relu_0", "grid_cat");

  EXPECT_EQ(document.at("model").at("flow").at(1).at("with"),
            json::parse(R"({"use": "grid_cat", "grid": [3, 3, 1], "positions":
                [[0, 0, 0], [0, 1, 0], [0, 2, 0], [1, 0, 0], [1, 1, 0]]})"));
}

/// A single layer has the name of its branch.
TEST_F(Graft, OfSingleLayersBeginsWithTheirWeights) {
  const std::vector<std::string> runs = two_runs();

  const NamedTensors grafted = trained(at_rest(graft(runs, "dense_0", "mean")));

  EXPECT_TRUE(at::equal(grafted.at("grafts_1.weight"), weights_of(runs[1]).at("dense_0.weight")));
}

TEST_F(Graft, OfAGraftIsFlat) {
  const std::vector<std::string> runs = two_runs();
  json once = graft(runs, "relu_0", "cat");
  const std::string grafted = train(once, "grafted", 3);

  const json twice = graft({grafted, grafted}, "grafts", "cat");

  EXPECT_EQ(twice.at("model").at("flow").at(0).at("branches").size(), 4U);
  EXPECT_TRUE(at::equal(trained(at_rest(twice)).at("grafts_3.dense_0.weight"),
                        weights_of(grafted).at("grafts_1.dense_0.weight")));
}

TEST_F(Graft, TakesFurtherInputsIntoItsBranches) {
  const std::string data = (testing::source_folder() / "examples/data").string();
  json document = network(json::parse(R"([
      {"use": "input", "names": ["context"]},
      {"use": "dense", "out_features": 2, "tag": "seen"},
      {"use": "at", "tags": ["seen", "context"]}, {"use": "merge", "with": "cat"},
      {"use": "gelu"}, "head"])"));
  document["data"] = {{"use", "npy"},
                      {"inputs", {{"pair", data + "/pairs.npy"}, {"context", data + "/pairs.npy"}}},
                      {"target", data + "/sums.npy"}};
  const std::string run = train(document, "first", 1);

  for (const bool is_frozen : {false, true}) {
    const NamedTensors grafted = trained(at_rest(graft({run, run}, "gelu_0", "add", is_frozen)));
    EXPECT_TRUE(at::equal(
        grafted.at(is_frozen ? "grafts_1.trained.dense_0.weight" : "grafts_1.dense_0.weight"),
        weights_of(run).at("dense_0.weight")));
  }
}

TEST_F(Graft, RefusesWeightsOfOtherColumnsAndTransforms) {
  const std::string first = train(network(small_flow()), "first", 1);
  json scaled = network(small_flow());
  scaled["transforms"] = {"min_max"};
  json other = network(small_flow());
  other["data"]["noise"] = 0.3;

  const std::string second = train(scaled, "second", 2);
  EXPECT_EQ(refusal<UsageError>({first, second}, "relu_0"),
            second + " was trained with other transforms than " + first +
                ", and a branch of a graft gets those of the first; train both on the same "
                "transforms");
  const std::string third = train(other, "third", 2);
  EXPECT_THAT(refusal<UsageError>({first, third}, "relu_0"), HasSubstr("with other data than"));
}

TEST_F(Graft, OfFlowsWithinAndOfBuiltNetworks) {
  const auto flow = [](int width) {
    return json::array({{{"use", "dense"}, {"out_features", 3}},
                        {{"use", "graph"},
                         {"builder",
                          {{"use", "hive"},
                           {"rows", 1},
                           {"columns", 2},
                           {"width", width},
                           {"cells", {"dense", "gated_feed_forward"}}}}}});
  };
  const std::vector<std::string> runs = {train(network(flow(4)), "first", 1),
                                         train(network(flow(8)), "second", 2)};

  // The cells of both, apart, in one layer; the nodes in front of them come with each.
  const json cells = graft(runs, "hive_0.cells", "cat");
  EXPECT_EQ(cells.at("model").at("flow").at(0).at("branches").size(), 4U);
  const NamedTensors grafted = trained(at_rest(cells));
  int copied = 0;
  for (int run = 0; run < 2; ++run) {
    for (const auto& [name, tensor] : weights_of(runs[run])) {
      for (const int branch : {2 * run, 2 * run + 1}) {
        const auto found = grafted.find("grafts_" + std::to_string(branch) + "." + name);
        if (found == grafted.end())
          continue;
        EXPECT_TRUE(at::equal(found->second, tensor)) << name;
        ++copied;
      }
    }
  }
  EXPECT_GE(copied, 8) << "the dense layers in front, of four branches, with their biases";
  EXPECT_EQ(grafted.at("head_0.weight").size(1), 2 * 4 + 2 * 8);

  const NamedTensors combined = trained(at_rest(graft(runs, "hive_0.combined", "cat")));
  EXPECT_EQ(combined.at("head_0.weight").size(1), 4 + 8);
  EXPECT_TRUE(at::equal(combined.at("grafts_1.hive_0.stem.weight"),
                        weights_of(runs[1]).at("hive_0.stem.weight")));
  EXPECT_THAT(refusal<UsageError>(runs, "hive_0.combine"),
              HasSubstr("has no node \"hive_0.combine\"; did you mean \"hive_0.combined\"?"));
}

TEST_F(Graft, RefusesWhatItCannotPutTogether) {
  const std::string run = train(network(small_flow()), "first", 1);
  json wide = network(small_flow());
  wide["data"] = {{"use", "csv"},
                  {"path", (testing::source_folder() / "examples/data/iris.csv").string()},
                  {"target", "species"}};
  const std::string iris = train(wide, "iris", 1);
  json plain = network(small_flow());
  plain["model"] = {{"use", "mlp"}, {"hidden", {4}}};
  const std::string mlp = train(plain, "mlp", 1);

  EXPECT_EQ(refusal<UsageError>({run, run}, "relu_1"),
            run +
                ": its model has no node \"relu_1\"; did you mean \"relu_0\"?; it has dense_0, "
                "relu_0, views, views_0, views_1, cat_0, head_0");
  EXPECT_EQ(refusal<UsageError>({run, mlp}, "relu_0"),
            mlp +
                ": its model is \"mlp\", and a graft takes nodes of flows; train a model "
                "{\"use\": \"flow\", …}");
  EXPECT_EQ(refusal<UsageError>({run, iris}, "relu_0"),
            iris + ": its model takes inputs of the sizes {\"features\":[4]}, and that of " + run +
                " takes {\"features\":[2]}; graft runs on data of the same columns");
  EXPECT_EQ(refusal<UsageError>({run}, "relu_0"),
            "a graft has two branches or more, and \"relu_0\" of " + run +
                " is one; name another run, or the name of a split");
  EXPECT_EQ(refusal<UsageError>({run, run}, "relu_0", "gird_cat"),
            "--combine: expected add, cat, gate, grid_cat, mean, got \"gird_cat\"; did you mean "
            "\"grid_cat\"?");
  EXPECT_THAT(refusal<StorageError>({run, "nowhere"}, "relu_0"),
              HasSubstr("nowhere/workflow.json: no such file"));
}

TEST_F(Graft, MayBeAStageOfAPipeline) {
  json document = network(json::parse(R"([{"use": "dense", "out_features": 4}, "relu", "head"])"));
  document["stages"] = json::parse(R"({
    "one": {"run": {"seed": 1}}, "two": {"run": {"seed": 2}},
    "both": {"run": {
      "optimizer": {"use": "adamw", "learning_rate": 1e-30, "weight_decay": 0},
      "model": {"use": "flow", "flow": [
        {"use": "split", "name": "grafts", "branches": [
          [{"use": "dense", "out_features": 4}, "relu"],
          [{"use": "dense", "out_features": 4}, "relu"]]},
        {"use": "merge", "with": "cat"}, "head"],
      "weights": [
        {"path": "stage:one/model.safetensors", "from": "dense_0", "to": "grafts_0.dense_0"},
        {"path": "stage:two/model.safetensors", "from": "dense_0", "to": "grafts_1.dense_0"}]}}}})");

  const PipelineOutcome run =
      run_pipeline(runtime_, Pipeline::read(Document::from_json(document, workspace_.folder())),
                   workspace_.options());

  const json stages = to_json(run.result).at("stages");
  const auto folder_of = [&](const std::string& name) {
    for (const json& stage : stages) {
      if (stage.at("stage") == name)
        return fs::path(stage.at("folder").get<std::string>());
    }
    return fs::path();
  };
  EXPECT_TRUE(at::equal(weights_of(folder_of("both")).at("grafts_1.dense_0.weight"),
                        weights_of(folder_of("two")).at("dense_0.weight")));
}

}  // namespace
}  // namespace treadle
