// Networks beside the counts of their reference implementations, and beside formulas; each trains.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
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

struct Wanted {
  std::vector<TensorSpec> inputs;
  std::vector<std::int64_t> output = {10};
};

TensorSpec by_rows(std::vector<std::int64_t> row, at::ScalarType dtype = at::kFloat) {
  row.insert(row.begin(), TensorSpec::kVaries);
  return {std::move(row), dtype};
}

TensorSpec tokens(std::int64_t length, std::int64_t vocabulary) {
  TensorSpec spec = by_rows({length}, at::kLong);
  spec.vocabulary = {vocabulary};
  return spec;
}

std::shared_ptr<graph::Graph> network_of(const std::string& builder, Json parameters,
                                         const Wanted& wanted, bool is_step_by_step = false) {
  LayerSpec spec;
  spec.is_step_by_step = is_step_by_step;
  spec.inputs = wanted.inputs;
  spec.outputs = {{"output", wanted.output}};
  parameters["use"] = builder;
  Json step{{"use", "graph"}, {"name", "net"}, {"builder", std::move(parameters)}};
  Json steps = Json::array();
  Json names = Json::array();
  for (std::size_t i = 1; i < spec.inputs.size(); ++i)
    names.push_back("reference_" + std::to_string(i));
  if (!names.empty()) {
    steps.push_back({{"use", "input"}, {"names", names}});
    step["using"] = names;
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
  for (const at::Tensor& parameter : distinct_parameters(network))
    count += parameter.numel();
  return count;
}

// --- Reference counts

struct Count {
  std::string name;
  std::string builder;
  Json parameters;
  Wanted wanted;
  std::int64_t parameters_of_reference;
};

std::ostream& operator<<(std::ostream& out, const Count& count) {
  return out << count.name;
}

class ReferenceCount : public ::testing::TestWithParam<Count> {};

TEST_P(ReferenceCount, Holds) {
  const Count& count = GetParam();
  EXPECT_EQ(parameters_of(*network_of(count.builder, count.parameters, count.wanted)),
            count.parameters_of_reference);
}

const Wanted kImageNet{{by_rows({3, 224, 224})}, {1000}};
// Of networks whose parameters do not depend on it: sizes are inferred by running them.
const Wanted kSmallImages{{by_rows({3, 32, 32})}, {1000}};

// torchvision's and timm's of the same names; milesial/Pytorch-UNet with transposed convolutions;
// bert-base-uncased of Hugging Face, with its pooler.
INSTANTIATE_TEST_SUITE_P(
    Networks, ReferenceCount,
    ::testing::Values(
        Count{"ResNet18", "resnet", {{"depth", 18}}, kSmallImages, 11'689'512},
        Count{"ResNet34", "resnet", {{"depth", 34}}, kSmallImages, 21'797'672},
        Count{"ResNet50", "resnet", {{"depth", 50}}, kSmallImages, 25'557'032},
        Count{"ResNet101", "resnet", {{"depth", 101}}, kSmallImages, 44'549'160},
        Count{"ResNet152", "resnet", {{"depth", 152}}, kSmallImages, 60'192'808},
        Count{"UNet", "unet", Json::object(), {{by_rows({3, 64, 64})}, {64, 64, 1}}, 31'037'633},
        Count{"MixerB16", "mlp_mixer", Json::object(), kImageNet, 59'880'472},
        Count{"ViTB16", "vit", Json::object(), kImageNet, 86'567'656},
        // openai-community/gpt2; untied, the head has 50 257 · 768 more.
        Count{"Gpt2Small", "gpt", Json::object(), {{tokens(8, 50257)}, {8, 50257}}, 124'439'808},
        Count{"Gpt2SmallUntied",
              "gpt",
              {{"tie_weights", false}},
              {{tokens(8, 50257)}, {8, 50257}},
              124'439'808 + 50'257 * 768},
        // By hand, of the package tabm: W 8·512 + 2·512², r 32·(8 + 2·512), s and b 32·3·512 each,
        // heads 32·513; with one scale of inputs and shared biases for the variant.
        Count{"TabM",
              "tabm",
              Json::object(),
              {{by_rows({8})}, {32, 1}},
              528'384 + 33'024 + 2 * 49'152 + 16'416},
        Count{"TabMMini",
              "tabm",
              {{"variant", "tabm-mini"}},
              {{by_rows({8})}, {32, 1}},
              528'384 + 32 * 8 + 3 * 512 + 16'416},
        Count{"BertBase",
              "bert",
              {{"head", false}},
              {{tokens(8, 30522), by_rows({8}, at::kLong)}, {10}},
              109'482'240}),
    [](const auto& info) { return info.param.name; });

// --- What they compute

// A position depends on none behind it, and on (kernel - 1) · (1 + 2) · 2 before it, twice a block.
TEST(Tcn, LooksBackAsFarAsItsFieldAndNeverAhead) {
  const auto network = network_of(
      "tcn",
      {{"channels", {4, 4}}, {"kernel_size", 2}, {"return_sequences", true}, {"head", false}},
      {{by_rows({12, 3})}});
  network->eval();
  const TaskRandom random(1);
  const at::Tensor x = at::randn({64, 12, 3}).set_requires_grad(true);

  result_of(*network, {x}).select(1, 8).sum().backward();

  const at::Tensor reached = x.grad().abs().sum(0).sum(1).gt(0);
  for (std::int64_t position = 0; position < 12; ++position) {
    EXPECT_EQ(reached[position].item<bool>(), position >= 8 - 6 && position <= 8) << position;
  }
}

TEST(Bert, IgnoresPadding) {
  const auto network = network_of(
      "bert", {{"hidden_size", 8}, {"num_layers", 2}, {"num_heads", 2}, {"dim_feedforward", 16}},
      {{tokens(6, 20), by_rows({}, at::kLong)}, {3}});
  network->eval();
  const at::NoGradGuard no_gradients;
  const TaskRandom random(1);
  const at::Tensor text = at::randint(20, {2, 6}, at::kLong);
  at::Tensor other = text.clone();
  other.narrow(1, 4, 2).fill_(7);
  const at::Tensor lengths = at::ones({2}, at::kLong).mul(4);

  EXPECT_TRUE(result_of(*network, {text, lengths}).allclose(result_of(*network, {other, lengths})));
}

// A token has no part in what is said before it.
TEST(Gpt, LooksBackOnly) {
  for (const char* const positions : {"learned", "rotary"}) {
    const auto network = network_of("gpt",
                                    {{"hidden_size", 8},
                                     {"num_layers", 2},
                                     {"num_heads", 2},
                                     {"max_length", 6},
                                     {"positions", positions}},
                                    {{tokens(6, 9)}, {6, 9}});
    network->eval();
    const at::NoGradGuard no_gradients;
    const TaskRandom random(1);
    const at::Tensor text = at::randint(9, {2, 6}, at::kLong);
    at::Tensor other = text.clone();
    other.narrow(1, 4, 2).add_(1).remainder_(9);

    const at::Tensor first = result_of(*network, {text});
    const at::Tensor second = result_of(*network, {other});

    EXPECT_TRUE(first.narrow(1, 0, 4).allclose(second.narrow(1, 0, 4))) << positions;
    EXPECT_FALSE(first.narrow(1, 4, 2).allclose(second.narrow(1, 4, 2))) << positions;
  }
}

// Three texts of 2, 3 and 1 tokens in one row, beside each alone.
TEST(Gpt, KeepsPackedTextsApart) {
  for (const char* const positions : {"learned", "rotary"}) {
    const Json parameters{{"hidden_size", 8}, {"num_layers", 2},        {"num_heads", 2},
                          {"dropout", 0},     {"positions", positions}, {"tie_weights", false}};
    const auto packed =
        network_of("gpt", parameters, {{tokens(6, 9), by_rows({6}, at::kLong)}, {6, 9}});
    packed->to(at::kDouble);
    const TaskRandom random(1);
    const at::Tensor text = at::randint(9, {1, 6}, at::kLong);
    const at::Tensor segments =
        at::tensor({0, 0, 1, 1, 1, 2}, at::TensorOptions(at::kLong)).unsqueeze(0);
    const at::Tensor together = result_of(*packed, {text, segments});
    std::int64_t begin = 0;
    for (const std::int64_t length : {2, 3, 1}) {
      const auto alone = network_of("gpt", parameters, {{tokens(length, 9)}, {length, 9}});
      alone->to(at::kDouble);
      load_module_state(*alone, module_state(*packed));
      EXPECT_TRUE(result_of(*alone, {text.narrow(1, begin, length)})
                      .allclose(together.narrow(1, begin, length), 0, 1e-12))
          << positions << " " << length;
      begin += length;
    }
  }
}

TEST(Gpt, GivesTheSameLogitsStepByStepWithACache) {
  for (const char* const positions : {"learned", "rotary"}) {
    Json parameters{{"hidden_size", 8},
                    {"num_layers", 2},
                    {"num_heads", 2},
                    {"positions", positions},
                    {"max_length", 7}};
    const auto whole = network_of("gpt", parameters, {{tokens(7, 9)}, {7, 9}});
    const auto cached = network_of("gpt", parameters, {{tokens(1, 9)}, {1, 9}}, true);
    load_module_state(*cached, module_state(*whole));
    whole->eval();
    cached->eval();
    const at::NoGradGuard no_gradients;
    const TaskRandom random(1);
    const at::Tensor text = at::randint(9, {3, 7}, at::kLong);
    const at::Tensor wanted = result_of(*whole, {text});

    graph::GraphState state(*cached);
    for (std::int64_t t = 0; t < 7; ++t) {
      const std::vector<at::Tensor> token{text.narrow(1, t, 1)};
      EXPECT_TRUE(cached->run(token, state).front().allclose(wanted.narrow(1, t, 1), 0, 1e-6))
          << positions << " " << t;
    }
  }
}

// GPT-2's: 0.02, and 0.02 / sqrt(2 · 8) = 0.005 of layers whose output is added to the stream.
TEST(Gpt, BeginsAsGpt2) {
  const auto network = network_of("gpt", {{"hidden_size", 64}, {"num_layers", 8}, {"num_heads", 4}},
                                  {{tokens(5, 97)}, {5, 97}});
  for (const auto& parameter : network->named_parameters()) {
    const std::string& name = parameter.key();
    const bool is_added = name.find("out_weight") != std::string::npos ||
                          name.find("linear2.weight") != std::string::npos;
    if (name.ends_with("bias")) {
      EXPECT_EQ(parameter.value().abs().max().item<double>(), 0) << name;
    } else if (parameter.value().dim() == 2 && parameter.value().numel() > 4000) {
      EXPECT_NEAR(parameter.value().std().item<double>(), is_added ? 0.005 : 0.02,
                  is_added ? 0.0005 : 0.002)
          << name;
    }
  }
}

// By the chain rule, the gradient of a tied weight is the sum of those of its two places.
TEST(Gpt, AddsTheGradientsOfATiedWeight) {
  const auto gradients = [](bool tied, at::Tensor& words, at::Tensor& head) {
    const auto network = network_of("gpt",
                                    {{"hidden_size", 8},
                                     {"num_layers", 1},
                                     {"num_heads", 2},
                                     {"dropout", 0},
                                     {"tie_weights", tied}},
                                    {{tokens(5, 7)}, {5, 7}});
    auto parameters = network->named_parameters();
    {
      const at::NoGradGuard fixed;
      const TaskRandom random(4);
      for (const auto& parameter : parameters) {
        if (parameter.key() != "net.lm_head.weight")
          parameter.value().normal_(0, 0.3);
      }
      if (!tied)
        parameters["net.lm_head.weight"].copy_(parameters["net.wte.weight"]);
    }
    const TaskRandom random(2);
    const at::Tensor text = at::randint(7, {3, 5}, at::kLong);
    at::cross_entropy_loss(result_of(*network, {text}).flatten(0, 1), text.flatten()).backward();
    words = parameters["net.wte.weight"].grad();
    head = parameters["net.lm_head.weight"].grad();
  };
  at::Tensor words;
  at::Tensor head;
  gradients(false, words, head);
  at::Tensor tied;
  at::Tensor same;
  gradients(true, tied, same);

  EXPECT_TRUE(tied.is_same(same));
  EXPECT_TRUE(tied.allclose(words.add(head), 1e-5, 1e-7));
}

// --- Trainings

/// The share of right answers of 128 fresh rows after some steps.
double accuracy_after(int steps, double rate, graph::Graph& network,
                      const std::function<std::pair<at::Tensor, at::Tensor>(std::int64_t)>& draw) {
  torch::optim::Adam adam(distinct_parameters(network), torch::optim::AdamOptions(rate));
  for (int step = 0; step < steps; ++step) {
    const auto [inputs, classes] = draw(32);
    adam.zero_grad();
    at::cross_entropy_loss(result_of(network, {inputs}), classes).backward();
    adam.step();
  }
  network.eval();
  const at::NoGradGuard no_gradients;
  const auto [inputs, classes] = draw(128);
  return result_of(network, {inputs}).argmax(1).eq(classes).to(at::kFloat).mean().item<double>();
}

/// Images [rows, 1, 8, 8] of noise with a bright bar: along a row (0) or a column (1).
std::pair<at::Tensor, at::Tensor> bars(std::int64_t rows) {
  at::Tensor images = at::randn({rows, 1, 8, 8}).mul_(0.3);
  const at::Tensor classes = at::randint(2, {rows}, at::kLong);
  const at::Tensor places = at::randint(8, {rows}, at::kLong);
  for (std::int64_t i = 0; i < rows; ++i)
    images[i][0].select(classes[i].item<std::int64_t>(), places[i].item<std::int64_t>()).add_(1);
  return {images, classes};
}

struct Training {
  std::string name;
  std::string builder;
  Json parameters;
};

std::ostream& operator<<(std::ostream& out, const Training& training) {
  return out << training.name;
}

class Images : public ::testing::TestWithParam<Training> {};

TEST_P(Images, OfBarsAreToldApartInNineOfTenCases) {
  const Training& training = GetParam();
  const auto network =
      network_of(training.builder, training.parameters, {{by_rows({1, 8, 8})}, {2}});
  const TaskRandom random(1);
  EXPECT_GT(accuracy_after(250, 0.003, *network, bars), 0.9);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, Images,
    ::testing::Values(
        Training{"ResNet", "resnet", {{"width", 4}, {"stem", "small"}}},
        Training{"ResNetOfBottlenecks", "resnet", {{"depth", 50}, {"width", 3}, {"stem", "small"}}},
        Training{"Mixer",
                 "mlp_mixer",
                 {{"patch_size", 2},
                  {"width", 16},
                  {"num_layers", 2},
                  {"tokens_mlp_dim", 32},
                  {"channels_mlp_dim", 32}}},
        Training{"ViT",
                 "vit",
                 {{"patch_size", 2},
                  {"width", 16},
                  {"num_layers", 2},
                  {"num_heads", 4},
                  {"dim_feedforward", 32}}}),
    [](const auto& info) { return info.param.name; });

// The pixels of a bar, found among noise.
TEST(UNet, FindsTheBrightPixels) {
  const auto network =
      network_of("unet", {{"width", 4}, {"depth", 2}}, {{by_rows({1, 8, 8})}, {8, 8, 1}});
  const TaskRandom random(1);
  torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.01));
  const auto draw = [] {
    at::Tensor images = at::randn({16, 1, 8, 8}).mul_(0.3);
    at::Tensor bright = at::zeros({16, 8, 8, 1});
    const at::Tensor places = at::randint(8, {16}, at::kLong);
    for (std::int64_t i = 0; i < 16; ++i)
      bright[i].select(0, places[i].item<std::int64_t>()).fill_(1);
    images.add_(bright.permute({0, 3, 1, 2}));
    return std::pair(images, bright);
  };
  for (int step = 0; step < 150; ++step) {
    const auto [images, bright] = draw();
    adam.zero_grad();
    at::binary_cross_entropy_with_logits(result_of(*network, {images}), bright).backward();
    adam.step();
  }
  network->eval();
  const at::NoGradGuard no_gradients;
  const auto [images, bright] = draw();
  const at::Tensor found = result_of(*network, {images}).gt(0).to(at::kFloat);
  EXPECT_GT(found.eq(bright).to(at::kFloat).mean().item<double>(), 0.97);
}

