// Compiled flows as whole runs: the weights of a dynamic run to the last bit, whatever else is on,
// and plans without a dynamic node for all networks that are measured.
#include <fstream>
#include <set>

#include <gmock/gmock.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

#include <treadle/core/model/model.h>
#include <treadle/graph/graph.h>
#include <treadle/host/run/predictor.h>
#include <treadle/plan/plan.h>
#include <treadle/tensor/task_random.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::bits_of;
using testing::Impatient;
using testing::read_file;
using testing::source_folder;
using testing::watching_runtime;
using testing::Workspace;
namespace fs = std::filesystem;

json example(const Runtime& runtime, const std::string& name) {
  json document = runtime.read(source_folder() / "examples" / (name + ".json"), {}).resolved;
  document["schedule"] = "watched";
  return document;
}

json with_execution(json document, const std::string& execution) {
  document["model"]["execution"] = execution;
  return document;
}

std::string bits_after(const Runtime& runtime, const json& document) {
  const Workspace workspace;
  return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
}

struct Run {
  std::string name;
  std::string example;
  json changes = json::object();
};

class CompiledRun : public ::testing::TestWithParam<Run> {};

TEST_P(CompiledRun, GivesTheWeightsOfADynamicOne) {
  const Runtime runtime = watching_runtime();
  json document = example(runtime, GetParam().example);
  document["training"]["epochs"] = 4;
  for (const auto& [key, value] : GetParam().changes.items()) {
    if (key == "training") {
      document[key].update(value);
    } else {
      document[key] = value;
    }
  }

  EXPECT_EQ(bits_after(runtime, with_execution(document, "compiled")),
            bits_after(runtime, with_execution(document, "dynamic")));
}

INSTANTIATE_TEST_SUITE_P(
    Documents, CompiledRun,
    ::testing::Values(
        Run{"CumulativeSum", "cumulative-sum"}, Run{"Showcase", "showcase"},
        Run{"InFloat64", "showcase", {{"precision", "float64"}}},
        Run{"InShards", "showcase", {{"resources", {{"workers", 3}, {"shards", 2}}}}},
        Run{"WithFolds", "cumulative-sum", {{"validation", {{"use", "k_fold"}, {"folds", 3}}}}},
        Run{"InTwoPieces",
            "cumulative-sum",
            {{"training", {{"gradients", {{"use", "accumulate"}, {"micro_batches", 2}}}}}}},
        Run{"ALoopAndBranchesInPieces",
            "showcase",
            {{"training", {{"gradients", {{"use", "accumulate"}, {"micro_batches", 3}}}}},
             {"resources", {{"workers", 2}}}}},
        Run{"ThroughOneStep",
            "cumulative-sum",
            {{"training", {{"gradients", {{"use", "truncated_bptt"}}}}}}}),
    [](const auto& info) { return info.param.name; });

/// Branches whose kernels round otherwise where numbers lie otherwise, joined by what hands them
/// their gradients as stretches of a larger one.
json joined_branches(const json& layer) {
  return {{{"use", "dense"}, {"out_features", 8}},
          {{"use", "split"},
           {"branches", {{{{"use", "dense"}, {"out_features", 5}}, layer}, {"relu"}, {layer}}}},
          {{"use", "merge"}, {"with", "cat"}},
          {{"use", "residual"}, {"body", {layer}}},
          {{"use", "residual"}, {"body", {layer, {{"use", "dense"}, {"out_features", 21}}}}},
          "head"};
}

TEST(CompiledRun, GivesTheSameForAnyNumberOfWorkers) {
  const Runtime runtime = watching_runtime();
  json document = testing::watched_moons(1);
  document["data"] = {{"use", "moons"}, {"rows", 150}};
  document["training"] = {{"use", "standard"}, {"epochs", 3}, {"batch_size", 16}};
  document["model"] = {{"use", "flow"}, {"flow", joined_branches("batch_norm")}};
  const std::string wanted = bits_after(runtime, with_execution(document, "dynamic"));

  for (const int workers : {1, 2, 3, 1}) {
    document["resources"]["workers"] = workers;
    EXPECT_EQ(bits_after(runtime, with_execution(document, "compiled")), wanted) << workers;
  }
}

/// Forward and backward twice, in float32, whose vectors are the widest.
std::vector<at::Tensor> gradients_in(const Runtime& runtime, const json& flow,
                                     const std::string& execution) {
  ModelSpec spec;
  spec.inputs = {{"input", {7}, {}}};
  spec.outputs = {{"output", {3}}};
  const TaskRandom random(1);
  const json parameters = {{"execution", execution}, {"flow", flow}};
  const auto model =
      runtime.registry().make<ModelProvider>("flow", Config(parameters))->create(spec);
  const auto graph = std::dynamic_pointer_cast<graph::Graph>(model);
  const at::Tensor input = at::randn({19, 7}).set_requires_grad(true);
  for (int i = 0; i < 2; ++i)
    graph->forward(input).square().sum().backward();
  std::vector<at::Tensor> gradients{input.grad()};
  for (const at::Tensor& parameter : graph->parameters())
    gradients.push_back(parameter.grad());
  return gradients;
}

