// Flows for data of several inputs and targets, of every shape: built from documents and trained.
#include <gmock/gmock.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adam.h>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/model/model.h>
#include <treadle/tensor/task_random.h>

namespace treadle::model_graphs {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Layers of other plugins, too.
const PluginRegistry& all_plugins() {
  return plugin().registry();
}

std::shared_ptr<Model> flow_model(const std::string& document, const ModelSpec& spec) {
  const TaskRandom random(5);
  const json parameters = json::parse(document);
  return all_plugins().make<ModelProvider>("flow", Config(parameters))->create(spec);
}

std::string flow_refusal(const std::string& document, const ModelSpec& spec) {
  try {
    flow_model(document, spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Outputs outputs_of(Model& model, const std::vector<at::Tensor>& inputs, std::size_t count) {
  Outputs outputs(count);
  ForwardContext context;
  model.forward(inputs, outputs, context);
  return outputs;
}

/// What is left of the loss after so many steps, as a share of what it was.
double trained(Model& model, int steps, const std::function<at::Tensor()>& loss) {
  torch::optim::Adam adam(model.parameters(), torch::optim::AdamOptions(0.02));
  const double before = loss().item<double>();
  for (int step = 0; step < steps; ++step) {
    adam.zero_grad();
    loss().backward();
    adam.step();
  }
  return loss().item<double>() / before;
}

const PortSpec kNumbers{"features", {4}};
const PortSpec kCategories{
    "town", {2}, {{"city", {"x", "y", "z"}}, {"size", {"s", "l"}}}, Role::kCategories, at::kLong};
const PortSpec kText{"text", {kVaries}, {}, Role::kTokens, at::kLong, 9};
const PortSpec kTextLengths{"text.lengths", {}, {}, Role::kLengths, at::kLong, 0, "text"};

ModelSpec asking(std::vector<PortSpec> inputs, std::vector<OutputSpec> outputs) {
  ModelSpec spec;
  spec.inputs = std::move(inputs);
  spec.outputs = std::move(outputs);
  return spec;
}

// "auto" compiles such a flow unless its branches run in parallel.
TEST(FlowBranches, RunInParallelWhereTheDocumentSaysSo) {
  const ModelSpec spec = asking({kNumbers}, {{"price", {1}}});
  const auto model_with = [&](const std::string& more) {
    return flow_model(R"({"flow": [
      {"use": "split", "branches": [[{"use": "dense", "out_features": 6}, "tanh"],
                                    [{"use": "dense", "out_features": 6}, {"use": "dropout", "p": 0.5}]]},
      {"use": "merge", "with": "add"}, "head"])" +
                          more + "}",
                      spec);
  };
  const auto trained_with = [&](Model& model) {
    const TaskRandom random(4);
    const at::Tensor inputs = at::randn({16, 4});
    trained(model, 3, [&] { return outputs_of(model, {inputs}, 1)[0].square().mean(); });
    return at::cat({model.parameters()[0].flatten(), model.parameters()[2].flatten()});
  };
  const auto choice = [](const Model& model) {
    return dynamic_cast<const ChoosesExecution&>(model).execution_choice();
  };

  const auto by_default = model_with("");
  const auto sequential = model_with(R"(, "branches": "sequential", "execution": "dynamic")");
  const auto parallel = model_with(R"(, "branches": "parallel")");

  EXPECT_EQ(choice(*by_default), "compiled");
  EXPECT_EQ(choice(*parallel), "dynamic, because its branches run in parallel");
  const at::Tensor weights = trained_with(*sequential);
  EXPECT_TRUE(at::equal(trained_with(*by_default), weights));
  EXPECT_TRUE(at::equal(trained_with(*parallel), weights));
}

// Numbers and categories in; a class and a number out.
TEST(FlowOutputs, TwoInputsAndTwoTargetsTrain) {
  const ModelSpec spec = asking({kNumbers, kCategories}, {{"species", {3}}, {"price", {1}}});
  const std::string flow = R"(
    {"use": "input", "names": ["town"]},
    {"use": "at", "tags": ["town"]},
    {"use": "embedding", "embedding_dim": 5},
    {"use": "flatten", "tag": "embedded"},
    {"use": "at", "tags": ["input", "embedded"]},
    {"use": "merge", "with": {"use": "cat", "dim": 1}},
    {"use": "dense", "out_features": 16}, {"use": "relu", "tag": "encoded"},
    {"use": "head", "output": "price", "tag": "PRICE"},
    {"use": "at", "tags": ["encoded"]},
    {"use": "head", "output": "species", "tag": "SPECIES"})";
  const auto with_names = [&](const std::string& price, const std::string& species,
                              const std::string& more) {
    std::string text =
        R"({"flow": [{"use": "identity", "tag": "input"},)" + flow + "]" + more + "}";
    text.replace(text.find("PRICE"), 5, price);
    text.replace(text.find("SPECIES"), 7, species);
    return text;
  };
  const auto tagged = flow_model(with_names("price", "species", ""), spec);
  const auto named =
      flow_model(with_names("p", "s", R"(, "outputs": {"species": "s", "price": "p"})"), spec);
  const auto compiled =
      flow_model(with_names("price", "species", R"(, "execution": "compiled")"), spec);

  const TaskRandom random(3);
  const at::Tensor numbers = at::randn({32, 4});
  const at::Tensor city = at::randint(3, {32}, at::TensorOptions(at::kLong));
  const at::Tensor size = at::randint(2, {32}, at::TensorOptions(at::kLong));
  const std::vector<at::Tensor> inputs{numbers, at::stack({city, size}, 1)};
  const at::Tensor price = numbers.sum(1, true).add(size.unsqueeze(1).mul(2));
  const auto loss_of = [&](Model& model) {
    return [&] {
      const Outputs outputs = outputs_of(model, inputs, 2);
      return at::cross_entropy_loss(outputs[0], city).add(at::mse_loss(outputs[1], price));
    };
  };
  const Outputs first = outputs_of(*tagged, inputs, 2);
  EXPECT_EQ(first[0].sizes(), (std::vector<std::int64_t>{32, 3}));
  EXPECT_EQ(first[1].sizes(), (std::vector<std::int64_t>{32, 1}));
  EXPECT_EQ(tagged->named_parameters()["embedding_0.weight_0"].sizes(),
            (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(tagged->named_parameters()["embedding_0.weight_1"].sizes(),
            (std::vector<std::int64_t>{2, 5}));

  EXPECT_LT(trained(*tagged, 80, loss_of(*tagged)), 0.1);
  trained(*named, 80, loss_of(*named));
  trained(*compiled, 80, loss_of(*compiled));
  for (std::size_t i = 0; i < 2; ++i) {
    const at::Tensor result = outputs_of(*tagged, inputs, 2)[i];
    EXPECT_TRUE(at::equal(outputs_of(*named, inputs, 2)[i], result));
    EXPECT_TRUE(at::equal(outputs_of(*compiled, inputs, 2)[i], result));
  }
}

// [B, 1, 8, 8] in, a class for every pixel out: [B, 8, 8, 3].
TEST(FlowOutputs, OneClassPerPixelTrains) {
  const ModelSpec spec = asking({{"image", {1, 8, 8}, {}, Role::kImage}}, {{"mask", {8, 8, 3}}});
  const auto model = flow_model(
      R"({"flow": [{"use": "conv2d", "out_channels": 8, "kernel_size": 3, "padding": 1}, "tanh",
                   {"use": "head", "channels": "first"}]})",
      spec);
  const TaskRandom random(3);
  const std::vector<at::Tensor> inputs{at::rand({8, 1, 8, 8})};
  const auto weights = model->named_parameters();
  const at::Tensor hidden = at::conv2d(inputs[0], weights["conv2d_0.weight"],
                                       weights["conv2d_0.bias"], /*stride=*/1, /*padding=*/1)
                                .tanh();
  EXPECT_TRUE(outputs_of(*model, inputs, 1)[0].allclose(
      at::conv2d(hidden, weights["head_0.weight"].view({3, 8, 1, 1}), weights["head_0.bias"])
          .permute({0, 2, 3, 1}),
      1e-5, 1e-6));
  const at::Tensor classes = inputs[0].gt(0.5).to(at::kLong).squeeze(1);

