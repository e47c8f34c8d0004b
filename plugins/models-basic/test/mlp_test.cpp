#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/model/forward_context.h>
#include <treadle/graph/graph.h>
#include <treadle/plan/plan.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/model/model_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>

namespace treadle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const PluginUnderTest& plugin() {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  return kPlugin;
}

std::unique_ptr<ModelProvider> make(std::string_view name, nlohmann::json parameters = {}) {
  return plugin().make<ModelProvider>(name, std::move(parameters));
}

ModelCase case_of(std::string name, std::string component, nlohmann::json parameters = {},
                  ModelSpec spec = ModelCase::table_spec()) {
  return {std::move(name),
          [component, parameters] { return plugin().make<ModelProvider>(component, parameters); },
          std::move(spec)};
}

ModelCase with_other_training(ModelCase one) {
  one.training_differs = true;
  return one;
}

ModelSpec image_spec() {
  ModelSpec spec = ModelCase::table_spec();
  spec.inputs = {{"image", {1, 4, 3}, {}}};
  return spec;
}

ModelSpec one_number_spec() {
  ModelSpec spec = ModelCase::table_spec();
  spec.inputs = {{"x", {}, {}}};
  return spec;
}

ModelSpec two_tables_spec() {
  ModelSpec spec = ModelCase::table_spec();
  spec.inputs.push_back({"more", {2}, {}});
  return spec;
}

ModelSpec pixels_spec() {
  ModelSpec spec = ModelCase::table_spec();
  spec.outputs = {{"pixels", {3, 2, 4}}};
  return spec;
}

INSTANTIATE_TEST_SUITE_P(
    Models, ModelContract,
    ::testing::Values(
        case_of("Linear", "linear"), case_of("Mlp", "mlp"),
        case_of("MlpWithoutHiddenLayers", "mlp", {{"hidden", nlohmann::json::array()}}),
        case_of("MlpWithTwoOutputs", "mlp", {}, ModelCase::table_spec(6, {3, 2})),
        case_of("MlpOnImages", "mlp", {}, image_spec()),
        case_of("MlpOnOneNumber", "mlp", {}, one_number_spec()),
        case_of("MlpOnTwoTables", "mlp", {}, two_tables_spec()),
        case_of("MlpForPixels", "mlp", {}, pixels_spec()),
        with_other_training(case_of("MlpWithDropout", "mlp", {{"dropout", 0.5}})),
        with_other_training(case_of("MlpWithBatchNorm", "mlp", {{"norm", "batch"}})),
        case_of("MlpWithLayerNorm", "mlp", {{"norm", "layer"}}),
        case_of("MlpThatRecomputes", "mlp", {{"hidden", {8, 8, 8}}, {"recompute_layers", 2}}),
        case_of("MlpWithGelu", "mlp", {{"activation", "gelu"}}),
        case_of("MlpWithTanh", "mlp", {{"activation", "tanh"}}),
        case_of("MlpWithSilu", "mlp", {{"activation", "silu"}}),
        case_of("MlpWithSigmoid", "mlp", {{"activation", "sigmoid"}}),
        case_of("MlpWithLeakyRelu", "mlp", {{"activation", "leaky_relu"}}),
        case_of("MlpWithElu", "mlp", {{"activation", "elu"}})),
    CaseName());

TEST(Mlp, HasTheSameGradientsAndStatisticsWhenItRecomputes) {
  for (const char* norm : {"none", "batch", "layer"}) {
    const auto trained = [&](int recompute_layers) {
      const TaskRandom random(3);
      const auto model = make("mlp", {{"hidden", {8, 7, 6, 5, 4}},
                                      {"norm", norm},
                                      {"recompute_layers", recompute_layers}})
                             ->create(ModelCase::table_spec());
      model->to(at::kDouble);
      Outputs outputs(1);
      ForwardContext context;
      (*model)(std::vector<at::Tensor>{at::linspace(-1, 1, 60, at::kDouble).view({10, 6})}, outputs,
               context);
      outputs[0].pow(2).sum().backward();
      std::vector<at::Tensor> result{outputs[0]};
      for (const at::Tensor& parameter : model->parameters())
        result.push_back(parameter.grad());
      for (const at::Tensor& buffer : model->buffers())
        result.push_back(buffer);
      return result;
    };
    const auto plain = trained(0);
    for (const int layers : {1, 2, 5, 9}) {
      const auto again = trained(layers);
      ASSERT_EQ(again.size(), plain.size());
      for (std::size_t i = 0; i < plain.size(); ++i)
        EXPECT_TRUE(at::equal(again[i], plain[i])) << norm << layers << i;
    }
  }
}