TEST(CompiledLayers, GiveTheBitsOfDynamicOnesWhereverTheyStand) {
  const Runtime runtime;
  for (const char* layer :
       {"alpha_dropout", "batch_norm", "celu",        "dropout",    "elu",        "gelu",
        "hardsigmoid",   "hardswish",  "hardtanh",    "layer_norm", "leaky_relu", "log_sigmoid",
        "log_softmax",   "mish",       "prelu",       "relu",       "relu6",      "rms_norm",
        "selu",          "sigmoid",    "scaled_relu", "silu",       "softmax",    "softplus",
        "softsign",      "tanh"}) {
    SCOPED_TRACE(layer);
    const auto wanted = gradients_in(runtime, joined_branches(layer), "dynamic");
    const auto compiled = gradients_in(runtime, joined_branches(layer), "compiled");
    ASSERT_EQ(compiled.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(at::equal(compiled[i], wanted[i])) << i;
  }
}

TEST(CompiledRun, ResumesToTheSameBits) {
  const Runtime runtime = watching_runtime();
  json document = with_execution(example(runtime, "showcase"), "compiled");
  document["training"] = {
      {"use", "standard"}, {"epochs", 6}, {"batch_size", 24}, {"checkpoint", {{"every", "3st"}}}};
  const std::string whole = bits_after(runtime, document);
  for (const int steps : {2, 9, 30}) {
    const Workspace workspace;
    RunOptions options = workspace.options();
    const Impatient impatient(runtime, steps);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
    const fs::path folder = fs::directory_iterator(options.output)->path();

    resume_run(runtime, folder, workspace.options());

    EXPECT_EQ(bits_of(folder), whole) << "stopped after " << steps << " steps";
  }
}

TEST(CompiledRun, PredictsWhatADynamicOneDoesUpToRounding) {  // constants are folded
  const Runtime runtime;
  const auto predicted = [&](const std::string& execution) {
    const Workspace workspace;
    const json document = {
        {"treadle", 1},
        {"data", "moons"},
        {"training", {{"use", "standard"}, {"epochs", 2}}},
        {"model",
         {{"use", "flow"},
          {"execution", execution},
          {"flow",
           {{{"use", "dense"}, {"out_features", 16}}, {{"use", "batch_norm"}}, "relu", "head"}}}}};
    const fs::path folder =
        run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
    const TaskRandom random(3);
    return Predictor::load(runtime, folder).predict(at::randn({1000, 2})).values;
  };
  const at::Tensor wanted = predicted("dynamic");

  const at::Tensor folded = predicted("compiled");

  EXPECT_TRUE(at::allclose(folded, wanted, 1e-5, 1e-6));
  EXPECT_FALSE(at::equal(folded, wanted)) << "nothing was folded";
  EXPECT_TRUE(at::equal(predicted("auto"), wanted)) << "only what was asked for may round";
}

json built(const std::string& builder) {
  return {{"use", "graph"}, {"builder", {{"use", builder}}}};
}

constexpr const char* kInCalls =
    "dynamic, because layers that cannot be compiled do nearly all of its work";

struct ReadyNetwork {
  std::string name;
  json model;
  std::string execution = "compiled";
};

class ReadyNetworks : public ::testing::TestWithParam<ReadyNetwork> {};

TEST_P(ReadyNetworks, ChooseTheirExecutionWithTheBitsOfADynamicRun) {
  const Runtime runtime = watching_runtime();
  json document = testing::watched_moons(1);
  document["data"] = {{"use", "moons"}, {"rows", 150}};
  document["training"] = {{"use", "standard"}, {"epochs", 3}, {"batch_size", 16}};
  document["model"] = GetParam().model;
  const std::string dynamic = bits_after(runtime, with_execution(document, "dynamic"));
  EXPECT_EQ(bits_after(runtime, with_execution(document, "compiled")), dynamic);

  const Workspace workspace;
  const fs::path folder =
      run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
  EXPECT_EQ(bits_of(folder), dynamic);
  const json result = json::parse(read_file(folder / "result.json"));
  EXPECT_THAT(result.at("choices"), ::testing::Contains("execution: " + GetParam().execution));
  EXPECT_EQ(result.at("model_info").at("execution"), GetParam().execution);
}

INSTANTIATE_TEST_SUITE_P(
    All, ReadyNetworks,
    ::testing::Values(
        ReadyNetwork{"Linear", {{"use", "linear"}}},
        ReadyNetwork{"Mlp", {{"use", "mlp"}, {"norm", "batch"}, {"dropout", 0.1}}},
        ReadyNetwork{"MlpThatRecomputes", {{"use", "mlp"}, {"recompute_layers", 1}}, kInCalls},
        ReadyNetwork{"ResidualMlp", {{"use", "flow"}, {"flow", {built("residual_mlp")}}}},
        ReadyNetwork{"ConvNet",
                     {{"use", "flow"},
                      {"flow",
                       {{{"use", "dense"}, {"out_features", 16}},
                        {{"use", "reshape"}, {"shape", {-1, 2, 8}}},
                        built("conv_net")}}}}),
    [](const auto& info) { return info.param.name; });

TEST(AutomaticExecution, SaysWhyItLeavesARunDynamic) {
  const Runtime runtime;
  const Workspace workspace;
  const json document = {{"treadle", 1},
                         {"data", "moons"},
                         {"training", {{"use", "standard"}, {"epochs", 1}}},
                         {"model",
                          {{"use", "flow"},
                           {"flow",
                            {{{"use", "dense"}, {"out_features", 4}},
                             {{"use", "loop"},
                              {"body", {{{"use", "dense"}, {"out_features", 4}}, "tanh"}},
                              {"until", {{"use", "threshold_halt"}, {"threshold", 0.5}}},
                              {"at_most", 3}},
                             "head"}}}}};
  const fs::path folder =
      run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;

  EXPECT_THAT(json::parse(read_file(folder / "result.json")).at("choices"),
              ::testing::Contains("execution: dynamic, because \"loop_0\" decides by values"));
  EXPECT_THAT(read_file(folder / "events.jsonl"), ::testing::HasSubstr("execution: dynamic"));
}

TEST(CompiledRun, FoldsNormsIntoConvolutions) {
  const Runtime runtime;
  ModelSpec spec;
  spec.inputs = {{"image", {2, 9, 9}, {}}};
  spec.outputs = {{"output", {3}}};
  const json conv = {{"use", "conv2d"}, {"out_channels", 4}, {"kernel_size", 3}, {"groups", 2}};
  const json one = {{"use", "conv1d"}, {"out_channels", 6}, {"kernel_size", 3}, {"bias", false}};
  const json model = {{"execution", "compiled"},
                      {"flow",
                       {conv,
                        "batch_norm",
                        "relu",
                        {{"use", "flatten"}, {"start_dim", 2}},
                        one,
                        "batch_norm",
                        "flatten",
                        "head"}}};
  const TaskRandom random(1);
  const auto flow = std::dynamic_pointer_cast<graph::Graph>(
      runtime.registry().make<ModelProvider>("flow", Config(model))->create(spec));
  const at::NoGradGuard no_gradients;
  flow->forward(at::randn({32, 2, 9, 9}));  // running means are no longer 0
  flow->eval();
  const at::Tensor input = at::randn({8, 2, 9, 9});
  const at::Tensor wanted = flow->forward(input);

  flow->prepare_for_inference();

  EXPECT_EQ(flow->compile({&input, 1}).folds().size(), 2U);
  EXPECT_TRUE(at::allclose(flow->forward(input), wanted, 1e-4, 1e-5));
}

std::set<fs::path> measured_networks() {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(source_folder() / "tests/benchmarks/flows"))
    files.insert(entry.path());
  EXPECT_EQ(files.size(), 6U);
  return files;
}

