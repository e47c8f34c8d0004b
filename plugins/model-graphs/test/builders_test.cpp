// The networks that are built as a whole, beside the same ones written with libtorch.
#include <functional>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/flow_model.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/graph/graph_contract.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

/// Layers of other plugins, too.
const PluginRegistry& components() {
  return plugin().registry();
}

GraphCase builder(std::string name, const std::string& component, Json parameters = {},
                  std::vector<std::int64_t> shape = {6}) {
  GraphCase one;
  one.name = std::move(name);
  one.make = [component, parameters = std::move(parameters)] {
    return plugin().make<GraphBuilder>(component, parameters);
  };
  one.components = [] { return std::cref(components()); };
  one.inputs = {std::move(shape)};
  return one;
}

GraphCase piece(GraphCase one) {
  one.is_whole = false;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Builders, GraphContract,
    ::testing::Values(
        builder("ResidualMlp", "residual_mlp", {{"width", 8}, {"hidden", 12}}),
        builder("ResidualMlpWithDropout", "residual_mlp",
                {{"width", 8}, {"hidden", 12}, {"dropout", 0.2}, {"norm", "layer"}}),
        builder("ResidualMlpWithoutBlocks", "residual_mlp", {{"blocks", 0}, {"norm", "none"}}),
        piece(builder("ResidualMlpWithoutHead", "residual_mlp", {{"width", 8}, {"head", false}})),
        piece(builder("Grid", "grid",
                      {{"rows", 2},
                       {"columns", 2},
                       {"cell", {{{"use", "dense"}, {"out_features", 5}}, "tanh"}},
                       {"replace", {{{"at", {1, 0, 1}}, {"with", "sigmoid"}}}}})),
        builder("ConvNetForImages", "conv_net", {{"channels", {3, 4}}}, {2, 8, 8}),
        builder("ConvNetForSequences", "conv_net",
                {{"channels", {3}}, {"depth", 2}, {"kernel_size", 5}, {"norm", "none"}}, {2, 9}),
        piece(builder("ConvNetWithoutHead", "conv_net", {{"channels", {3}}, {"head", false}},
                      {2, 8, 8}))),
    CaseName());

// --- Beside networks by hand

/// Two blocks of Gorishniy et al., as one would write them down.
struct ResidualByHand : torch::nn::Module {
  ResidualByHand() {
    for (int i = 0; i < 2; ++i) {
      norms.push_back(register_module("norm" + std::to_string(i), torch::nn::BatchNorm1d(8)));
      ups.push_back(register_module("up" + std::to_string(i), torch::nn::Linear(8, 12)));
      downs.push_back(register_module("down" + std::to_string(i), torch::nn::Linear(12, 8)));
    }
    last = register_module("last", torch::nn::BatchNorm1d(8));
    head = register_module("head", torch::nn::Linear(8, 3));
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) {
    at::Tensor x = stem->forward(input);
    for (std::size_t i = 0; i < 2; ++i)
      x = x + downs[i]->forward(at::relu(ups[i]->forward(norms[i]->forward(x))));
    return head->forward(at::relu(last->forward(x)));
  }
  torch::nn::Linear stem = register_module("stem", torch::nn::Linear(6, 8));
  std::vector<torch::nn::BatchNorm1d> norms;
  std::vector<torch::nn::Linear> ups;
  std::vector<torch::nn::Linear> downs;
  torch::nn::BatchNorm1d last{nullptr};
  torch::nn::Linear head{nullptr};
};

struct ConvolutionsByHand : torch::nn::Module {
  ConvolutionsByHand() { to(at::kDouble); }
  static torch::nn::Conv2dOptions kept_size(std::int64_t in, std::int64_t out) {
    return torch::nn::Conv2dOptions(in, out, 3).padding(1).bias(false);
  }
  at::Tensor forward(const at::Tensor& input) {
    at::Tensor x = at::max_pool2d(at::relu(first_norm->forward(first->forward(input))), 2);
    x = at::max_pool2d(at::relu(second_norm->forward(second->forward(x))), 2);
    return head->forward(x.mean({2, 3}));
  }
  torch::nn::Conv2d first = register_module("first", torch::nn::Conv2d(kept_size(2, 4)));
  torch::nn::BatchNorm2d first_norm = register_module("first_norm", torch::nn::BatchNorm2d(4));
  torch::nn::Conv2d second = register_module("second", torch::nn::Conv2d(kept_size(4, 5)));
  torch::nn::BatchNorm2d second_norm = register_module("second_norm", torch::nn::BatchNorm2d(5));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(5, 3));
};