  EXPECT_EQ(outputs_of(*model, inputs, 1)[0].sizes(), (std::vector<std::int64_t>{8, 8, 8, 3}));
  EXPECT_LT(trained(*model, 400,
                    [&] {
                      return at::cross_entropy_loss(
                          outputs_of(*model, inputs, 1)[0].reshape({-1, 3}), classes.flatten());
                    }),
            0.5);
  EXPECT_THAT(flow_refusal(
                  R"({"flow": [{"use": "conv2d", "out_channels": 8, "kernel_size": 3, "padding": 1},
                                       "head"]})",
                  spec),
              HasSubstr("both orders fit"));
  EXPECT_THAT(
      flow_refusal(R"({"flow": [{"use": "conv2d", "out_channels": 8, "kernel_size": 3}, "head"]})",
                   spec),
      AllOf(HasSubstr("[B, 8, 8, 3]"), HasSubstr("[B, 8, 6, 6]")));
}

// Tokens in, the next token of every position out, over rows of other lengths.
TEST(FlowOutputs, OneClassPerStepTrainsAndPaddingChangesNothing) {
  const ModelSpec spec = asking({kText, kTextLengths}, {{"next", {kVaries, 9}}});
  const auto model = flow_model(R"({"flow": [
      {"use": "embedding", "embedding_dim": 8},
      {"use": "gru", "hidden_size": 16, "bidirectional": true, "using": ["text.lengths"]},
      {"use": "attention", "num_heads": 2, "using": ["text.lengths"]},
      "head"]})",
                                spec);
  EXPECT_EQ(model->named_parameters()["embedding_0.weight"].sizes(),
            (std::vector<std::int64_t>{9, 8}));
  const at::Tensor lengths = at::arange(3, 7);
  const at::Tensor steps = at::arange(6);
  const at::Tensor real = steps.unsqueeze(0).lt(lengths.unsqueeze(1));
  const at::Tensor text = at::arange(4).unsqueeze(1).add(steps).remainder(9).mul(real);
  const at::Tensor next = text.add(1).remainder(9);

  const at::Tensor all = outputs_of(*model, {text, lengths}, 1)[0];
  EXPECT_EQ(all.sizes(), (std::vector<std::int64_t>{4, 6, 9}));
  for (std::int64_t row = 0; row < 4; ++row) {
    const std::int64_t length = 3 + row;
    const at::Tensor alone = outputs_of(
        *model, {text.narrow(0, row, 1).narrow(1, 0, length), lengths.narrow(0, row, 1)}, 1)[0];
    EXPECT_TRUE(alone[0].allclose(all[row].narrow(0, 0, length), 1e-5, 1e-6)) << row;
  }
  EXPECT_LT(trained(*model, 60,
                    [&] {
                      return at::cross_entropy_loss(outputs_of(*model, {text, lengths}, 1)[0]
                                                        .masked_select(real.unsqueeze(2))
                                                        .view({-1, 9}),
                                                    next.masked_select(real));
                    }),
            0.1);
}