// The sign of the first of twelve numbers, which a recurrent network would have to carry.
TEST(Tcn, RemembersTheFirstPosition) {
  const auto network =
      network_of("tcn", {{"channels", {8, 8, 8}}, {"kernel_size", 3}}, {{by_rows({12, 1})}, {2}});
  const TaskRandom random(1);
  EXPECT_GT(accuracy_after(200, 0.01, *network,
                           [](std::int64_t rows) {
                             const at::Tensor x = at::randn({rows, 12, 1});
                             return std::pair(x, x.select(1, 0).squeeze(1).gt(0).to(at::kLong));
                           }),
            0.9);
}

// The next token is this one plus the first one of the text, modulo 5.
TEST(Gpt, LearnsToCount) {
  const auto network = network_of("gpt",
                                  {{"hidden_size", 32},
                                   {"num_layers", 2},
                                   {"num_heads", 2},
                                   {"dropout", 0},
                                   {"positions", "rotary"}},
                                  {{tokens(5, 5)}, {5, 5}});
  const auto draw = [](std::int64_t rows) {
    const at::Tensor step = at::randint(5, {rows, 1}, at::kLong);
    return at::arange(1, 7, at::kLong).unsqueeze(0).mul(step).remainder(5);
  };
  const TaskRandom random(1);
  torch::optim::Adam adam(distinct_parameters(*network), torch::optim::AdamOptions(0.003));
  for (int step = 0; step < 200; ++step) {
    const at::Tensor text = draw(32);
    adam.zero_grad();
    at::cross_entropy_loss(result_of(*network, {text.narrow(1, 0, 5)}).flatten(0, 1),
                           text.narrow(1, 1, 5).flatten())
        .backward();
    adam.step();
  }
  network->eval();
  const at::NoGradGuard no_gradients;
  const at::Tensor text = draw(128);
  const at::Tensor given = result_of(*network, {text.narrow(1, 0, 5)}).argmax(2);
  EXPECT_GT(given.eq(text.narrow(1, 1, 5)).to(at::kFloat).mean().item<double>(), 0.98);
}