/// Two steps of training, then an evaluation: outputs, gradients, statistics.
std::vector<at::Tensor> trained(std::string_view name, nlohmann::json parameters,
                                const std::string& execution, const ModelSpec& spec) {
  parameters["execution"] = execution;
  const TaskRandom random(3);
  const auto model = make(name, std::move(parameters))->create(spec);
  std::vector<at::Tensor> inputs;
  for (const PortSpec& port : spec.inputs) {
    std::vector<std::int64_t> sizes = port.shape;
    sizes.insert(sizes.begin(), 10);
    inputs.push_back(at::randn(sizes));
  }
  std::vector<at::Tensor> result;
  ForwardContext context;
  for (int step = 0; step < 3; ++step) {
    model->train(step < 2);
    Outputs outputs(spec.outputs.size());
    (*model)(inputs, outputs, context);
    at::Tensor loss = at::zeros({});
    for (const at::Tensor& output : outputs) {
      loss = loss + output.square().sum();
      result.push_back(output.detach());
    }
    if (step < 2)
      loss.backward();
  }
  for (const at::Tensor& parameter : model->parameters())
    result.push_back(parameter.grad());
  for (const at::Tensor& buffer : model->buffers())
    result.push_back(buffer);
  return result;
}

TEST(ReadyNetworks, GiveTheSameBitsHoweverTheyRun) {
  struct Network {
    std::string name;
    nlohmann::json parameters = nlohmann::json::object();
    ModelSpec spec = ModelCase::table_spec();
  };
  std::vector<Network> networks{
      {"linear"},
      {"mlp"},
      {"mlp", {{"hidden", nlohmann::json::array()}}},
      {"mlp", {}, image_spec()},
      {"mlp", {}, one_number_spec()},
      {"mlp", {}, two_tables_spec()},
      {"mlp", {}, pixels_spec()},
      {"mlp", {}, ModelCase::table_spec(6, {3, 2})},
      {"mlp", {{"dropout", 0.5}}},
      {"mlp", {{"norm", "batch"}}},
      {"mlp", {{"norm", "layer"}, {"dropout", 0.2}}},
      {"mlp", {{"hidden", {8, 8, 8}}, {"recompute_layers", 2}, {"norm", "batch"}}},
  };
  for (const char* activation : {"gelu", "tanh", "silu", "sigmoid", "leaky_relu", "elu"})
    networks.push_back({"mlp", {{"activation", activation}}});
  for (Network& network : networks) {
    if (network.parameters.is_null())
      network.parameters = nlohmann::json::object();
    SCOPED_TRACE(network.name + " " + network.parameters.dump());
    const auto dynamic = trained(network.name, network.parameters, "dynamic", network.spec);
    for (const char* execution : {"compiled", "auto"}) {
      const auto other = trained(network.name, network.parameters, execution, network.spec);
      ASSERT_EQ(other.size(), dynamic.size());
      for (std::size_t i = 0; i < dynamic.size(); ++i)
        EXPECT_TRUE(at::equal(other[i], dynamic[i])) << execution << " " << i;
    }
  }
}

TEST(ReadyNetworks, AreCompiledWithoutALayerThatIsCalled) {
  for (const char* activation : {"relu", "gelu", "tanh", "silu", "sigmoid", "leaky_relu", "elu"}) {
    for (const char* norm : {"none", "batch", "layer"}) {
      const auto model = make("mlp", {{"activation", activation}, {"norm", norm}, {"dropout", 0.1}})
                             ->create(ModelCase::table_spec());
      auto& graph = dynamic_cast<graph::Graph&>(*model);
      EXPECT_EQ(graph.execution_choice(), "compiled");
      EXPECT_TRUE(graph.compile(8).calls().empty()) << graph.compile(8).text();
    }
  }
}

TEST(Mlp, TakesTheSameWeightsWhenItRecomputes) {
  const auto names = [](int layers) {
    const auto model = make("mlp", {{"hidden", {8, 7, 6}},
                                    {"norm", "batch"},
                                    {"dropout", 0.1},
                                    {"recompute_layers", layers}})
                           ->create(ModelCase::table_spec());
    std::vector<std::string> names = model->named_parameters().keys();
    for (const std::string& buffer : model->named_buffers().keys())
      names.push_back(buffer);
    return names;
  };
  EXPECT_EQ(names(2), names(0));
}

std::vector<std::string> parameter_names(const Model& model) {
  return model.named_parameters().keys();
}