std::shared_ptr<graph::Graph> built(const std::string& name, const Json& parameters,
                                    std::vector<std::int64_t> shape) {
  LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.outputs = {{"output", {3}}};
  shape.insert(shape.begin(), TensorSpec::kVaries);
  spec.inputs = {TensorSpec(std::move(shape), at::kDouble)};
  const TaskRandom random(1);
  return graph::FlowBuilder::from(graph::built(components(), name, parameters)).build(spec);
}

/// With the same weights, in the order in which they are used: results and gradients are the same.
template <typename ByHand>
void expect_same_network(const graph::Graph& ours, ByHand& theirs, const at::Tensor& input) {
  const auto parameters = ours.parameters();
  const auto by_hand = theirs.parameters();
  ASSERT_EQ(parameters.size(), by_hand.size());
  {
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < by_hand.size(); ++i) {
      ASSERT_EQ(parameters[i].sizes(), by_hand[i].sizes()) << i;
      by_hand[i].copy_(parameters[i]);
    }
  }
  const at::Tensor result = ours.forward(input);
  const at::Tensor expected = theirs.forward(input);
  EXPECT_TRUE(at::equal(result, expected));

  result.square().sum().backward();
  expected.square().sum().backward();
  for (std::size_t i = 0; i < by_hand.size(); ++i)
    EXPECT_TRUE(at::allclose(parameters[i].grad(), by_hand[i].grad(), 1e-12, 1e-12)) << i;
}

TEST(ResidualMlp, IsTheNetworkOfThePaper) {
  const auto ours = built("residual_mlp", {{"blocks", 2}, {"width", 8}, {"hidden", 12}}, {6});
  ResidualByHand theirs;
  // As used: the stem stands first, a block's norm before its layers.
  std::vector<std::string> order;
  for (const auto& item : ours->named_parameters())
    order.push_back(item.key());
  const std::string within = "residual_mlp_0.";
  EXPECT_EQ(order.front(), within + "stem.weight");
  EXPECT_EQ(order[2], within + "block_0.batch_norm_0.weight");
  EXPECT_EQ(order.back(), within + "head_0.bias");
  const TaskRandom random(2);

  expect_same_network(*ours, theirs, at::randn({7, 6}, at::kDouble));
}

TEST(ConvNet, IsConvolutionsNormsAndPools) {
  const auto ours = built("conv_net", {{"channels", {4, 5}}}, {2, 8, 8});
  ConvolutionsByHand theirs;
  const TaskRandom random(2);

  expect_same_network(*ours, theirs, at::randn({3, 2, 8, 8}, at::kDouble));
}

// --- Mistakes

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ResidualMlp, SaysWhatItCannotTake) {
  EXPECT_EQ(message_of([] {
              built("residual_mlp", Json::object(), {2, 8, 8});
            }),
            "through() in step 1: \"residual_mlp_0\" (residual_mlp) cannot take [B, 2, 8, 8] from "
            "\"input\": takes one input of rows of numbers [B, width], got [B, 2, 8, 8]");
}

TEST(ConvNet, SaysWhatItCannotTake) {
  EXPECT_EQ(message_of([] {
              built("conv_net", {{"channels", {4, 5, 6}}}, {2, 8, 7});
            }),
            "through() in step 1: \"conv_net_0\" (conv_net) cannot take [B, 2, 8, 7] from "
            "\"input\": 3 stages, each of which halves it, leave nothing of [B, 2, 8, 7]; name "
            "fewer channels");
  EXPECT_EQ(message_of([] {
              plugin().make<GraphBuilder>("conv_net", {{"kernel_size", 4}});
            }),
            "/kernel_size: must be odd, so that there is a middle, got 4");
}

/// Builds what it is told to.
class Told final : public GraphBuilder {
 public:
  explicit Told(Json steps) : steps_(std::move(steps)) {}

 private:
  Json do_build(const LayerSpec&) const override { return steps_; }
  Json steps_;
};

