// Transformers beside those of libtorch and their formulas; packed documents, step by step, and
// small tasks that need what they are made of.
#include <functional>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformer.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/optim/adam.h>

#include <treadle/base/error.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/tensor/task_random.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using Steps = std::vector<Json>;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Steps for inputs like these, with any number of rows.
std::shared_ptr<graph::Graph> network_of(const Steps& steps, const std::vector<TensorSpec>& inputs,
                                         at::ScalarType dtype = at::kDouble,
                                         bool is_step_by_step = false) {
  LayerSpec spec;
  spec.dtype = dtype;
  spec.is_step_by_step = is_step_by_step;
  spec.inputs = inputs;
  const TaskRandom random(3);
  return graph::read_steps(Config(), Json(steps), "", components()).build(spec);
}

TensorSpec by_rows(std::vector<std::int64_t> row, at::ScalarType dtype = at::kDouble) {
  row.insert(row.begin(), TensorSpec::kVaries);
  return {std::move(row), dtype};
}

at::Tensor result_of(const graph::Graph& network, const std::vector<at::Tensor>& inputs) {
  graph::GraphState state(network);
  return network.run(inputs, state).front();
}

Json built_by(const std::string& builder, Json parameters,
              const std::vector<std::string>& using_ = {}) {
  parameters["use"] = builder;
  Json step{{"use", "graph"}, {"builder", std::move(parameters)}, {"name", "net"}};
  if (!using_.empty())
    step["using"] = using_;
  return step;
}

Json inputs_step(const std::vector<std::string>& names) {
  return {{"use", "input"}, {"names", names}};
}

// --- Beside libtorch

/// Where torch.nn has a parameter of ours: its name, and where in its first dimension.
struct Theirs {
  std::string name;
  std::int64_t begin = 0;
};
Theirs theirs_of(std::string ours, std::int64_t width) {
  const std::vector<std::pair<std::string, Theirs>> replaced{
      {"attn.in_weight", {"attn.in_proj_weight"}},
      {"attn.in_bias", {"attn.in_proj_bias"}},
      {"attn.memory_weight", {"attn.in_proj_weight", width}},
      {"attn.memory_bias", {"attn.in_proj_bias", width}},
      {"attn.out_weight", {"attn.out_proj.weight"}},
      {"attn.out_bias", {"attn.out_proj.bias"}}};
  ours.erase(0, std::string("net.").size());
  for (const auto& [end, theirs] : replaced) {
    if (ours.ends_with(end))
      return {ours.substr(0, ours.size() - end.size()) + theirs.name, theirs.begin};
  }
  return {ours};
}

/// Ours as theirs, in parameters and, behind a backward pass, gradients.
template <typename Work>
void with_theirs(const graph::Graph& ours, torch::nn::Module& theirs, std::int64_t width,
                 const Work& work) {
  const auto parameters = theirs.named_parameters();
  std::size_t elements = 0;
  for (const auto& parameter : ours.named_parameters()) {
    const auto [name, begin] = theirs_of(parameter.key(), width);
    ASSERT_TRUE(parameters.contains(name)) << parameter.key() << " as " << name;
    work(parameter, parameters[name], begin);
    elements += static_cast<std::size_t>(parameter.value().numel());
  }
  std::size_t of_theirs = 0;
  for (const auto& parameter : parameters)
    of_theirs += static_cast<std::size_t>(parameter.value().numel());
  EXPECT_EQ(elements, of_theirs);
}

constexpr std::int64_t kWidth = 6;

/// torch::nn modules have [length, batch, width].
at::Tensor turned(const at::Tensor& x) {
  return x.transpose(0, 1);
}

at::Tensor causal_mask(std::int64_t length) {
  return torch::nn::TransformerImpl::generate_square_subsequent_mask(length).to(at::kDouble);
}

at::Tensor padding_of(const std::vector<std::int64_t>& lengths, std::int64_t longest) {
  return at::arange(longest).unsqueeze(0).ge(at::tensor(lengths, at::kLong).unsqueeze(1));
}