// Points within a ring, which no line tells apart.
TEST(Mlp, FindsARing) {
  const auto network =
      network_of("mlp", {{"hidden", {32, 32}}, {"norm", "layer_norm"}}, {{by_rows({2})}, {2}});
  const TaskRandom random(1);
  EXPECT_GT(accuracy_after(200, 0.01, *network,
                           [](std::int64_t rows) {
                             const at::Tensor x = at::randn({rows, 2});
                             return std::pair(x, x.square().sum(1).gt(1.4).to(at::kLong));
                           }),
            0.95);
}

// The same, by the mean of the members' losses; the prediction is the mean of their probabilities.
TEST(TabM, FindsARing) {
  for (const char* variant : {"tabm", "tabm-mini"}) {
    const auto network = network_of(
        "tabm", {{"variant", variant}, {"width", 32}, {"num_layers", 2}}, {{by_rows({2})}, {8, 2}});
    const auto draw = [](std::int64_t rows) {
      const at::Tensor x = at::randn({rows, 2});
      return std::pair(x, x.square().sum(1).gt(1.4).to(at::kLong));
    };
    const TaskRandom random(1);
    torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.01));
    network->train();
    for (int step = 0; step < 200; ++step) {
      const auto [x, y] = draw(64);
      adam.zero_grad();
      at::cross_entropy_loss(result_of(*network, {x}).flatten(0, 1), y.repeat_interleave(8))
          .backward();
      adam.step();
    }
    network->eval();
    const at::NoGradGuard no_gradients;
    const auto [x, y] = draw(512);
    const at::Tensor of_members = result_of(*network, {x}).softmax(2);
    EXPECT_GT(of_members.mean(1).argmax(1).eq(y).to(at::kFloat).mean().item<double>(), 0.95);
    EXPECT_GT(of_members.std(1).mean().item<double>(), 1e-3) << "members differ";
  }
}

