// Networks beside PyTorch (reference.py); each finds what it should.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/tensor/task_random.h>

#include "test/reference_numbers.h"
#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Steps = nlohmann::json;
using ::testing::HasSubstr;

TensorSpec numbers_spec(std::int64_t width, at::ScalarType dtype) {
  return {{TensorSpec::kVaries, width}, dtype};
}

TensorSpec categories_spec(std::vector<std::int64_t> sizes) {
  TensorSpec spec({TensorSpec::kVaries, static_cast<std::int64_t>(sizes.size())}, at::kLong);
  spec.vocabulary = std::move(sizes);
  return spec;
}

/// For a loss that requires two outputs. Further inputs are references.
std::shared_ptr<graph::Graph> table_network(Steps builder, std::vector<TensorSpec> inputs,
                                            at::ScalarType dtype = at::kDouble) {
  LayerSpec spec;
  spec.dtype = dtype;
  spec.inputs = std::move(inputs);
  spec.outputs = {{"output", {2}}};
  Steps step{{"use", "graph"}, {"name", "net"}, {"builder", std::move(builder)}};
  Steps flow = Steps::array();
  if (spec.inputs.size() > 1) {
    flow.push_back({{"use", "input"}, {"names", {"categories"}}});
    step["using"] = {"categories"};
  }
  flow.push_back(std::move(step));
  const TaskRandom random(3);
  return graph::read_steps(Config(), flow, "", components()).build(spec);
}

at::Tensor output_of(const graph::Graph& network, const std::vector<at::Tensor>& inputs) {
  graph::GraphState state(network);
  return network.run(inputs, state).front();
}

/// Differentiates, the losses that layers add included.
at::Tensor differentiated(graph::Graph& network, const std::vector<at::Tensor>& inputs) {
  ForwardContext context;
  context.set_takes_losses(true);
  Outputs outputs(1);
  network.forward(inputs, outputs, context);
  at::Tensor loss = weighted(outputs[0]);
  for (const AuxiliaryLoss& one : context.take_losses())
    loss = loss + one.sum;
  loss.backward();
  return outputs[0];
}

TEST(TabNet, EqualsTheReference) {
  const auto network = table_network({{"use", "tabnet"},
                                      {"n_d", 3},
                                      {"n_a", 2},
                                      {"gamma", 1.5},
                                      {"virtual_batch_size", 4},
                                      {"lambda_sparse", 0.01}},
                                     {numbers_spec(5, at::kDouble)});
  const std::vector<at::Tensor> parameters = distinct_parameters(*network);
  fill_parameters(parameters);

  const at::Tensor y = differentiated(*network, {counted_rows(8, 5)});

  expect_near(
      numbers_of(y),
      {-0.4511608276195117, -0.19254949652963715, -0.9558101475911613, 0.34770145850513134,
       -0.3828012256315504, -0.24650527262837613, -0.5051887211206647, -0.0388845064182568,
       -0.7253908081512715, 0.06776942820120302, -0.5704278501115572, 0.13197336463706788,
       -0.547397790214029, -0.256581290207662, -0.4997620610661386, -0.0037917970568602244});
  expect_near(
      slopes_of(parameters),
      {-1.4768324148626615,  -0.7694216139000674,   0.3108174478448422,    -0.04517594892900269,
       0.009247742421536758, 1.4637179512882605,    0.021512966721051616,  0.004186407301430006,
       0.020627805914114863, -0.013518946339093518, 0.00903312999318478,   -0.012179701296168684,
       0.006552023356474651, 0.009597040453830466,  0.06533330088139715,   0.13389140357325316,
       0.2478586308340997,   0.047902791299799116,  -0.3276417420845211,   -0.1798436433830214,
       -1.052032740760759,   -0.49348615703834126,  0.46600881528572957,   2.515749443122121,
       0.4456130130199634,   -0.5184887427581271,   -0.79601620639338,     -0.011694206339934565,
       0.43112863002335244,  -0.28192403861516085,  0.7399014748336625,    -0.09946942384762669,
       -0.31143502299914605, -1.4416520445915597,   0.08391144064965252,   -1.6826071841103585,
       -0.3101295646455229,  -0.1992374131660249,   0.45328000534064317,   -0.1759136732469984,
       -0.2725457891191251,  -0.22981712731287107,  -0.21488284625377058,  -0.018654246342301367,
       -0.1880894097845321,  -0.11801099286222227,  -0.15231258415180232,  -0.08938366568680456,
       0.2383463033705889,   -0.227839503955145,    -0.013854469730934517, -0.31984793521167687,
       -0.2912525211201281,  0.5619481760115359,    0.7362701252451564},
      1e-8);
}