at::Tensor run(Model& model, const at::Tensor& input) {
  const std::vector<at::Tensor> inputs{input};
  Outputs outputs(1);
  ForwardContext context;
  model.forward(inputs, outputs, context);
  return outputs[0];
}

void set(Model& model, const std::string& name, const at::Tensor& value) {
  const at::NoGradGuard no_gradients;
  model.named_parameters()[name].copy_(value);
}

template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Mlp, NamesParametersByLayer) {
  EXPECT_EQ(parameter_names(*make("mlp", {{"hidden", {8, 4}}})->create(ModelCase::table_spec())),
            (std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight",
                                      "layers.1.bias", "layers.2.weight", "layers.2.bias"}));
  const auto normed =
      make("mlp", {{"hidden", {8}}, {"norm", "batch"}})->create(ModelCase::table_spec());
  EXPECT_EQ(parameter_names(*normed),
            (std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight",
                                      "layers.1.bias", "norms.0.weight", "norms.0.bias"}));
  EXPECT_EQ(normed->named_buffers().keys(),
            (std::vector<std::string>{"norms.0.running_mean", "norms.0.running_var"}));
  EXPECT_EQ(parameter_names(*make("linear")->create(ModelCase::table_spec())),
            (std::vector<std::string>{"layers.0.weight", "layers.0.bias"}));
}

