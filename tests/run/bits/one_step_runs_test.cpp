// Whole runs with gradients through one step of time: of recurrent models they end with other
// weights than with back-propagation through all of it, and with the same on every way.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "workspace.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::bits_of;
using testing::Workspace;

std::string bits_after(const Runtime& runtime, const json& document) {
  const Workspace workspace;
  return bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
}

struct Recurrent {
  std::string name;
  json flow;
};

json steps_of(const char* text) {
  return json::parse(text);
}

std::vector<Recurrent> recurrent_models() {
  return {
      {"Rnn", steps_of(R"([{"use": "rnn", "hidden_size": 5, "return_sequences": false}, "head"])")},
      {"Gru", steps_of(R"([{"use": "gru", "hidden_size": 5, "num_layers": 2, "dropout": 0.2},
                           {"use": "reduce", "dims": [1]}, "head"])")},
      {"Lstm",
       steps_of(
           R"([{"use": "lstm", "hidden_size": 4, "bidirectional": true, "return_sequences": false}, "head"])")},
      {"LoopAndCellInBranches", steps_of(R"([{"use": "flatten"},
                    {"use": "split", "branches": [
                      [{"use": "dense", "out_features": 5},
                       {"use": "loop", "body": [{"use": "dense", "out_features": 5}, "tanh"], "times": 3}],
                      [{"use": "dense", "out_features": 5},
                       {"use": "loop", "times": 3,
                        "body": [{"use": "gru_cell", "hidden_size": 5, "using": ["h"], "tag": "h"}]}]]},
                    {"use": "merge", "with": "cat"}, "head"])")},
      {"Adaptive", steps_of(R"([{"use": "flatten"}, {"use": "dense", "out_features": 5},
                    {"use": "loop", "body": [{"use": "dense", "out_features": 5}, "tanh"],
                     "adaptive": "learned_halt", "at_most": 4}, "head"])")},
  };
}

json document_of(const json& flow, const json& gradients, int workers = 1) {
  json document = json::parse(R"({
    "treadle": 1, "name": "series", "seed": 5,
    "data": {"use": "ar_series", "length": 150, "window": 6},
    "loss": "mse",
    "optimizer": {"use": "adam", "learning_rate": 0.01},
    "training": {"use": "standard", "epochs": 2, "batch_size": 24}
  })");
  json steps = json::array({{{"use", "unflatten"}, {"shape", {6, 1}}}});
  steps.insert(steps.end(), flow.begin(), flow.end());
  document["model"] = {{"use", "flow"}, {"flow", steps}};
  document["training"]["gradients"] = gradients;
  document["resources"]["workers"] = workers;
  return document;
}

class OneStepRun : public ::testing::TestWithParam<Recurrent> {};

TEST_P(OneStepRun, EndsWithOtherWeightsThanBackPropagationAndTheSameForAnyNumberOfWorkers) {
  const Runtime runtime;
  const json& flow = GetParam().flow;
  const json one_step{{"use", "truncated_bptt"}};
  const std::string bits = bits_after(runtime, document_of(flow, one_step));

  EXPECT_NE(bits_after(runtime, document_of(flow, "backprop")), bits);
  EXPECT_EQ(bits_after(runtime, document_of(flow, one_step, 3)), bits);
}

TEST_P(OneStepRun, EndsWithTheSameWeightsCompiledAndInParts) {
  const Runtime runtime;
  const json& flow = GetParam().flow;
  const json one_step{{"use", "truncated_bptt"}};
  const json parts_of_one_step{
      {"use", "accumulate"}, {"micro_batches", 2}, {"inner", "truncated_bptt"}};
  const json one_step_of_parts{{"use", "truncated_bptt"},
                               {"inner", {{"use", "accumulate"}, {"micro_batches", 2}}}};
  const json parts{{"use", "accumulate"}, {"micro_batches", 2}};
  const auto compiled = [](json document) {
    document["model"]["execution"] = "compiled";
    return document;
  };
  const auto in_shards = [](json document) {
    document["resources"]["shards"] = 2;
    return document;
  };

  EXPECT_EQ(bits_after(runtime, compiled(document_of(flow, one_step, 3))),
            bits_after(runtime, document_of(flow, one_step)));
  const std::string bits_of_parts = bits_after(runtime, document_of(flow, parts_of_one_step));
  EXPECT_EQ(bits_after(runtime, document_of(flow, one_step_of_parts)), bits_of_parts);
  EXPECT_NE(bits_after(runtime, document_of(flow, parts)), bits_of_parts);
  const std::string bits_of_shards = bits_after(runtime, in_shards(document_of(flow, one_step, 1)));
  EXPECT_EQ(bits_after(runtime, in_shards(document_of(flow, one_step, 3))), bits_of_shards);
  EXPECT_NE(bits_after(runtime, in_shards(document_of(flow, "backprop", 3))), bits_of_shards);
}

INSTANTIATE_TEST_SUITE_P(Documents, OneStepRun, ::testing::ValuesIn(recurrent_models()),
                         [](const auto& info) { return info.param.name; });

// Nothing is carried through time: the gradients are those of back-propagation.
TEST(OneStepRuns, OfAModelWithoutRecurrenceIsExact) {
  const Runtime runtime;
  const json flow = steps_of(R"(["flatten", {"use": "dense", "out_features": 6}, "tanh", "head"])");

  EXPECT_EQ(bits_after(runtime, document_of(flow, "truncated_bptt")),
            bits_after(runtime, document_of(flow, "backprop")));
}

}  // namespace
}  // namespace treadle