std::shared_ptr<graph::Graph> told(Json steps, const std::string& origin = "") {
  LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 4}, at::kDouble)};
  auto builder = std::make_unique<Told>(std::move(steps));
  builder->set_origin(origin);
  graph::FlowBuilder flow;
  flow.through(graph::built(std::move(builder), "told", Json::object(), components()));
  return flow.build(spec);
}

std::string mistake_of(Json steps, const std::string& origin = "") {
  return message_of([&] { told(std::move(steps), origin); });
}

TEST(GraphBuilders, MayNameALayerAloneAsDocumentsDo) {
  const at::Tensor x = at::randn({3, 4}, at::kDouble);

  EXPECT_TRUE(at::equal(told({"relu"})->forward(x), at::relu(x)));
}

// A builder does not know what its inputs are called where it is used.
TEST(GraphBuilders, GetReferencesInTheOrderOfUsing) {
  const Json joins = {{{"use", "input"}, {"names", {"first", "second"}}},
                      {{"use", "at"}, {"tags", {"first", "second"}}},
                      {{"use", "merge"}, {"with", {{"use", "cat"}}}}};
  LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.inputs.assign(3, TensorSpec({TensorSpec::kVaries, 2}, at::kDouble));
  const auto joined = [&](const std::vector<std::string>& tags) {
    graph::FlowBuilder flow;
    flow.input({"a", "b"});
    flow.through(graph::built(std::make_unique<Told>(joins), "told", Json::object(), components()));
    return flow.using_(tags).build(spec);
  };
  const TaskRandom random(2);
  const std::vector<at::Tensor> x{at::randn({3, 2}, at::kDouble), at::randn({3, 2}, at::kDouble),
                                  at::randn({3, 2}, at::kDouble)};
  const auto result = [&](const std::vector<std::string>& tags) {
    const auto network = joined(tags);
    graph::GraphState state(*network);
    return network->run(x, state).front();
  };

  EXPECT_TRUE(at::equal(result({"a", "b"}), at::cat({x[1], x[2]}, 1)));
  EXPECT_TRUE(at::equal(result({"b", "a"}), at::cat({x[2], x[1]}, 1)));
  EXPECT_EQ(message_of([&] { joined({"a"}); }),
            "through() in step 2: in \"told_0\", built by graph \"told\": the flow takes 3 inputs "
            "(the stream, first, second), but is given 2");
}

TEST(GraphBuilders, MistakesInWhatTheyBuildNameThem) {
  const std::string origin = "graph \"told\" of plugin org.example.told 1.0.0";
  EXPECT_EQ(
      mistake_of({{{"use", "dense"}, {"out_features", "many"}}}, origin),
      "through() in step 1: \"told_0\" (told) cannot take [B, 4] from \"input\": what graph "
      "\"told\" of plugin org.example.told 1.0.0 built is wrong: /0/out_features: expected a whole "
      "number, got \"many\" (text)");
  EXPECT_EQ(mistake_of({{{"use", "dense"}, {"out_features", 4}, {"tag", "a"}},
                        {{"use", "at"}, {"tags", {"b"}}}},
                       origin),
            "through() in step 1: in \"told_0\", built by graph \"told\" of plugin "
            "org.example.told 1.0.0: /1: nothing is tagged \"b\"");
  EXPECT_EQ(mistake_of("dense", origin),
            "through() in step 1: \"told_0\" (told) cannot take [B, 4] from \"input\": graph "
            "\"told\" of plugin org.example.told 1.0.0 failed in build(): it returned no array of "
            "steps but \"dense\" (text)");
  EXPECT_EQ(mistake_of(Json::array({4}), origin),
            "through() in step 1: \"told_0\" (told) cannot take [B, 4] from \"input\": what graph "
            "\"told\" of plugin org.example.told 1.0.0 built is wrong: /0: expected the name of a "
            "layer or an object with \"use\", got 4");
  EXPECT_EQ(mistake_of(Json::array(), origin),
            "through() in step 1: \"told_0\" (told) cannot take [B, 4] from \"input\": graph "
            "\"told\" of plugin org.example.told 1.0.0 failed in build(): it returned no step");
}

/// Names itself within itself, without end.
class Endless final : public GraphBuilder {
 private:
  Json do_build(const LayerSpec&) const override {
    return {{{"use", "graph"}, {"builder", {{"use", "endless"}}}}};
  }
};

