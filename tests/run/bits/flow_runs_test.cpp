// Flows as whole runs: the worked examples, and that states, branches and loops
// keep what every model keeps.
#include <cmath>
#include <fstream>

#include <gmock/gmock.h>

#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/picture.h>
#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::bits_of;
using ::testing::HasSubstr;
using testing::Impatient;
using testing::read_file;
using testing::source_folder;
using testing::watching_runtime;
using testing::Workspace;
namespace fs = std::filesystem;

/// A document of examples/, its files found from anywhere.
ResolvedWorkflow example(const Runtime& runtime, const std::string& name) {
  return runtime.read(source_folder() / "examples" / (name + ".json"), {});
}

/// The same, changed, and its steps watched.
ResolvedWorkflow changed_example(const Runtime& runtime, const std::string& name,
                                 const json& changes) {
  json document = example(runtime, name).resolved;
  document["schedule"] = "watched";
  document.update(changes);
  return runtime.resolve(document);
}

/// A column of the history, by epochs.
std::vector<double> column_of(const fs::path& run, const std::string& wanted) {
  std::ifstream history(run / "history.csv");
  std::string line;
  std::getline(history, line);
  std::vector<double> losses;
  std::istringstream header(line);
  std::size_t column = 0;
  for (std::string name; std::getline(header, name, ','); ++column) {
    if (name == wanted)
      break;
  }
  while (std::getline(history, line)) {
    std::istringstream cells(line);
    std::string cell;
    for (std::size_t i = 0; i <= column; ++i)
      std::getline(cells, cell, ',');
    losses.push_back(std::stod(cell));
  }
  return losses;
}

/// The mean training losses of the epochs.
std::vector<double> losses_of(const fs::path& run) {
  return column_of(run, "train_loss");
}

TEST(CumulativeSum, ReachesItsTarget) {
  const Runtime runtime;
  const Workspace workspace;
  const fs::path run =
      run_workflow(runtime, example(runtime, "cumulative-sum"), workspace.options()).folder;

  const std::vector<double> losses = losses_of(run);
  ASSERT_EQ(losses.size(), 50U);
  EXPECT_LT(losses.back(), losses.front() / 2);
  const at::Tensor pairs = at::tensor({0.5F, 0.25F, -0.75F, 0.5F, 0.1F, -0.9F}).view({3, 2});
  const at::Tensor sums = at::tensor({0.5F, 0.75F, -0.75F, -0.25F, 0.1F, -0.8F}).view({3, 2});
  const Prediction predicted = Predictor::load(runtime, run).predict(pairs);
  EXPECT_LE(predicted.values.sub(sums).abs().max().item<double>(), 0.15);
}

/// Two of four experts for each row of three spirals.
json mixture_of_two(int epochs) {
  const json expert = {
      {{"use", "dense"}, {"out_features", 32}}, "tanh", {{"use", "dense"}, {"out_features", 16}}};
  return {{"treadle", 1},
          {"seed", 3},
          {"data", {{"use", "spirals"}, {"rows", 1200}}},
          {"transforms", {"standardize"}},
          {"model",
           {{"use", "flow"},
            {"flow",
             {{{"use", "dense"}, {"out_features", 16}},
              "tanh",
              {{"use", "mixture_of_experts"},
               {"router",
                {{"use", "top_k_router"},
                 {"num_experts", 4},
                 {"top_k", 2},
                 {"noise", 0.1},
                 {"capacity_factor", 1.5},
                 {"balance_coefficient", 0.05}}},
               {"experts", {expert, expert, expert, expert}}},
              "head"}}}},
          {"loss", "cross_entropy"},
          {"metrics", {"accuracy"}},
          {"optimizer", {{"use", "adam"}, {"learning_rate", 0.01}}},
          {"validation", "hold_out"},
          {"training", {{"epochs", epochs}, {"batch_size", 64}}}};
}

// Even experts have a quarter of the choices each; without the balance loss some had 0.45.
TEST(MixtureOfExperts, LearnsWithEvenExperts) {
  const Runtime runtime;
  const Workspace workspace;
  const fs::path run =
      run_workflow(runtime, runtime.resolve(mixture_of_two(60)), workspace.options()).folder;

  EXPECT_GT(column_of(run, "accuracy").back(), 0.93);
  EXPECT_GT(column_of(run, "log.top_k_router_0.load_min").back(), 0.1);
  EXPECT_LT(column_of(run, "log.top_k_router_0.load_max").back(), 0.43);
  EXPECT_LT(column_of(run, "log.top_k_router_0.dropped").back(), 0.06);
}