// Post-norm, which is all that libtorch has in C++: encoder, decoder and their last norms, with
// padding of the source.
TEST(Transformer, HasValuesAndGradientsOfTorchs) {
  const std::vector<std::int64_t> lengths{3, 5};
  const auto ours =
      network_of({inputs_step({"target", "lengths"}), built_by("transformer",
                                                               {{"num_encoder_layers", 2},
                                                                {"num_decoder_layers", 2},
                                                                {"num_heads", 2},
                                                                {"dim_feedforward", 7},
                                                                {"activation", "gelu"}},
                                                               {"target", "lengths"})},
                 {by_rows({5, kWidth}), by_rows({4, kWidth}), by_rows({}, at::kLong)});
  torch::nn::Transformer theirs(
      torch::nn::TransformerOptions(kWidth, 2, 2, 2).dim_feedforward(7).activation(torch::kGELU));
  theirs->to(at::kDouble);
  theirs->eval();
  ours->eval();
  with_theirs(*ours, *theirs, kWidth,
              [](const auto& parameter, const at::Tensor& of, std::int64_t begin) {
                const at::NoGradGuard no_gradients;
                of.narrow(0, begin, parameter.value().size(0)).copy_(parameter.value());
              });
  const TaskRandom random(1);
  const at::Tensor source = at::randn({2, 5, kWidth}, at::kDouble).set_requires_grad(true);
  const at::Tensor target = at::randn({2, 4, kWidth}, at::kDouble).set_requires_grad(true);
  const at::Tensor source_2 = source.detach().clone().set_requires_grad(true);
  const at::Tensor target_2 = target.detach().clone().set_requires_grad(true);
  const at::Tensor padding = padding_of(lengths, 5);

  const at::Tensor result = result_of(*ours, {source, target, at::tensor(lengths, at::kLong)});
  const at::Tensor expected = turned(theirs->forward(turned(source_2), turned(target_2), {},
                                                     causal_mask(4), {}, padding, {}, padding));
  const at::Tensor slope = at::randn({2, 4, kWidth}, at::kDouble);
  result.mul(slope).sum().backward();
  expected.mul(slope).sum().backward();

  EXPECT_TRUE(result.allclose(expected, 1e-10, 1e-12));
  EXPECT_TRUE(source.grad().allclose(source_2.grad(), 1e-10, 1e-12));
  EXPECT_TRUE(target.grad().allclose(target_2.grad(), 1e-10, 1e-12));
  with_theirs(*ours, *theirs, kWidth,
              [](const auto& parameter, const at::Tensor& of, std::int64_t begin) {
                EXPECT_TRUE(parameter.value().grad().allclose(
                    of.grad().narrow(0, begin, parameter.value().size(0)), 1e-10, 1e-12))
                    << parameter.key();
              });
}

TEST(TransformerEncoder, HasTheValuesOfTorchs) {
  const auto ours =
      network_of({built_by("transformer_encoder",
                           {{"num_layers", 2}, {"num_heads", 3}, {"dim_feedforward", 7}})},
                 {by_rows({5, kWidth})});
  torch::nn::TransformerEncoder theirs(
      torch::nn::TransformerEncoderLayer(
          torch::nn::TransformerEncoderLayerOptions(kWidth, 3).dim_feedforward(7)),
      2);
  theirs->to(at::kDouble);
  theirs->eval();
  ours->eval();
  with_theirs(*ours, *theirs, kWidth,
              [](const auto& parameter, const at::Tensor& of, std::int64_t begin) {
                const at::NoGradGuard no_gradients;
                of.narrow(0, begin, parameter.value().size(0)).copy_(parameter.value());
              });
  const TaskRandom random(1);
  const at::Tensor x = at::randn({2, 5, kWidth}, at::kDouble);

  EXPECT_TRUE(result_of(*ours, {x}).allclose(turned(theirs->forward(turned(x))), 1e-10, 1e-12));
}