/// {"use": "graph", "builder": …}, where nothing checks what it is given.
class Unchecked final : public LayerFactory, public graph::FlowVerb {
 public:
  Unchecked(const Config& config, const ComponentContext& context)
      : built_(graph::read_built(config, "builder", *context.registry)) {}
  void add_to(graph::FlowBuilder& flow) const override { flow.through(built_); }

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec&) const override { return nullptr; }
  void* do_ask(std::string_view id) override {
    return id == FlowVerb::kInterface ? static_cast<FlowVerb*>(this) : nullptr;
  }
  graph::Part built_;
};

TEST(GraphBuilders, ThatNameThemselvesWithoutEndAreRefused) {
  PluginRegistry registry;
  registry.add<GraphBuilder>("endless", [](const Config&, const ComponentContext&) {
    return std::make_unique<Endless>();
  });
  registry.add<LayerFactory>("graph", [](const Config& config, const ComponentContext& context) {
    return std::make_unique<Unchecked>(config, context);
  });
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 4}, at::kFloat)};
  graph::FlowBuilder flow;
  flow.through(graph::built(registry, "endless"));

  const std::string said = message_of([&] { flow.build(spec); });

  EXPECT_TRUE(said.ends_with("flows stand in each other more than 100 levels deep")) << said;
}

// --- A grid

std::shared_ptr<graph::Graph> grid_of(Json parameters) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 3}, at::kFloat)};
  parameters["use"] = "grid";
  const Json steps = Json::array({{{"use", "graph"}, {"name", "net"}, {"builder", parameters}}});
  const TaskRandom random(3);
  return graph::read_steps(Config(), steps, "", components()).build(spec);
}

const Json kCell = Json::array({{{"use", "dense"}, {"out_features", 3}}, "relu"});

TEST(Grid, NamesEachLayerByItsAddress) {
  const auto network = grid_of({{"rows", 2}, {"columns", 3}, {"cell", kCell}});
  std::vector<std::string> names;
  for (const auto& item : network->named_parameters())
    names.push_back(item.key());

  ASSERT_EQ(names.size(), 12);
  EXPECT_EQ(names.front(), "net.cells.0.0.0.weight");
  EXPECT_EQ(names.back(), "net.cells.1.2.0.bias");

  std::vector<std::string> order;
  graph::GraphState state(*network);
  state.on_each_node([&](const std::string& node, const at::Tensor&) { order.push_back(node); });
  const at::Tensor x = at::randn({2, 3});
  network->run({&x, 1}, state);
  ASSERT_EQ(order.size(), 2 * 6 + 6 + 1) << "layers, cells and the whole";
  EXPECT_EQ(order[3], "net.cells.0.1.0");
  EXPECT_EQ(order[4], "net.cells.0.1.1");
  EXPECT_EQ(order[5], "net.cells.0.1");
}

TEST(Grid, ReplacesTheLayerAtAnAddress) {
  Json parameters{{"rows", 1}, {"columns", 2}, {"cell", kCell}};
  const auto plain = grid_of(parameters);
  parameters["replace"] = {{{"at", {0, 1, 1}}, {"with", "tanh"}}};
  const auto replaced = grid_of(parameters);
  const at::Tensor x = at::randn({4, 3});
  const at::Tensor hidden = at::relu(at::linear(x, plain->parameters()[0], plain->parameters()[1]));
  const at::Tensor last = at::linear(hidden, plain->parameters()[2], plain->parameters()[3]);

  EXPECT_TRUE(at::equal(plain->forward(x), at::relu(last)));
  EXPECT_TRUE(at::equal(replaced->forward(x), at::tanh(last))) << "the weights are the same";
}

TEST(Grid, RefusesAddressesBeyondIt) {
  Json parameters{{"rows", 1}, {"columns", 2}, {"cell", kCell}};
  const auto mistake = [&](const Json& replace) -> std::string {
    parameters["replace"] = replace;
    try {
      plugin().make<GraphBuilder>("grid", parameters);
    } catch (const DocumentError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(mistake({{{"at", {1, 0, 0}}, {"with", "tanh"}}}),
            "/replace/0/at: is [row, column, layer] within a grid of [1,2,2], got [1,0,0]");
  EXPECT_EQ(mistake({{{"at", {0, 0, 1}}, {"with", "tanh"}}, {{"at", {0, 0, 1}}, {"with", "relu"}}}),
            "/replace/1/at: is replaced twice: [0,0,1]");
}

}  // namespace
}  // namespace treadle::testing