std::shared_ptr<graph::Graph> measured_flow(const Runtime& runtime, const json& document) {
  ModelSpec spec;
  spec.inputs = {{"input", document.at("row"), {}}};
  spec.outputs = {{"output", {document.at("outputs").get<std::int64_t>()}}};
  json model = document.at("model");
  model.erase("use");
  const TaskRandom random(1);
  return std::dynamic_pointer_cast<graph::Graph>(
      runtime.registry().make<ModelProvider>("flow", Config(model))->create(spec));
}

// docs/performance.md has the measurements.
TEST(MeasuredNetworks, AreCompiledWhereThatIsNoSlower) {
  const Runtime runtime;
  for (const fs::path& file : measured_networks()) {
    const auto flow = measured_flow(runtime, json::parse(read_file(file)));
    EXPECT_EQ(flow->execution_choice(), file.stem() == "lstm" ? kInCalls : "compiled")
        << file.stem();
  }
}

TEST(MeasuredNetworks, CompileWithoutADynamicNode) {
  const Runtime runtime;
  for (const fs::path& file : measured_networks()) {
    SCOPED_TRACE(file.stem());
    const json document = json::parse(read_file(file));
    const auto flow = measured_flow(runtime, document);
    ASSERT_NE(flow, nullptr);
    std::vector<std::int64_t> sizes = document.at("row");
    sizes.insert(sizes.begin(), document.at("batch").get<std::int64_t>());
    const at::Tensor inputs = at::randn(sizes);

    const plan::Plan plan = flow->compile({&inputs, 1});

    EXPECT_EQ(plan.dynamic_nodes(), 0U);
    EXPECT_TRUE(plan.records_gradients());
  }
}

}  // namespace
}  // namespace treadle