// Whether a token comes in a text at all.
TEST(Bert, FindsAToken) {
  const auto network = network_of("bert",
                                  {{"hidden_size", 16},
                                   {"num_layers", 1},
                                   {"num_heads", 2},
                                   {"dim_feedforward", 32},
                                   {"dropout", 0}},
                                  {{tokens(6, 8)}, {2}});
  const TaskRandom random(1);
  EXPECT_GT(accuracy_after(300, 0.003, *network,
                           [](std::int64_t rows) {
                             const at::Tensor text = at::randint(8, {rows, 6}, at::kLong);
                             return std::pair(text, text.eq(3).any(1).to(at::kLong));
                           }),
            0.95);
}

// The product of two features' signs: no feature helps alone.
TEST(FtTransformer, FindsWhatTwoFeaturesHaveInCommon) {
  const auto network = network_of(
      "ft_transformer", {{"width", 16}, {"num_layers", 2}, {"num_heads", 4}, {"dropout", 0}},
      {{by_rows({4})}, {2}});
  const TaskRandom random(1);
  EXPECT_GT(accuracy_after(300, 0.003, *network,
                           [](std::int64_t rows) {
                             const at::Tensor x = at::randn({rows, 4});
                             return std::pair(
                                 x, x.select(1, 0).mul(x.select(1, 1)).gt(0).to(at::kLong));
                           }),
            0.9);
}