TEST(TransformerDecoder, HasTheValuesOfTorchs) {
  const std::vector<std::int64_t> lengths{4, 2};
  const std::vector<std::int64_t> of_memory{1, 3};
  const auto ours = network_of(
      {inputs_step({"memory", "lengths", "memory_lengths"}),
       built_by("transformer_decoder",
                {{"num_layers", 2}, {"num_heads", 2}, {"dim_feedforward", 7}},
                {"memory", "lengths", "memory_lengths"})},
      {by_rows({4, kWidth}), by_rows({3, kWidth}), by_rows({}, at::kLong), by_rows({}, at::kLong)});
  torch::nn::TransformerDecoder theirs(
      torch::nn::TransformerDecoderLayer(
          torch::nn::TransformerDecoderLayerOptions(kWidth, 2).dim_feedforward(7)),
      2);
  theirs->to(at::kDouble);
  theirs->eval();
  ours->eval();
  with_theirs(*ours, *theirs, kWidth,
              [](const auto& parameter, const at::Tensor& of, std::int64_t begin) {
                const at::NoGradGuard no_gradients;
                of.narrow(0, begin, parameter.value().size(0)).copy_(parameter.value());
              });
  const TaskRandom random(1);
  const at::Tensor x = at::randn({2, 4, kWidth}, at::kDouble);
  const at::Tensor memory = at::randn({2, 3, kWidth}, at::kDouble);

  const at::Tensor result = result_of(
      *ours, {x, memory, at::tensor(lengths, at::kLong), at::tensor(of_memory, at::kLong)});

  EXPECT_TRUE(
      result.allclose(turned(theirs->forward(turned(x), turned(memory), causal_mask(4), {},
                                             padding_of(lengths, 4), padding_of(of_memory, 3))),
                      1e-10, 1e-12));
}

// Xiong et al. (2020), figure 1 (b): x + f(norm(x)) for both sublayers, and a norm at the end;
// norm_first of torch.nn.TransformerEncoderLayer, which libtorch lacks in C++.
TEST(TransformerEncoder, NormsFirstWhereItSaysSo) {
  const auto ours = network_of({built_by("transformer_encoder", {{"num_layers", 1},
                                                                 {"num_heads", 2},
                                                                 {"dim_feedforward", 7},
                                                                 {"norm_first", true},
                                                                 {"activation", "swiglu"}})},
                               {by_rows({5, kWidth})});
  ours->eval();
  const auto w = ours->named_parameters();
  const std::string block = "net.layers.0.";
  const TaskRandom random(1);
  {
    const at::NoGradGuard no_gradients;
    for (const auto& parameter : w)
      parameter.value().add_(at::randn_like(parameter.value()), 0.1);
  }
  torch::nn::MultiheadAttention attention(kWidth, 2);
  attention->to(at::kDouble);
  {
    const at::NoGradGuard no_gradients;
    attention->in_proj_weight.copy_(w[block + "self_attn.in_weight"]);
    attention->in_proj_bias.copy_(w[block + "self_attn.in_bias"]);
    attention->out_proj->weight.copy_(w[block + "self_attn.out_weight"]);
    attention->out_proj->bias.copy_(w[block + "self_attn.out_bias"]);
  }
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {kWidth}, w[name + ".weight"], w[name + ".bias"]);
  };
  const auto mapped = [&](const at::Tensor& x, const std::string& name) {
    const std::string map = block + "feed_forward." + name;
    return at::linear(x, w[map + "_weight"], w[map + "_bias"]);
  };
  const at::Tensor input = at::randn({2, 5, kWidth}, at::kDouble);

  at::Tensor x = input;
  const at::Tensor normed = turned(norm(x, block + "norm1"));
  x = x + turned(std::get<0>(attention->forward(normed, normed, normed)));
  const at::Tensor y = norm(x, block + "norm2");
  x = x + mapped(at::silu(mapped(y, "gate")) * mapped(y, "up"), "down");

  EXPECT_TRUE(result_of(*ours, {input}).allclose(norm(x, "net.norm"), 1e-10, 1e-12));
}