TEST(Saint, EqualsTheReference) {
  const auto network = table_network({{"use", "saint"},
                                      {"width", 4},
                                      {"num_heads", 2},
                                      {"row_head_dim", 3},
                                      {"hidden", 6},
                                      {"dropout", 0.0}},
                                     {numbers_spec(3, at::kDouble), categories_spec({3, 2})});
  const std::vector<at::Tensor> parameters = network->parameters();
  fill_parameters(parameters);
  const at::Tensor categories = at::tensor({0, 1, 2, 0, 1, 1, 2, 1, 0, 0}, at::kLong).view({5, 2});

  const at::Tensor y = differentiated(*network, {counted_rows(5, 3), categories});

  expect_near(numbers_of(y),
              {0.8217586157004778, -0.07074036062672012, 0.8211137034440734, -0.06978251586624945,
               0.8224918839430571, -0.0714758977167359, 0.822614352124023, -0.07155858977185175,
               0.8217824730913169, -0.07060254240200675});
  expect_near(slopes_of(parameters),
              {-0.0004512025934544292,  0.00029838767895604655, 0.00019448744484659985,
               -0.00021627503259477674, 7.692713846399316e-06,  -0.0007561672984775923,
               0.007709600295148557,    -0.0028773503782261556, -0.0004213771533512244,
               -0.011390119673462113,   0.004920362584704061,   0.00015158562419945003,
               0.007048175457689913,    0.002339065248696264,   -0.0015738275098932109,
               -0.0059412825350358325,  0.00024324094883918694, 0.005156242898457723,
               0.010465570351800388,    0.0128802345529994,     0.007028052659718736,
               0.003991631965767836,    0.0010847605513495551,  -0.004408099726954851,
               -0.04086776217746053,    0.007028763516476388,   0.004429517046001648,
               0.00044541109037437893,  -0.002222824210854578,  -0.004393173944695092,
               0.0005848243763517392,   0.001145642987272697,   -0.11830646965815836,
               0.0069909573791825655,   0.2211931431465174,     -0.2721233910725989,
               0.017925877363054746,    0.4548447247293208,     0.9168955980605474,
               0.46119595556233467});
}

TEST(TableEmbedding, PutsNumbersAndCategoriesBesideEachOther) {
  const auto network = table_network({{"use", "table_embedding"}, {"embedding_dim", 2}},
                                     {numbers_spec(3, at::kDouble), categories_spec({4, 2})});
  const at::Tensor x = at::randn({2, 3}, at::kDouble);
  const at::Tensor categories = at::tensor({3, 0, 1, 1}, at::kLong).view({2, 2});

  const at::Tensor y = output_of(*network, {x, categories});

  ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{2, 7}));
  const auto tables = network->named_parameters();
  EXPECT_TRUE(at::allclose(y.narrow(1, 0, 3), x));
  EXPECT_TRUE(at::allclose(y[0].narrow(0, 3, 4), at::cat({tables["net.categories.weight_0"][3],
                                                          tables["net.categories.weight_1"][0]})));
}