// Rows of one length are those of another, cut.
TEST(Tcn, TakesSequencesOfAnyLength) {
  const auto network =
      network_of("tcn", {{"channels", {4, 3}}, {"return_sequences", true}, {"head", false}},
                 {{by_rows({TensorSpec::kVaries, 2})}});
  network->eval();
  const at::Tensor x = at::randn({3, 9, 2});
  EXPECT_TRUE(at::allclose(result_of(*network, {x.narrow(1, 0, 5)}),
                           result_of(*network, {x}).narrow(1, 0, 5), 1e-5, 1e-6));
}

// --- What does not fit

std::string mistake_in(const std::string& builder, const Json& parameters, const Wanted& wanted) {
  try {
    network_of(builder, parameters, wanted);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NetworkMistakes, NameBothSizes) {
  EXPECT_THAT(mistake_in("resnet", Json::object(), {{by_rows({6})}}),
              HasSubstr("images [B, channels, height, width], got [B, 6]"));
  EXPECT_THAT(mistake_in("unet", {{"depth", 3}}, {{by_rows({1, 8, 12})}, {8, 12, 1}}),
              HasSubstr("must be multiples of 8, got [B, 1, 8, 12]"));
  EXPECT_THAT(mistake_in("vit", {{"patch_size", 3}}, {{by_rows({1, 8, 9})}}),
              HasSubstr("patches of 3 x 3, which do not divide images of 8 x 9"));
  EXPECT_THAT(mistake_in("vit", {{"patch_size", 4}, {"width", 6}, {"num_heads", 4}},
                         {{by_rows({1, 8, 8})}}),
              HasSubstr("has 4 heads, which do not divide the width of 6"));
  EXPECT_THAT(mistake_in("tabm", Json::object(), {{by_rows({4})}, {3}}),
              HasSubstr("requires \"output\" [B, 3]; its loss is {\"use\": \"ensemble\""));
  EXPECT_THAT(mistake_in("bert", {{"max_length", 4}}, {{tokens(6, 8)}}),
              HasSubstr("has 4 positions (\"max_length\"), got [B, 6]"));
  EXPECT_THAT(mistake_in("gpt", {{"max_length", 4}}, {{tokens(6, 8)}}),
              HasSubstr("has 4 positions (\"max_length\"), got [B, 6]"));
  EXPECT_THAT(mistake_in("gpt", {{"hidden_size", 24}}, {{tokens(6, 8)}, {6, 9}}),
              HasSubstr("needs a weight [9, 24] [out, in], but that of \"wte\" is [8, 24]"));
  EXPECT_THAT(mistake_in("tcn", Json::object(), {{by_rows({2})}}),
              HasSubstr("sequences [B, length, width], got [B, 2]"));
}

}  // namespace
}  // namespace treadle::testing
