// Parameters counted by hand, results beside formulas, refusals; and every combination trains.
#include <string>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/weights.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/tensor/task_random.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

TensorSpec rows_of(std::vector<std::int64_t> row, at::ScalarType dtype = at::kFloat) {
  row.insert(row.begin(), TensorSpec::kVaries);
  return {std::move(row), dtype};
}

/// Of width 8 where nothing else is said, with tanh; three outputs.
std::shared_ptr<graph::Graph> hive_of(Json parameters,
                                      std::vector<TensorSpec> inputs = {rows_of({5})},
                                      std::vector<std::int64_t> output = {3}) {
  LayerSpec spec;
  spec.inputs = std::move(inputs);
  spec.outputs = {{"output", std::move(output)}};
  parameters["use"] = "hive";
  parameters.emplace("width", 8);
  parameters.emplace("num_heads", 2);
  parameters.emplace("activation", "tanh");
  Json step{{"use", "graph"}, {"name", "net"}, {"builder", std::move(parameters)}};
  Json steps = Json::array();
  if (spec.inputs.size() > 1) {
    steps.push_back({{"use", "input"}, {"names", {"lengths"}}});
    step["using"] = {"lengths"};
  }
  steps.push_back(std::move(step));
  const TaskRandom random(3);
  return graph::read_steps(Config(), steps, "", components()).build(spec);
}

at::Tensor result_of(const graph::Graph& network, const std::vector<at::Tensor>& inputs) {
  graph::GraphState state(network);
  return network.run(inputs, state).front();
}

std::int64_t parameters_of(const graph::Graph& network) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : network.parameters())
    count += parameter.numel();
  return count;
}

// --- Counts, by hand: w = 8 of 5 numbers, three outputs

constexpr std::int64_t kStem = 5 * 8 + 8;
constexpr std::int64_t kMerger = 8 * 8 + 8;  // of what is as wide as a cell
constexpr std::int64_t kHead = 8 * 3 + 3;
constexpr std::int64_t kAround = kStem + kMerger + kHead;
constexpr std::int64_t kDense = 8 * 8 + 8;

struct KindCount {
  std::string kind;
  std::int64_t parameters;
};

TEST(Hive, HasTheParametersOfItsCells) {
  const std::vector<KindCount> kinds{
      {"attention", 4 * kDense},          // queries, keys, values, and behind them
      {"lstm", 4 * (2 * 8 * 8 + 2 * 8)},  // four gates, of input and state, two biases each
      {"gru", 3 * (2 * 8 * 8 + 2 * 8)},   //
      {"rnn", 2 * 8 * 8 + 2 * 8},         //
      {"dense", kDense},                  //
      {"norm_dense", 2 * 8 + kDense},     //
      {"gated_feed_forward", 2 * (8 * 22 + 22) + 22 * 8 + 8}};  // 22 = 8 · 8 / 3, rounded up
  std::int64_t all = 0;
  Json names = Json::array();
  for (const KindCount& one : kinds) {
    EXPECT_EQ(parameters_of(*hive_of(grid(2, 2, one.kind, "mean"))), kAround + 4 * one.parameters)
        << one.kind;
    names.push_back(one.kind);
    all += one.parameters;
  }
  EXPECT_EQ(parameters_of(*hive_of(grid(7, 1, names, "add"))), kAround + all);
}

TEST(Hive, HasAMergerAsWideAsWhatItIsGiven) {
  for (const char* const combine : {"cat", "grid_cat"}) {
    EXPECT_EQ(parameters_of(*hive_of(grid(2, 3, "dense", combine))),
              kStem + (6 * 8 * 8 + 8) + kHead + 6 * kDense)
        << combine;
  }
  EXPECT_EQ(parameters_of(*hive_of(grid(2, 3, "dense", "gate"))), kAround + 6 * kDense + 8 * 6 + 6)
      << "and the gate, linear from 8 to 6";
}

// --- What it computes