// --- Packed documents, and step by step

const Json kLanguageModel{{"num_layers", 2},      {"num_heads", 4},
                          {"num_kv_heads", 2},    {"dropout", 0},
                          {"is_causal", true},    {"norm_first", true},
                          {"norm", "rms_norm"},   {"activation", "swiglu"},
                          {"dim_feedforward", 9}, {"rotary", Json::object()}};

/// Tokens [B, T] to logits [B, T, 5].
Steps language_model(Json of_blocks, Json of_positions,
                     const std::vector<std::string>& using_ = {}) {
  of_positions["use"] = "positional_encoding";
  if (!using_.empty())
    of_positions["using"] = using_;
  Steps steps;
  if (!using_.empty())
    steps.push_back(inputs_step(using_));
  steps.push_back({{"use", "embedding"}, {"num_embeddings", 5}, {"embedding_dim", 8}});
  steps.push_back(std::move(of_positions));
  steps.push_back(built_by("transformer_encoder", std::move(of_blocks), using_));
  steps.push_back({{"use", "dense"}, {"out_features", 5}});
  return steps;
}

TensorSpec tokens_of_any_length() {
  return by_rows({TensorSpec::kVaries}, at::kLong);
}

TEST(TransformerEncoder, GivesEachPackedDocumentWhatItGivesAlone) {
  const Json positions{{"max_length", 4}};
  const auto packed = network_of(language_model(kLanguageModel, positions, {"segments"}),
                                 {tokens_of_any_length(), tokens_of_any_length()});
  const auto alone =
      network_of(language_model(kLanguageModel, positions), {tokens_of_any_length()});
  const auto expected = alone->named_parameters();
  const TaskRandom random(1);
  const at::Tensor tokens = at::randint(5, {1, 9}, at::kLong);
  const at::Tensor segments = at::tensor({0, 0, 0, 1, 1, 1, 1, 2, 2}, at::kLong).unsqueeze(0);
  const at::Tensor slope = at::randn({1, 9, 5}, at::kDouble);

  const at::Tensor together = result_of(*packed, {tokens, segments});
  const at::Tensor each = at::cat(
      {result_of(*alone, {tokens.narrow(1, 0, 3)}), result_of(*alone, {tokens.narrow(1, 3, 4)}),
       result_of(*alone, {tokens.narrow(1, 7, 2)})},
      1);
  together.mul(slope).sum().backward();
  each.mul(slope).sum().backward();

  EXPECT_TRUE(together.allclose(each, 1e-12, 1e-12));
  for (const auto& parameter : packed->named_parameters()) {
    EXPECT_TRUE(parameter.value().grad().allclose(expected[parameter.key()].grad(), 1e-12, 1e-12))
        << parameter.key();
  }
}

TEST(TransformerEncoder, GivesStepByStepWhatTheWholeTextGives) {
  for (const char* const kind : {"learned", "sinusoidal"}) {
    Json positions{{"kind", kind}};
    if (std::string(kind) == "learned")
      positions["max_length"] = 8;
    Json blocks = kLanguageModel;
    blocks["window"] = 3;
    const auto whole =
        network_of(language_model(blocks, positions), {tokens_of_any_length()}, at::kFloat);
    const auto network =
        network_of(language_model(blocks, positions), {tokens_of_any_length()}, at::kFloat, true);
    whole->eval();
    network->eval();
    EXPECT_TRUE(network->keeps_state());
    const at::NoGradGuard no_gradients;
    const TaskRandom random(1);
    const at::Tensor tokens = at::randint(5, {3, 8}, at::kLong);

    graph::GraphState state(*network);
    std::vector<at::Tensor> steps;
    steps.push_back(network->run(std::vector{tokens.narrow(1, 0, 4)}, state).front());
    for (std::int64_t t = 4; t < 8; ++t)
      steps.push_back(network->run(std::vector{tokens.narrow(1, t, 1)}, state).front());

    EXPECT_LT((at::cat(steps, 1) - result_of(*whole, {tokens})).abs().max().item<double>(), 1e-6)
        << kind;
  }
}