TEST(MixtureOfExperts, GivesTheSameBitsForAnyNumberOfWorkers) {
  const Runtime runtime = watching_runtime();
  const auto bits = [&](int workers) {
    const Workspace workspace;
    json document = mixture_of_two(4);
    document["resources"] = {{"workers", workers}, {"shards", 2}};
    document["schedule"] = "watched";
    return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
  };
  EXPECT_EQ(bits(3), bits(1));
}

// Its noise is the task's: of the step and the shard, never of the thread.
TEST(GumbelSoftmax, DrawsTheSameForAnyNumberOfWorkers) {
  const Runtime runtime = watching_runtime();
  const auto bits = [&](int workers) {
    const Workspace workspace;
    json document = mixture_of_two(3);
    document["model"]["flow"] = {{{"use", "dense"}, {"out_features", 6}},
                                 {{"use", "gumbel_softmax"}, {"hard", true}},
                                 {{"use", "dense"}, {"out_features", 6}},
                                 "head"};
    document["validation"] = {{"use", "k_fold"}, {"folds", 3}};
    document["resources"] = {{"workers", workers}, {"shards", 2}};
    document["schedule"] = "watched";
    return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
  };
  EXPECT_EQ(bits(3), bits(1));
}

TEST(Showcase, UsesEveryVerbAndLearns) {
  const Runtime runtime;
  const std::string text = read_file(source_folder() / "examples/showcase.json");
  for (const char* verb : {"residual", "at", "flow", "mixture_of_experts", "input", "loop", "map",
                           "merge", "split", "switch", "tag_group"})
    EXPECT_THAT(text, HasSubstr("{\"use\": \"" + std::string(verb) + "\"")) << verb;
  const Workspace workspace;

  const auto losses =
      losses_of(run_workflow(runtime, example(runtime, "showcase"), workspace.options()).folder);

  EXPECT_LT(losses.back(), losses.front() / 10);
}

TEST(Showcase, ItsPictureInTheGuideShowsItsNodes) {
  const Runtime runtime;
  const auto model = std::dynamic_pointer_cast<graph::Graph>(
      untrained_model(runtime, example(runtime, "showcase")));
  ASSERT_NE(model, nullptr);
  const std::string picture = read_file(source_folder() / "docs/guide/showcase.svg");

  for (const graph::NodeInfo& node : model->nodes())
    EXPECT_THAT(picture, HasSubstr(">" + node.id + "<"))
        << "draw it again: workflow-runner graph examples/showcase.json --model --svg "
           "docs/guide/showcase.svg";
}

TEST(Showcase, GivesTheSameBitsForAnyNumberOfWorkers) {
  const Runtime runtime = watching_runtime();
  const auto bits = [&](int workers, int shards) {
    const Workspace workspace;
    const json changes = {{"resources", {{"workers", workers}, {"shards", shards}}}};
    return bits_of(
        run_workflow(runtime, changed_example(runtime, "showcase", changes), workspace.options())
            .folder);
  };
  const std::string once = bits(1, 1);
  EXPECT_EQ(bits(3, 1), once);
  const std::string in_shards = bits(1, 2);
  EXPECT_EQ(bits(3, 2), in_shards);
}

TEST(Showcase, ResumesToTheSameBits) {
  const Runtime runtime = watching_runtime();
  const json changes = {{"training",
                         {{"use", "standard"},
                          {"epochs", 6},
                          {"batch_size", 24},
                          {"checkpoint", {{"every", "3st"}}}}}};
  const ResolvedWorkflow workflow = changed_example(runtime, "showcase", changes);
  std::string whole;
  {
    const Workspace workspace;
    whole = bits_of(run_workflow(runtime, workflow, workspace.options()).folder);
  }
  for (const int steps : {2, 9, 30}) {
    const Workspace workspace;
    RunOptions options = workspace.options();
    const Impatient impatient(runtime, steps);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, workflow, options), Interrupted);
    const fs::path run = fs::directory_iterator(options.output)->path();

    resume_run(runtime, run, workspace.options());

    EXPECT_EQ(bits_of(run), whole) << "stopped after " << steps << " steps";
  }
}

}  // namespace
}  // namespace treadle