class Weights {
 public:
  explicit Weights(const graph::Graph& network) : parameters_(network.named_parameters()) {}

  at::Tensor linear(const at::Tensor& x, const std::string& node) const {
    return at::linear(x, parameters_["net." + node + ".weight"],
                      parameters_["net." + node + ".bias"]);
  }
  at::Tensor after(const at::Tensor& combined) const {
    return linear(at::tanh(linear(combined, "merger")), "head");
  }
  std::vector<at::Tensor> dense_cells(const at::Tensor& x, int count) const {
    std::vector<at::Tensor> cells;
    for (int i = 0; i < count; ++i)
      cells.push_back(at::tanh(linear(x, "cells_" + std::to_string(i) + ".dense_0")));
    return cells;
  }

 private:
  torch::OrderedDict<std::string, at::Tensor> parameters_;
};

TEST(Hive, CombinesDenseCellsByTheFormulas) {
  const at::NoGradGuard no_gradients;
  const TaskRandom random(1);
  const at::Tensor x = at::randn({6, 5});
  const auto check = [&](const char* combine, const auto& formula) {
    const auto network = hive_of(grid(2, 2, "dense", combine));
    const Weights weights(*network);
    const at::Tensor stem = at::tanh(weights.linear(x, "stem"));
    const at::Tensor wanted = weights.after(formula(weights, stem, weights.dense_cells(stem, 4)));
    EXPECT_TRUE(result_of(*network, {x}).allclose(wanted, 1e-5, 1e-6)) << combine;
  };
  using Cells = std::vector<at::Tensor>;
  check("mean", [](const Weights&, const at::Tensor&, const Cells& cells) {
    return at::stack(cells).mean(0);
  });
  check("add", [](const Weights&, const at::Tensor&, const Cells& cells) {
    return at::stack(cells).sum(0);
  });
  for (const char* const combine : {"cat", "grid_cat"}) {  // cells are row by row
    check(combine,
          [](const Weights&, const at::Tensor&, const Cells& cells) { return at::cat(cells, -1); });
  }
  check("gate", [](const Weights& weights, const at::Tensor& stem, const Cells& cells) {
    const at::Tensor shares = weights.linear(stem, "softmax_router_0").softmax(-1);
    return at::stack(cells, -1).mul(shares.unsqueeze(1)).sum(-1);
  });
}

// Of one position the attention weight is 1, so values pass: heads change nothing.
TEST(Hive, SeesARowAsOnePosition) {
  const at::NoGradGuard no_gradients;
  const TaskRandom random(1);
  const at::Tensor x = at::randn({6, 5});
  for (const char* const kind : {"attention", "lstm", "gru", "rnn"}) {
    const auto of_rows = hive_of(grid(1, 2, kind, "mean"));
    const auto of_sequences = hive_of(grid(1, 2, kind, "mean"), {rows_of({1, 5})});
    load_module_state(*of_sequences, module_state(*of_rows));
    EXPECT_TRUE(
        result_of(*of_rows, {x}).allclose(result_of(*of_sequences, {x.unsqueeze(1)}), 1e-5, 1e-6))
        << kind;
  }
}

TEST(Hive, HidesPaddingOfSequences) {
  const at::NoGradGuard no_gradients;
  const Json kinds{"attention", "lstm", "gru", "rnn", "gated_feed_forward", "norm_dense"};
  const auto network =
      hive_of(grid(2, 3, kinds, "mean"), {rows_of({7, 5}), rows_of({}, at::kLong)});
  network->eval();
  const TaskRandom random(1);
  const at::Tensor x = at::randn({2, 7, 5});
  at::Tensor other = x.clone();
  other[0].narrow(0, 4, 3).fill_(9);
  const at::Tensor lengths = at::tensor({4, 7}, at::TensorOptions(at::kLong));
  const at::Tensor all = at::tensor({7, 7}, at::TensorOptions(at::kLong));

  EXPECT_TRUE(result_of(*network, {x, lengths}).allclose(result_of(*network, {other, lengths})));
  EXPECT_FALSE(result_of(*network, {x, all}).allclose(result_of(*network, {other, all})));
}