// A state is saved and loaded as any other: a text can be continued elsewhere.
TEST(TransformerEncoder, ContinuesFromASavedCache) {
  const auto network = network_of(language_model(kLanguageModel, {{"max_length", 8}}),
                                  {tokens_of_any_length()}, at::kDouble, true);
  network->eval();
  const at::NoGradGuard no_gradients;
  const TaskRandom random(1);
  const at::Tensor tokens = at::randint(5, {2, 6}, at::kLong);
  graph::GraphState state(*network);
  network->run(std::vector{tokens.narrow(1, 0, 4)}, state);

  graph::GraphState loaded(*network);
  loaded.load_state(state.state().snapshot());
  const std::vector next{tokens.narrow(1, 4, 2)};

  EXPECT_TRUE(at::equal(network->run(next, loaded).front(), network->run(next, state).front()));
}

// --- Small tasks

/// The mean of the last ten losses.
double trained(const graph::Graph& network, int steps, double rate,
               const std::function<at::Tensor()>& loss) {
  torch::optim::Adam adam(network.parameters(), torch::optim::AdamOptions(rate));
  double last = 0;
  for (int step = 0; step < steps; ++step) {
    adam.zero_grad();
    const at::Tensor value = loss();
    value.backward();
    adam.step();
    if (step >= steps - 10)
      last += value.item<double>() / 10;
  }
  return last;
}

// Each position gives the number of the first one: a mean of all would leave a variance of 1.
TEST(TransformerEncoder, LearnsToLookAtTheFirstPosition) {
  const auto network = network_of({{{"use", "dense"}, {"out_features", 16}},
                                   "positional_encoding",
                                   built_by("transformer_encoder", {{"num_layers", 1},
                                                                    {"num_heads", 2},
                                                                    {"dim_feedforward", 32},
                                                                    {"dropout", 0},
                                                                    {"norm_first", true}}),
                                   {{"use", "dense"}, {"out_features", 1}}},
                                  {by_rows({6, 1}, at::kFloat)}, at::kFloat);
  const TaskRandom random(1);

  const double loss = trained(*network, 300, 0.01, [&] {
    const at::Tensor x = at::randn({32, 6, 1});
    return at::mse_loss(result_of(*network, {x}), x.narrow(1, 0, 1).expand_as(x).contiguous());
  });

  EXPECT_LT(loss, 0.01);
}

// Each position asks for one of four entries of the memory, which only attention to it can find.
TEST(TransformerDecoder, LearnsToLookThingsUp) {
  const auto network = network_of(
      {inputs_step({"memory"}),
       {{"use", "dense"}, {"out_features", 16}},
       built_by("transformer_decoder",
                {{"num_layers", 1}, {"num_heads", 2}, {"dim_feedforward", 32}, {"dropout", 0}},
                {"memory"}),
       {{"use", "dense"}, {"out_features", 1}}},
      {by_rows({3, 4}, at::kFloat), by_rows({4, 5}, at::kFloat)}, at::kFloat);
  const TaskRandom random(1);
  const at::Tensor keys = at::one_hot(at::arange(4), 4).to(at::kFloat);

  const double loss = trained(*network, 400, 0.01, [&] {
    const at::Tensor values = at::randn({32, 4, 1});
    const at::Tensor asked = at::randint(4, {32, 3}, at::kLong);
    const at::Tensor memory = at::cat({keys.expand({32, 4, 4}), values}, 2);
    const at::Tensor wanted = values.squeeze(2).gather(1, asked).unsqueeze(2);
    return at::mse_loss(result_of(*network, {at::one_hot(asked, 4).to(at::kFloat), memory}),
                        wanted);
  });

  EXPECT_LT(loss, 0.01);
}