// A token of every position from the sequence, a class of the row from the last states.
TEST(FlowOutputs, FurtherOutputsOfALayerTrainTheSameOnEveryWay) {
  const ModelSpec spec = asking({kText, kTextLengths}, {{"next", {kVaries, 9}}, {"kind", {2}}});
  const auto model_with = [&](const std::string& execution) {
    return flow_model(R"({"execution": ")" + execution + R"(", "flow": [
      {"use": "embedding", "embedding_dim": 8},
      {"use": "lstm", "hidden_size": 12, "num_layers": 2, "using": ["text.lengths"],
       "tag": {"output": "steps", "h_n": "hidden", "c_n": "cells"}},
      {"use": "attention", "num_heads": 2, "using": ["text.lengths"], "tag": {"attn_weights": "weights"}},
      {"use": "head", "output": "next", "tag": "next"},
      {"use": "at", "tags": ["hidden", "cells"]},
      {"use": "merge", "with": {"use": "cat", "dim": 2}},
      "flatten",
      {"use": "head", "output": "kind", "tag": "kind"}],
      "log": [{"tag": "weights", "reduction": "max"}]})",
                      spec);
  };
  const at::Tensor lengths = at::arange(3, 7);
  const at::Tensor real = at::arange(6).unsqueeze(0).lt(lengths.unsqueeze(1));
  const at::Tensor text = at::arange(4).unsqueeze(1).add(at::arange(6)).remainder(9).mul(real);
  const at::Tensor next = text.add(1).remainder(9);
  const at::Tensor kind = at::arange(4).remainder(2);
  const auto weights_after = [&](Model& model, double& share) {
    share = trained(model, 80, [&] {
      const Outputs outputs = outputs_of(model, {text, lengths}, 2);
      return at::cross_entropy_loss(outputs[0].masked_select(real.unsqueeze(2)).view({-1, 9}),
                                    next.masked_select(real))
          .add(at::cross_entropy_loss(outputs[1], kind));
    });
    std::vector<at::Tensor> flat;
    for (const at::Tensor& parameter : model.parameters())
      flat.push_back(parameter.flatten());
    return at::cat(flat);
  };
  double share = 1;

  const at::Tensor dynamic = weights_after(*model_with("dynamic"), share);
  EXPECT_LT(share, 0.1);
  EXPECT_TRUE(at::equal(weights_after(*model_with("compiled"), share), dynamic));
}