TEST(Mlp, HasTheWidthsOfItsConfiguration) {
  const auto model = make("mlp", {{"hidden", {8, 4}}})->create(ModelCase::table_spec(6, {3}));
  const auto parameters = model->named_parameters();

  EXPECT_EQ(parameters["layers.0.weight"].sizes(), (std::vector<std::int64_t>{8, 6}));
  EXPECT_EQ(parameters["layers.1.weight"].sizes(), (std::vector<std::int64_t>{4, 8}));
  EXPECT_EQ(parameters["layers.2.weight"].sizes(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(parameters["layers.2.bias"].sizes(), (std::vector<std::int64_t>{3}));
}

TEST(Mlp, DefaultsToTwoLayersOf32) {
  const auto parameters = make("mlp")->create(ModelCase::table_spec())->named_parameters();

  EXPECT_EQ(parameters["layers.1.weight"].sizes(), (std::vector<std::int64_t>{32, 32}));
  EXPECT_EQ(parameters.size(), 6u);
}

TEST(Mlp, StartsWithTheBitsOfTorchsLinear) {
  const TaskRandom random(11);
  const auto model = make("mlp", {{"hidden", {16}}})->create(ModelCase::table_spec());
  const TaskRandom again(11);
  const torch::nn::Linear first(6, 16);
  const torch::nn::Linear second(16, 3);

  const auto parameters = model->named_parameters();
  EXPECT_TRUE(at::equal(parameters["layers.0.weight"], first->weight));
  EXPECT_TRUE(at::equal(parameters["layers.0.bias"], first->bias));
  EXPECT_TRUE(at::equal(parameters["layers.1.weight"], second->weight));
  EXPECT_TRUE(at::equal(parameters["layers.1.bias"], second->bias));
}

// One hidden unit with weight 1, bias 0 and output weight 1: the model is its activation.
double activated(const std::string& activation, double x) {
  ModelSpec spec = ModelCase::table_spec(1, {1});
  spec.dtype = at::kDouble;
  const auto model = make("mlp", {{"hidden", {1}}, {"activation", activation}})->create(spec);
  for (const char* layer : {"layers.0", "layers.1"}) {
    set(*model, std::string(layer) + ".weight", at::ones({1, 1}, at::kDouble));
    set(*model, std::string(layer) + ".bias", at::zeros({1}, at::kDouble));
  }
  return run(*model, at::full({1, 1}, x, at::kDouble)).item<double>();
}

TEST(Mlp, AppliesTheActivationOfItsName) {
  const double x = -0.75;
  EXPECT_EQ(activated("relu", x), 0);
  EXPECT_EQ(activated("relu", 0.75), 0.75);
  EXPECT_NEAR(activated("gelu", x), 0.5 * x * (1 + std::erf(x / std::sqrt(2))), 1e-15);
  EXPECT_NEAR(activated("tanh", x), std::tanh(x), 1e-15);
  EXPECT_NEAR(activated("silu", x), x / (1 + std::exp(-x)), 1e-15);
  EXPECT_NEAR(activated("sigmoid", x), 1 / (1 + std::exp(-x)), 1e-15);
  EXPECT_NEAR(activated("leaky_relu", x), 0.01 * x, 1e-15);
  EXPECT_NEAR(activated("elu", x), std::exp(x) - 1, 1e-15);
}

TEST(Mlp, DropoutActsInTrainingOnly) {
  const auto model = make("mlp", {{"dropout", 0.5}})->create(ModelCase::table_spec());
  const at::Tensor input = at::ones({4, 6});
  const auto outputs = [&](std::uint64_t seed) {
    const TaskRandom random(seed);
    return run(*model, input);
  };

  EXPECT_FALSE(at::equal(outputs(1), outputs(2)));
  EXPECT_TRUE(at::equal(outputs(1), outputs(1)));
  model->eval();
  EXPECT_TRUE(at::equal(outputs(1), outputs(2)));
}

TEST(Mlp, BatchNormKeepsTorchsRunningStatistics) {
  ModelSpec spec = ModelCase::table_spec();
  spec.dtype = at::kDouble;
  const auto model = make("mlp", {{"hidden", {4}}, {"norm", "batch"}})->create(spec);
  torch::nn::BatchNorm1d reference(4);
  reference->to(at::kDouble);
  const auto parameters = model->named_parameters();

  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const TaskRandom random(seed);
    const at::Tensor input = at::randn({20, 6}, at::kDouble);
    run(*model, input);
    reference->forward(
        at::linear(input, parameters["layers.0.weight"], parameters["layers.0.bias"]));
  }

  const auto buffers = model->named_buffers();
  EXPECT_TRUE(at::equal(buffers["norms.0.running_mean"], reference->running_mean));
  EXPECT_TRUE(at::equal(buffers["norms.0.running_var"], reference->running_var));
}

TEST(Mlp, BatchNormRefusesToTrainOnOneRow) {
  const auto model = make("mlp", {{"norm", "batch"}})->create(ModelCase::table_spec());

  EXPECT_THAT(message_of([&] {
                run(*model, at::ones({1, 6}));
              }),
              HasSubstr("batch norm cannot train on a batch of one row; choose a batch_size that "
                        "leaves no single row over, set \"drop_last\" or use \"norm\": \"layer\""));
}

TEST(Mlp, LayerNormStandardizesEachRow) {
  const TaskRandom random(
      3);  // two hidden values that happen to be close would be standardized to less
  ModelSpec spec = ModelCase::table_spec(6, {2});
  spec.dtype = at::kDouble;
  const auto model =
      make("mlp", {{"hidden", {2}}, {"norm", "layer"}, {"activation", "tanh"}})->create(spec);
  set(*model, "layers.1.weight", at::tensor({1.0, 0.0, 0.0, 1.0}, at::kDouble).view({2, 2}));
  set(*model, "layers.1.bias", at::zeros({2}, at::kDouble));

  // Two standardized values are +-1, up to eps.
  const at::Tensor output = run(*model, at::randn({3, 6}, at::kDouble) * 100).abs();
  EXPECT_TRUE(output.allclose(at::full({3, 2}, std::tanh(1.0), at::kDouble), 1e-5));
}

TEST(Mlp, RefusesColumnsItCannotTakeAndSaysWhatToDo) {
  const auto with = [](std::initializer_list<Column> columns) {
    ModelSpec spec = ModelCase::table_spec(static_cast<std::int64_t>(columns.size()));
    spec.inputs[0].columns = columns;
    return spec;
  };
  const auto mlp = make("mlp");

  EXPECT_EQ(message_of([&] {
              mlp->create(with({{"color", {"red", "blue"}}, {"age", {}}}));
            }),
            "column \"color\" is a category; add {\"use\": \"one_hot\"} to transforms");
  EXPECT_EQ(message_of([&] {
              mlp->create(with({{"color", {"red"}}, {"town", {"Rome"}}}));
            }),
            "columns \"color\", \"town\" are categories; add {\"use\": \"one_hot\"} to transforms");
  EXPECT_EQ(message_of([&] {
              mlp->create(with({{"age", {}, true}}));
            }),
            "column \"age\" has missing values; add {\"use\": \"impute\"} to transforms");
  EXPECT_EQ(
      message_of([&] {
        mlp->create(with({{"age", {}, true}, {"size", {}, true}}));
      }),
      "columns \"age\", \"size\" have missing values; add {\"use\": \"impute\"} to transforms");
  EXPECT_EQ(message_of([&] { mlp->create(with({})); }),
            "model \"mlp\" needs at least one input column, but the data has none");
}

TEST(Linear, TakesOneInputOrSeveralTables) {
  ModelSpec spec = ModelCase::table_spec();
  spec.inputs.push_back({"image", {4, 4}, {}});

  EXPECT_THAT(message_of([&] { make("linear")->create(spec); }),
              AllOf(HasSubstr("\"features\", \"image\""), HasSubstr("\"image\" is no table")));
}

TEST(Mlp, RefusesIndicesAndSizesThatVary) {
  const auto message = [](PortSpec port) {
    ModelSpec spec = ModelCase::table_spec();
    spec.inputs.push_back(std::move(port));
    return message_of([&] { make("mlp")->create(spec); });
  };
  PortSpec categories{"town", {2}, {{"a", {"x", "y"}}, {"b", {"u"}}}, Role::kCategories, at::kLong};
  EXPECT_EQ(message(categories),
            "columns \"a\", \"b\" are categories; add {\"use\": \"one_hot\"} to transforms");
  EXPECT_THAT(message({"text", {7}, {}, Role::kTokens, at::kLong, 65}), HasSubstr("embedding"));
  EXPECT_THAT(message({"sound", {kVaries}, {}}), HasSubstr("vary from row to row"));
  ModelSpec steps = ModelCase::table_spec();
  steps.outputs = {{"y", {kVaries, 2}}};
  EXPECT_THAT(message_of([&] { make("mlp")->create(steps); }), HasSubstr("lengths vary"));
}

TEST(Mlp, PutsTablesBesideEachOtherAndLeavesLengthsAlone) {
  ModelSpec two = ModelCase::table_spec(4);
  two.inputs.push_back({"more", {2}, {}});
  two.inputs.push_back({"more.lengths", {}, {}, Role::kLengths, at::kLong, 0, "more"});
  ModelSpec one = ModelCase::table_spec(6);
  two.dtype = one.dtype = at::kDouble;
  const TaskRandom random(4);
  const at::Tensor x = at::randn({5, 6}, at::kDouble);
  const std::vector<at::Tensor> inputs{x.narrow(1, 0, 4), x.narrow(1, 4, 2),
                                       at::ones({5}, at::kLong)};
  const auto made_from = [](const ModelSpec& spec) {
    const TaskRandom same(9);
    return make("mlp")->create(spec);
  };
  Outputs outputs(1);
  ForwardContext context;
  made_from(two)->forward(inputs, outputs, context);

  EXPECT_TRUE(at::equal(outputs[0], run(*made_from(one), x)));
}

TEST(Mlp, GivesOutputsWithPositions) {
  ModelSpec shaped = ModelCase::table_spec();
  shaped.outputs = {{"pixels", {2, 2, 3}}, {"class", {4}}};
  ModelSpec flat = ModelCase::table_spec(6, {16});
  const auto made_from = [](const ModelSpec& spec) {
    const TaskRandom same(9);
    return make("mlp")->create(spec);
  };
  const TaskRandom random(4);
  const std::vector<at::Tensor> inputs{at::randn({5, 6})};
  Outputs outputs(2);
  ForwardContext context;
  made_from(shaped)->forward(inputs, outputs, context);

  const at::Tensor all = run(*made_from(flat), inputs[0]);
  EXPECT_TRUE(at::equal(outputs[0], all.narrow(1, 0, 12).reshape({5, 2, 2, 3})));
  EXPECT_TRUE(at::equal(outputs[1], all.narrow(1, 12, 4)));
}

TEST(Mlp, RefusesParametersOutOfRange) {
  EXPECT_THROW(make("mlp", {{"hidden", {0}}}), DocumentError);
  EXPECT_THROW(make("mlp", {{"hidden", 8}}), DocumentError);
  EXPECT_THROW(make("mlp", {{"dropout", 1}}), DocumentError);
  EXPECT_THROW(make("mlp", {{"activation", "rely"}}), DocumentError);
  EXPECT_THROW(make("mlp", {{"norm", "group"}}), DocumentError);
}

TEST(Mlp, RefusesWhatHasNoEffectWithoutHiddenLayers) {
  const nlohmann::json none = nlohmann::json::array();
  EXPECT_NO_THROW(make("mlp", {{"hidden", none}, {"activation", "relu"}, {"dropout", 0.0}}));
  const nlohmann::json values = {
      {"activation", "tanh"}, {"dropout", 0.5}, {"norm", "batch"}, {"recompute_layers", 1}};
  for (const auto& [key, value] : values.items()) {
    EXPECT_THAT(
        [&] {
          make("mlp", {{"hidden", none}, {key, value}});
        },
        ThrowsMessage<DocumentError>(HasSubstr(
            key + ": has no effect without hidden layers; leave it out, or give \"hidden\" "
                  "a width")));
  }
}

}  // namespace
}  // namespace treadle::testing