// The source backwards, of four letters: a guess is right in a quarter of all cases.
TEST(Transformer, LearnsToReverse) {
  constexpr std::int64_t kLetters = 5;
  constexpr std::int64_t kAlphabet = 4;
  const Json embedded =
      Json::array({{{"use", "embedding"}, {"num_embeddings", kAlphabet + 1}, {"embedding_dim", 32}},
                   "positional_encoding"});
  Steps steps{inputs_step({"letters"}),
              {{"use", "flow"}, {"flow", embedded}, {"tag", "source"}},
              {{"use", "at"}, {"tags", {"letters"}}},
              {{"use", "flow"}, {"flow", embedded}, {"tag", "target"}},
              {{"use", "at"}, {"tags", {"source"}}}};
  steps.push_back(built_by("transformer",
                           {{"num_encoder_layers", 1},
                            {"num_decoder_layers", 1},
                            {"num_heads", 4},
                            {"dim_feedforward", 64},
                            {"dropout", 0},
                            {"norm_first", true}},
                           {"target"}));
  steps.push_back({{"use", "dense"}, {"out_features", kAlphabet}});
  const auto network = network_of(
      steps, {by_rows({kLetters}, at::kLong), by_rows({kLetters}, at::kLong)}, at::kFloat);
  const TaskRandom random(1);
  at::Tensor logits;
  at::Tensor wanted;

  trained(*network, 300, 0.005, [&] {
    const at::Tensor source = at::randint(kAlphabet, {32, kLetters}, at::kLong);
    wanted = source.flip({1});
    // What it has written so far, behind a letter that begins.
    const at::Tensor written =
        at::cat({at::full({32, 1}, kAlphabet, at::kLong), wanted.narrow(1, 0, kLetters - 1)}, 1);
    logits = result_of(*network, {source, written});
    return torch::nn::functional::cross_entropy(logits.flatten(0, 1), wanted.flatten());
  });

  EXPECT_GT(logits.argmax(2).eq(wanted).to(at::kFloat).mean().item<double>(), 0.95);
}

// --- What does not fit

std::string mistake_in(const Steps& steps, const std::vector<TensorSpec>& inputs) {
  try {
    network_of(steps, inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TransformerMistakes, NameBothSizes) {
  const Json four{{"num_layers", 1}, {"num_heads", 4}};
  const std::vector<TensorSpec> stream{by_rows({5, kWidth})};
  EXPECT_THAT(mistake_in({built_by("transformer_encoder", four)}, stream),
              HasSubstr("has 4 heads, which do not divide the width of 6"));
  Json kv_heads = four;
  kv_heads["num_kv_heads"] = 3;
  EXPECT_THAT(mistake_in({built_by("transformer_encoder", kv_heads)}, stream),
              HasSubstr("num_kv_heads: is 3, which does not divide the 4 of \"num_heads\""));
  const Json two{{"num_layers", 1}, {"num_heads", 2}};
  EXPECT_THAT(mistake_in({built_by("transformer_encoder", two)}, {by_rows({kWidth})}),
              HasSubstr("takes sequences [B, length, width], got [B, 6]"));
  EXPECT_THAT(mistake_in({inputs_step({"mask"}), built_by("transformer_encoder", two, {"mask"})},
                         {stream[0], by_rows({5, 4}, at::kBool)}),
              HasSubstr("the mask is [B, 5, 4] bool, but queries and keys ask for [B, 5, 5] bool"));
  EXPECT_THAT(mistake_in({built_by("transformer_decoder", two)}, stream),
              HasSubstr("takes the memory [B, S, width] as a reference, got none"));
  EXPECT_THAT(mistake_in({inputs_step({"memory", "segments"}),
                          built_by("transformer_decoder", two, {"memory", "segments"})},
                         {stream[0], stream[0], by_rows({5}, at::kLong)}),
              AllOf(HasSubstr("segments of both sequences or of none"), HasSubstr("[B, 5] int64")));
}

}  // namespace
}  // namespace treadle::testing