TEST(TableEmbedding, TakesCategoriesAsTheStream) {
  const Steps tokens{{"use", "table_embedding"}, {"embedding_dim", 2}, {"tokens", true}};
  const auto one = table_network(tokens, {categories_spec({4, 2}), numbers_spec(3, at::kDouble)});
  const auto other = table_network(tokens, {categories_spec({4, 2})});
  const at::Tensor categories = at::tensor({3, 0, 1, 1}, at::kLong).view({2, 2});

  EXPECT_EQ(output_of(*one, {categories, at::randn({2, 3}, at::kDouble)}).sizes(),
            (std::vector<std::int64_t>{2, 5, 2}));
  EXPECT_EQ(output_of(*other, {categories}).sizes(), (std::vector<std::int64_t>{2, 2, 2}));
}

// --- Each finds what it should

struct Drawn {
  std::vector<at::Tensor> inputs;
  at::Tensor classes;
};

double accuracy_of(graph::Graph& network, int steps, double rate,
                   const std::function<Drawn(std::int64_t rows)>& draw) {
  torch::optim::Adam adam(network.parameters(), torch::optim::AdamOptions(rate));
  network.train();
  for (int step = 0; step < steps; ++step) {
    const Drawn drawn = draw(64);
    adam.zero_grad();
    at::cross_entropy_loss(output_of(network, drawn.inputs), drawn.classes).backward();
    adam.step();
  }
  network.eval();
  const at::NoGradGuard no_gradients;
  const Drawn drawn = draw(512);
  return output_of(network, drawn.inputs)
      .argmax(1)
      .eq(drawn.classes)
      .to(at::kFloat)
      .mean()
      .item<double>();
}

// Which of two features counts, a third one says: the data "Syn4" of the TabNet paper is alike.
TEST(TabNet, FindsWhichFeatureCounts) {
  const auto network =
      table_network({{"use", "tabnet"}}, {numbers_spec(6, at::kFloat)}, at::kFloat);
  const TaskRandom random(1);
  EXPECT_GT(accuracy_of(*network, 400, 0.02,
                        [](std::int64_t rows) {
                          const at::Tensor x = at::randn({rows, 6});
                          const at::Tensor chosen =
                              at::where(x.select(1, 0).gt(0), x.select(1, 1), x.select(1, 2));
                          return Drawn{{x}, chosen.gt(0).to(at::kLong)};
                        }),
            0.9);
}

// The sign of a number, turned by a category.
TEST(Saint, FindsWhatANumberAndACategoryHaveInCommon) {
  const auto network = table_network(
      {{"use", "saint"}, {"width", 16}, {"hidden", 32}, {"dropout", 0.0}, {"references", 64}},
      {numbers_spec(2, at::kFloat), categories_spec({4})}, at::kFloat);
  const TaskRandom random(1);
  EXPECT_GT(accuracy_of(*network, 200, 0.002,
                        [](std::int64_t rows) {
                          const at::Tensor x = at::randn({rows, 2});
                          const at::Tensor category = at::randint(4, {rows, 1}, at::kLong);
                          const at::Tensor sign =
                              category.select(1, 0).gt(1).to(at::kFloat) * 2 - 1;
                          return Drawn{{x, category}, (x.select(1, 1) * sign).gt(0).to(at::kLong)};
                        }),
            0.9);
}

// --- What does not fit

std::string mistake_in(const Steps& builder, std::vector<TensorSpec> inputs) {
  try {
    table_network(builder, std::move(inputs));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TableMistakes, NameWhatIsTaken) {
  EXPECT_THAT(mistake_in({{"use", "tabnet"}}, {categories_spec({3})}),
              HasSubstr("\"table_embedding\" makes them of categories"));
  EXPECT_THAT(
      mistake_in({{"use", "saint"}}, {numbers_spec(3, at::kDouble), numbers_spec(2, at::kDouble)}),
      HasSubstr("takes numbers [B, features] and categories [B, columns] int64"));
  EXPECT_THAT(mistake_in({{"use", "tabnet"}, {"n_shared", 0}, {"n_independent", 0}},
                         {numbers_spec(3, at::kDouble)}),
              HasSubstr("one of them must be 1 or more"));
}

}  // namespace
}  // namespace treadle::testing