TEST(FlowOutputs, TagsOfFurtherOutputsAreOutputsOfTheModel) {
  const ModelSpec spec = asking({kNumbers}, {{"price", {1}}, {"kind", {2}}});
  const auto model = flow_model(R"({"flow": [
      {"use": "flow", "flow": [
        {"use": "dense", "out_features": 2, "tag": "two"}, {"use": "dense", "out_features": 1, "tag": "one"}],
       "outputs": ["one", "two"], "tag": {"output": "price", "two": "kind"}}]})",
                                spec);

  const Outputs outputs = outputs_of(*model, {at::randn({3, 4})}, 2);

  EXPECT_EQ(outputs[0].sizes(), (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(outputs[1].sizes(), (std::vector<std::int64_t>{3, 2}));
}

TEST(FlowOutputs, AnUnknownOutputOfALayerNamesThoseItHas) {
  EXPECT_THAT(flow_refusal(R"({"flow": [
      {"use": "embedding", "embedding_dim": 8},
      {"use": "lstm", "hidden_size": 4, "tag": {"hn": "last"}},
      {"use": "at", "tags": ["last"]}, "flatten", "head"]})",
                           asking({kText}, {{"kind", {2}}})),
              AllOf(HasSubstr("/flow/1"), HasSubstr("\"lstm_0\""), HasSubstr("\"hn\""),
                    HasSubstr("h_n, c_n")));
}

// Bodies of their own have the lengths as an input of theirs.
TEST(FlowOutputs, LengthsReachBodies) {
  const ModelSpec spec = asking({kText, kTextLengths}, {{"class", {2}}});
  const auto model = flow_model(R"({"flow": [
      {"use": "embedding", "embedding_dim": 8},
      {"use": "residual", "using": ["text.lengths"], "body": [
        {"use": "input", "names": ["text.lengths"]},
        {"use": "attention", "using": ["text.lengths"]}]},
      {"use": "reduce", "dims": [1], "reduction": "max", "using": ["text.lengths"]},
      "head"]})",
                                spec);
  const at::Tensor text = at::arange(10).remainder(9).view({2, 5});
  const at::Tensor other =
      at::cat({text.narrow(1, 0, 3), text.narrow(1, 3, 2).add(3).remainder(9)}, 1);
  const at::Tensor lengths = at::zeros({2}, at::kLong).add(3);

  const at::Tensor result = outputs_of(*model, {text, lengths}, 1)[0];

  EXPECT_TRUE(at::equal(outputs_of(*model, {other, lengths}, 1)[0], result));
  EXPECT_FALSE(at::equal(outputs_of(*model, {other, lengths.add(2)}, 1)[0], result));
}

TEST(FlowOutputs, CategoriesAndTokensAreNoNumbers) {
  EXPECT_THAT(flow_refusal(R"({"flow": [{"use": "dense", "out_features": 3}, "head"]})",
                           asking({kCategories}, {{"y", {1}}})),
              AllOf(HasSubstr("\"dense_0\""), HasSubstr("[B, 2] int64"), HasSubstr("embedding"),
                    HasSubstr("one_hot")));
  EXPECT_THAT(flow_refusal(R"({"flow": [{"use": "embedding", "embedding_dim": 3}, "head"]})",
                           asking({kNumbers}, {{"y", {1}}})),
              HasSubstr("int64"));
}

}  // namespace
}  // namespace treadle::model_graphs