// Each cell sees the whole sequence: the last number reaches the first position through attention.
TEST(Hive, GivesCellsTheWholeSequence) {
  Json parameters = grid(1, 2, "attention", "mean");
  parameters["return_sequences"] = true;
  const auto network = hive_of(parameters, {rows_of({4, 5})}, {4, 3});
  const TaskRandom random(1);
  const at::Tensor x = at::randn({2, 4, 5}).set_requires_grad(true);

  const at::Tensor result = result_of(*network, {x});
  result.select(1, 0).sum().backward();

  EXPECT_EQ(result.sizes(), (std::vector<std::int64_t>{2, 4, 3}));
  EXPECT_TRUE(x.grad().select(1, 3).abs().sum().gt(1e-4).item<bool>());
}

// --- A training

// Points within a ring, which no line tells apart.
TEST(Hive, FindsARingWithEveryCombination) {
  const Json kinds{"attention", "gated_feed_forward", "lstm", "norm_dense"};
  for (const char* const combine : {"mean", "add", "cat", "grid_cat", "gate"}) {
    Json parameters = grid(2, 2, kinds, combine);
    parameters["width"] = 16;
    const auto network = hive_of(parameters, {rows_of({2})}, {2});
    const TaskRandom random(1);
    const auto draw = [](std::int64_t rows) {
      const at::Tensor x = at::randn({rows, 2});
      return std::pair(x, x.square().sum(1).gt(1.4).to(at::kLong));
    };
    torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.01));
    for (int step = 0; step < 150; ++step) {
      const auto [x, y] = draw(64);
      adam.zero_grad();
      at::cross_entropy_loss(result_of(*network, {x}), y).backward();
      adam.step();
    }
    const at::NoGradGuard no_gradients;
    const auto [x, y] = draw(512);
    const at::Tensor right = result_of(*network, {x}).argmax(1).eq(y).to(at::kFloat);
    EXPECT_GT(right.mean().item<double>(), 0.93) << combine;
  }
}

// --- What does not fit

std::string mistake_in(const Json& parameters, std::vector<TensorSpec> inputs = {rows_of({5})}) {
  try {
    hive_of(parameters, std::move(inputs));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Hive, RefusesWhatDoesNotFit) {
  EXPECT_THAT(mistake_in(grid(2, 2, Json{"lstm", "gru", "rnn"}, "mean")),
              HasSubstr("/cells: a grid of 2 x 2 has 4 cells, got 3; name one kind for all, or as "
                        "many as there are cells"));
  Json heads = grid(1, 1, "attention", "mean");
  heads["num_heads"] = 3;
  EXPECT_THAT(mistake_in(heads), HasSubstr("/num_heads: must divide \"width\", 8, got 3"));
  heads["cells"] = "lstm";
  EXPECT_EQ(mistake_in(heads), "") << "without attention no head divides anything";
  EXPECT_THAT(mistake_in(grid(1, 1, "dense", "mean"), {rows_of({3, 4, 4})}),
              HasSubstr("sequences [B, length, width], got [B, 3, 4, 4]"));
  EXPECT_THAT(mistake_in(grid(1, 2, "dense", "mean"), {rows_of({5}), rows_of({}, at::kLong)}),
              HasSubstr("the lengths [B] int64 of sequences, got [B, 5] and [B]"));
  EXPECT_THAT(mistake_in(grid(1, 2, "lstm", "gate"), {rows_of({7, 5}), rows_of({}, at::kLong)}),
              HasSubstr("has a gate, whose cells cannot be given lengths"));
  Json each = grid(1, 1, "dense", "mean");
  each["return_sequences"] = true;
  EXPECT_THAT(mistake_in(each), HasSubstr("has \"return_sequences\", which rows of numbers are"));
}

}  // namespace
}  // namespace treadle::testing
