// Attention beside its formula, written down position by position; packed documents beside each of
// them alone; a cache beside the whole sequence; and what does not fit.
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/layer.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kHides = -std::numeric_limits<double>::infinity();

std::shared_ptr<Layer> sequence_layer(const std::string& name, const Json& parameters,
                                      const std::vector<TensorSpec>& inputs,
                                      at::ScalarType dtype = at::kDouble,
                                      bool is_step_by_step = false) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  LayerSpec spec;
  spec.dtype = dtype;
  spec.is_step_by_step = is_step_by_step;
  spec.inputs = inputs;
  const TaskRandom random(5);
  return plugin.make<LayerFactory>(name, parameters)->create(spec);
}

/// `by_row`: whether its first dimension is the batch.
TensorSpec spec_of(const at::Tensor& tensor, bool by_row = true) {
  TensorSpec spec = TensorSpec::of(tensor);
  if (by_row)
    spec.sizes[0] = TensorSpec::kVaries;
  return spec;
}

std::shared_ptr<Layer> layer_for(const std::string& name, const Json& parameters,
                                 const std::vector<at::Tensor>& inputs,
                                 bool is_step_by_step = false) {
  std::vector<TensorSpec> specs;
  for (const at::Tensor& input : inputs)
    specs.push_back(spec_of(input));
  return sequence_layer(name, parameters, specs, inputs[0].scalar_type(), is_step_by_step);
}

at::Tensor forward(Layer& layer, const std::vector<at::Tensor>& inputs) {
  LayerContext context;
  return layer.forward(inputs, context);
}

at::Tensor numbers_of(const std::vector<std::int64_t>& numbers) {
  return at::tensor(numbers, at::kLong);
}

// --- Beside the formula

/// softmax(Q Kᵀ / √d + bias) V over what each query sees, one number after the other.
struct AttentionByHand {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  /// What stands in the exponent of a pair of query and key beside their product; kHides where the
  /// query does not see the key.
  std::function<double(std::int64_t row, std::int64_t head, std::int64_t t, std::int64_t s)> bias =
      [](auto, auto, auto, auto) { return 0.0; };
  /// Angle of pair i at a position, for the pairs that turn.
  std::vector<double> frequencies = {};
  /// Of a row, where it is not t.
  std::function<double(std::int64_t row, std::int64_t t)> position = [](auto, std::int64_t t) {
    return static_cast<double>(t);
  };

  using Numbers = std::vector<double>;

  Numbers head_of(const at::Tensor& rows, std::int64_t row, std::int64_t t, std::int64_t head,
                  std::int64_t width, bool turns) const {
    Numbers numbers;
    for (std::int64_t i = 0; i < width; ++i)
      numbers.push_back(rows[row][t][head * width + i].item<double>());
    const std::size_t half = turns ? frequencies.size() : 0;
    for (std::size_t i = 0; i < half; ++i) {
      // A pair as one complex number, which turning multiplies.
      const auto turned = std::complex(numbers[i], numbers[i + half]) *
                          std::polar(1.0, position(row, t) * frequencies[i]);
      numbers[i] = turned.real();
      numbers[i + half] = turned.imag();
    }
    return numbers;
  }

  at::Tensor operator()(Layer& layer, const at::Tensor& x, const at::Tensor& memory = {}) const {
    const auto parameters = layer.named_parameters();
    const at::NoGradGuard no_gradients;
    const auto mapped = [&](const at::Tensor& rows, const std::string& name) {
      return at::linear(rows, parameters[name + "_weight"], parameters[name + "_bias"]);
    };
    const at::Tensor& out_weight = parameters["out_weight"];
    const std::int64_t d = out_weight.size(1) / heads;
    const at::Tensor in = mapped(x, "in");
    const at::Tensor queries = in.narrow(2, 0, heads * d);
    const at::Tensor both =
        memory.defined() ? mapped(memory, "memory") : in.narrow(2, heads * d, 2 * kv_heads * d);
    const at::Tensor keys = both.narrow(2, 0, kv_heads * d);
    const at::Tensor values = both.narrow(2, kv_heads * d, kv_heads * d);
    const bool turns = !frequencies.empty();
    at::Tensor mixed = at::zeros({x.size(0), x.size(1), heads * d}, at::kDouble);
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t of = head / (heads / kv_heads);
        for (std::int64_t t = 0; t < x.size(1); ++t) {
          const Numbers query = head_of(queries, row, t, head, d, turns);
          Numbers weights;
          double sum = 0;
          for (std::int64_t s = 0; s < keys.size(1); ++s) {
            const Numbers key = head_of(keys, row, s, of, d, turns);
            double product = 0;
            for (std::size_t i = 0; i < key.size(); ++i)
              product += query[i] * key[i];
            weights.push_back(
                std::exp(product / std::sqrt(static_cast<double>(d)) + bias(row, head, t, s)));
            sum += weights.back();
          }
          for (std::int64_t s = 0; s < keys.size(1) && sum > 0; ++s) {
            const Numbers value = head_of(values, row, s, of, d, false);
            for (std::int64_t i = 0; i < d; ++i) {
              mixed[row][t][head * d + i] +=
                  weights[static_cast<std::size_t>(s)] / sum * value[static_cast<std::size_t>(i)];
            }
          }
        }
      }
    }
    return mapped(mixed, "out");
  }
};

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kPositions = 5;
constexpr std::int64_t kModelWidth = 8;

at::Tensor random_sequences(std::int64_t length = kPositions, std::int64_t width = kModelWidth,
                            std::int64_t rows = kBatch) {
  return at::randn({rows, length, width}, at::kDouble);
}

TEST(AttentionFormula, HeadsMayShareKeysAndValues) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const auto layer =
      layer_for("attention", {{"num_heads", 6}, {"num_kv_heads", 2}, {"head_dim", 3}}, {x});
  EXPECT_EQ(layer->named_parameters()["in_weight"].sizes(),
            (std::vector<std::int64_t>{(6 + 2 + 2) * 3, kModelWidth}));
  AttentionByHand by_hand;
  by_hand.heads = 6;
  by_hand.kv_heads = 2;

  EXPECT_TRUE(forward(*layer, {x}).allclose(by_hand(*layer, x), 1e-12, 1e-12));
}

TEST(AttentionFormula, AWindowReachesSoFar) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  for (const bool is_causal : {false, true}) {
    const auto layer = layer_for("attention", {{"is_causal", is_causal}, {"window", 2}}, {x});
    AttentionByHand by_hand;
    by_hand.bias = [&](auto, auto, std::int64_t t, std::int64_t s) {
      const bool sees = t - s <= 2 && (is_causal ? s <= t : s - t <= 2);
      return sees ? 0 : kHides;
    };

    EXPECT_TRUE(forward(*layer, {x}).allclose(by_hand(*layer, x), 1e-12, 1e-12)) << is_causal;
  }
}

TEST(AttentionFormula, AMaskHidesAndABiasIsAdded) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const at::Tensor memory = random_sequences(4, 3);
  const at::Tensor for_all = at::randn({kPositions, 4}, at::kDouble);
  const at::Tensor by_row = at::randn({kBatch, kPositions, 4}, at::kDouble);
  const at::Tensor by_head = at::randn({kBatch, 2, kPositions, 4}, at::kDouble);
  const at::Tensor of_one_head = by_head.narrow(1, 0, 1).contiguous();
  using At = std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>;
  const auto number = [](const at::Tensor& one) { return one.item<double>(); };
  struct Case {
    at::Tensor given;
    At value;
  };
  for (const Case& one :
       {Case{for_all, [&](auto, auto, auto t, auto s) { return number(for_all[t][s]); }},
        Case{by_row, [&](auto row, auto, auto t, auto s) { return number(by_row[row][t][s]); }},
        Case{by_head,
             [&](auto row, auto head, auto t, auto s) { return number(by_head[row][head][t][s]); }},
        Case{of_one_head,
             [&](auto row, auto, auto t, auto s) { return number(of_one_head[row][0][t][s]); }}}) {
    SCOPED_TRACE(spec_of(one.given).text());
    const bool is_by_row = one.given.dim() > 2;
    for (const bool is_mask : {true, false}) {
      if (!is_mask && one.given.dim() == 3)
        continue;  // numbers [B, S, …] are a sequence to look at
      const at::Tensor given = is_mask ? one.given.gt(0) : one.given;
      const auto layer = sequence_layer("attention", {{"num_heads", 2}},
                                        {spec_of(x), spec_of(memory), spec_of(given, is_by_row)});
      AttentionByHand by_hand;
      by_hand.heads = by_hand.kv_heads = 2;
      by_hand.bias = [&](auto row, auto head, auto t, auto s) {
        const double value = one.value(row, head, t, s);
        return is_mask ? (value > 0 ? 0 : kHides) : value;
      };

      EXPECT_TRUE(
          forward(*layer, {x, memory, given}).allclose(by_hand(*layer, x, memory), 1e-12, 1e-12))
          << (is_mask ? "mask" : "bias");
    }
  }
}

struct RotaryCase {
  std::string name;
  Json rotary;
  std::vector<double> frequencies;
};

class RotaryFormula : public ::testing::TestWithParam<RotaryCase> {};

TEST_P(RotaryFormula, TurnsPairsOfHalves) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const auto layer = layer_for("attention",
                               {{"num_heads", 2},
                                {"num_kv_heads", 1},
                                {"head_dim", 8},
                                {"is_causal", true},
                                {"rotary", GetParam().rotary}},
                               {x});
  AttentionByHand by_hand;
  by_hand.heads = 2;
  by_hand.frequencies = GetParam().frequencies;
  by_hand.bias = [](auto, auto, auto t, auto s) { return s <= t ? 0 : kHides; };

  EXPECT_TRUE(forward(*layer, {x}).allclose(by_hand(*layer, x), 1e-12, 1e-12));
}

// python3 -c "print([10000 ** (-2 * i / 8) for i in range(4)])"; linear: each / 4; ntk: of theta
// 10000 * 4 ** (8 / 6); llama3 by apply_scaling() of Meta's llama-models, in plain Python: theta
// 100, factor 4, low 1, high 4, length 40.
INSTANTIATE_TEST_SUITE_P(
    Layers, RotaryFormula,
    ::testing::Values(RotaryCase{"Plain", Json::object(), {1.0, 0.1, 0.01, 0.001}},
                      RotaryCase{"InPart", {{"dim", 4}, {"theta", 100}}, {1.0, 0.1}},
                      RotaryCase{"Linear",
                                 {{"scaling", "linear"}, {"factor", 4}},
                                 {0.25, 0.025, 0.0025, 0.00025}},
                      RotaryCase{"Ntk",
                                 {{"scaling", "ntk"}, {"factor", 4}},
                                 {1.0, 0.06299605249474366, 0.003968502629920499, 0.00025}},
                      RotaryCase{"Llama3",
                                 {{"theta", 100},
                                  {"scaling", "llama3"},
                                  {"factor", 4},
                                  {"low_freq_factor", 1},
                                  {"high_freq_factor", 4},
                                  {"original_max_position_embeddings", 40}},
                                 {1.0, 0.15915494309189532, 0.025, 0.007905694150420948}}),
    CaseName());

// torch::nn::MultiheadAttention has [length, batch, width], a mask of padding that is true where
// hidden, and adds its other mask, in C++ also one of booleans.
TEST(AttentionBesideTorch, HasTheValuesOfMultiheadAttention) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const at::Tensor memory = random_sequences(4, 3);
  const at::Tensor lengths = numbers_of({2, 4});
  const at::Tensor padding = at::arange(4).unsqueeze(0).ge(lengths.unsqueeze(1));
  const at::Tensor seen = at::randn({kPositions, 4}).gt(-0.5).logical_or(at::arange(4).eq(0));
  const auto layer = sequence_layer(
      "attention", {{"num_heads", 2}},
      {spec_of(x), spec_of(memory), spec_of(lengths), spec_of(seen, /*by_row=*/false)});
  torch::nn::MultiheadAttention theirs(
      torch::nn::MultiheadAttentionOptions(kModelWidth, 2).kdim(3).vdim(3));
  theirs->to(at::kDouble);
  {
    const at::NoGradGuard no_gradients;
    const auto ours = layer->named_parameters();
    theirs->q_proj_weight.copy_(ours["in_weight"]);
    theirs->k_proj_weight.copy_(ours["memory_weight"].narrow(0, 0, kModelWidth));
    theirs->v_proj_weight.copy_(ours["memory_weight"].narrow(0, kModelWidth, kModelWidth));
    theirs->in_proj_bias.copy_(at::cat({ours["in_bias"], ours["memory_bias"]}));
    theirs->out_proj->weight.copy_(ours["out_weight"]);
    theirs->out_proj->bias.copy_(ours["out_bias"]);
  }
  const at::Tensor source = memory.transpose(0, 1);

  const auto [expected, weights] = theirs->forward(
      x.transpose(0, 1), source, source, padding, true,
      at::zeros({kPositions, 4}, at::kDouble).masked_fill(seen.logical_not(), kHides));
  LayerContext context;
  const std::vector<std::string> names{"attn_weights"};
  context.request_outputs(names);
  const at::Tensor result = layer->forward(std::vector{x, memory, lengths, seen}, context);

  EXPECT_TRUE(result.allclose(expected.transpose(0, 1), 1e-12, 1e-12));
  EXPECT_TRUE(context.take_outputs()[0].allclose(weights, 1e-12, 1e-12));
}

TEST(AttentionToNothing, MixesZerosAndHasSlopesOfZero) {
  const TaskRandom random(1);
  at::Tensor x = random_sequences().set_requires_grad(true);
  const at::Tensor mask = at::zeros({kBatch, kPositions, kPositions}, at::kBool);
  const at::Tensor bias = at::full({kBatch, 2, kPositions, kPositions}, kHides, at::kDouble);
  for (const at::Tensor& nothing : {mask, bias}) {
    const auto layer = layer_for("attention", {{"num_heads", 2}}, {x, nothing});

    const at::Tensor result = forward(*layer, {x, nothing});
    result.square().sum().backward();

    const auto parameters = layer->named_parameters();
    EXPECT_TRUE(at::equal(result, parameters["out_bias"].expand_as(result)));
    EXPECT_EQ(x.grad().abs().max().item<double>(), 0);
    EXPECT_EQ(parameters["in_weight"].grad().abs().max().item<double>(), 0);
  }
}

// --- Packed documents

struct PackedCase {
  std::string name;
  std::string layer;
  Json parameters = Json::object();
};

class PackedDocuments : public ::testing::TestWithParam<PackedCase> {};

TEST_P(PackedDocuments, GiveWhatEachGivesAlone) {
  const std::vector<std::int64_t> lengths{3, 4, 2};
  const TaskRandom random(1);
  const at::Tensor packed = random_sequences(9, kModelWidth, 1).set_requires_grad(true);
  const at::Tensor alone = packed.detach().clone().set_requires_grad(true);
  const at::Tensor segments = numbers_of({0, 0, 0, 1, 1, 1, 1, 2, 2}).unsqueeze(0);
  const auto [name, kind, parameters] = GetParam();
  const auto layer = layer_for(kind, parameters, {packed, segments});
  // The same weights without segments.
  const auto plain = sequence_layer(
      kind, parameters,
      {TensorSpec({TensorSpec::kVaries, TensorSpec::kVaries, kModelWidth}, at::kDouble)});
  {
    const at::NoGradGuard no_gradients;
    const auto weights = layer->named_parameters();
    for (auto& parameter : plain->named_parameters())
      parameter.value().copy_(weights[parameter.key()]);
  }
  const at::Tensor slope = random_sequences(9, kModelWidth, 1);

  const at::Tensor together = forward(*layer, {packed, segments});
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    parts.push_back(forward(*plain, {alone.narrow(1, begin, length)}));
    begin += length;
  }
  const at::Tensor each = at::cat(parts, 1);
  together.mul(slope).sum().backward();
  each.mul(slope).sum().backward();

  EXPECT_TRUE(together.allclose(each, 1e-12, 1e-12));
  EXPECT_TRUE(packed.grad().allclose(alone.grad(), 1e-12, 1e-12));
  const auto expected = plain->named_parameters();
  for (const auto& parameter : layer->named_parameters()) {
    EXPECT_TRUE(parameter.value().grad().allclose(expected[parameter.key()].grad(), 1e-12, 1e-12))
        << parameter.key();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, PackedDocuments,
    ::testing::Values(PackedCase{"Attention", "attention", {{"num_heads", 2}}},
                      PackedCase{"CausalRotary",
                                 "attention",
                                 {{"num_heads", 4},
                                  {"num_kv_heads", 2},
                                  {"is_causal", true},
                                  {"rotary", Json::object()}}},
                      PackedCase{"Window", "attention", {{"window", 1}, {"rotary", {{"dim", 2}}}}},
                      PackedCase{"LearnedPositions", "positional_encoding", {{"max_length", 4}}},
                      PackedCase{
                          "SinusoidalPositions", "positional_encoding", {{"kind", "sinusoidal"}}}),
    CaseName());

TEST(PackedPairs, LookAtTheOtherSequenceOfTheirOwn) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences(5, kModelWidth, 1);
  const at::Tensor memory = random_sequences(4, 3, 1);
  const std::vector<at::Tensor> all{x, memory, numbers_of({0, 0, 1, 1, 1}).unsqueeze(0),
                                    numbers_of({0, 1, 1, 1}).unsqueeze(0)};
  const auto layer = layer_for("attention", {{"num_heads", 2}}, all);
  const auto of_pair = [&](std::int64_t t, std::int64_t queries, std::int64_t s,
                           std::int64_t keys) {
    return forward(*layer, {x.narrow(1, t, queries), memory.narrow(1, s, keys),
                            at::zeros({1, queries}, at::kLong), at::zeros({1, keys}, at::kLong)});
  };

  EXPECT_TRUE(forward(*layer, all)
                  .allclose(at::cat({of_pair(0, 2, 0, 1), of_pair(2, 3, 1, 3)}, 1), 1e-12, 1e-12));
}

// --- Step by step

struct CacheCase {
  std::string name;
  std::string layer;
  Json parameters;
};

class Cache : public ::testing::TestWithParam<CacheCase> {
 protected:
  static std::shared_ptr<Layer> made(at::ScalarType dtype) {
    return sequence_layer(
        GetParam().layer, GetParam().parameters,
        {TensorSpec({TensorSpec::kVaries, TensorSpec::kVaries, kModelWidth}, dtype)}, dtype, true);
  }
};

TEST_P(Cache, GivesStepByStepWhatTheWholeSequenceGives) {
  for (const auto& [dtype, tolerance] :
       {std::pair(at::kDouble, 1e-12), std::pair(at::kFloat, 1e-6)}) {
    const TaskRandom random(1);
    const at::Tensor x = at::randn({3, 7, kModelWidth}, dtype);
    const auto layer = made(dtype);
    layer->eval();
    const at::NoGradGuard no_gradients;
    const at::Tensor whole = forward(*layer, {x});

    LayerContext context;
    std::vector<at::Tensor> steps;
    std::int64_t begin = 0;
    for (const std::int64_t length : {3, 1, 2, 1}) {
      const at::Tensor step = x.narrow(1, begin, length).contiguous();
      steps.push_back(layer->forward({&step, 1}, context));
      begin += length;
    }

    EXPECT_LT((at::cat(steps, 1) - whole).abs().max().item<double>(), tolerance);
  }
}

TEST_P(Cache, DoesNotActInTraining) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const auto layer = made(at::kDouble);
  LayerContext context;

  const at::Tensor first = layer->forward({&x, 1}, context);

  EXPECT_TRUE(at::equal(layer->forward({&x, 1}, context), first));
  EXPECT_TRUE(context.state().empty());
}

TEST_P(Cache, IsRemembered) {
  EXPECT_TRUE(dynamic_cast<const KeepsState&>(*made(at::kDouble)).keeps_state());
  const auto without = sequence_layer(
      GetParam().layer, GetParam().parameters,
      {TensorSpec({TensorSpec::kVaries, TensorSpec::kVaries, kModelWidth}, at::kDouble)});
  EXPECT_FALSE(dynamic_cast<const KeepsState&>(*without).keeps_state());
}

INSTANTIATE_TEST_SUITE_P(
    Layers, Cache,
    ::testing::Values(CacheCase{"Causal", "attention", {{"num_heads", 2}, {"is_causal", true}}},
                      CacheCase{"Rotary",
                                "attention",
                                {{"num_heads", 4},
                                 {"num_kv_heads", 2},
                                 {"is_causal", true},
                                 {"rotary", Json::object()}}},
                      CacheCase{"Window",
                                "attention",
                                {{"is_causal", true}, {"window", 2}, {"rotary", {{"theta", 10}}}}},
                      CacheCase{"OnlyItself", "attention", {{"is_causal", true}, {"window", 0}}},
                      CacheCase{"LearnedPositions", "positional_encoding", {{"max_length", 7}}},
                      CacheCase{
                          "SinusoidalPositions", "positional_encoding", {{"kind", "sinusoidal"}}}),
    CaseName());

TEST(CacheOfAttention, IsOneTensorOfTheRowsAndOfTheWindow) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const Json parameters{{"num_heads", 4}, {"num_kv_heads", 2}, {"is_causal", true}};
  for (const auto& [window, kept] : {std::pair(100, 10), std::pair(3, 3)}) {
    Json with_window = parameters;
    with_window["window"] = window;
    const auto layer = layer_for("attention", with_window, {x}, true);
    layer->eval();
    LayerContext context;

    layer->forward({&x, 1}, context);
    layer->forward({&x, 1}, context);

    EXPECT_EQ(context.state().tensor("keys_and_values").sizes(),
              (std::vector<std::int64_t>{kBatch, 2, 2, kept, kModelWidth / 4}));
    EXPECT_FALSE(context.state().tensor("keys_and_values").requires_grad());
  }
}

TEST(CacheOfAttention, ContinuesTheFirstRowsOfABatchThatWasLarger) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const auto layer = layer_for("attention", {{"is_causal", true}}, {x}, true);
  layer->eval();
  LayerContext all;
  LayerContext fewer;
  layer->forward({&x, 1}, all);
  layer->forward({&x, 1}, fewer);
  const at::Tensor one = x.narrow(0, 0, 1).contiguous();

  EXPECT_TRUE(layer->forward({&one, 1}, fewer)
                  .allclose(layer->forward({&x, 1}, all).narrow(0, 0, 1), 1e-12, 1e-12));
  try {
    layer->forward({&x, 1}, fewer);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "has a cache of 1 rows, but is given 2; each row continues that of the call "
                 "before");
  }
}

// Step by step a row is one document, whose first segment the training packed with others.
TEST_P(Cache, TakesSegmentsForThoseOfOneDocument) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const at::Tensor segments = at::zeros({x.size(0), x.size(1)}, at::kLong);
  const auto layer = layer_for(GetParam().layer, GetParam().parameters, {x, segments}, true);
  layer->eval();
  const at::NoGradGuard no_gradients;
  const at::Tensor whole = forward(*layer, {x, segments});

  LayerContext context;
  std::vector<at::Tensor> steps;
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    const std::vector<at::Tensor> step{x.narrow(1, t, 1).contiguous(),
                                       segments.narrow(1, t, 1).contiguous()};
    steps.push_back(layer->forward(step, context));
  }

  EXPECT_TRUE(at::cat(steps, 1).allclose(whole, 1e-12, 1e-12));
}

// What looks ahead, or at what no step is given, is computed of each batch alone.
TEST(CacheOfAttention, IsForCausalAttentionToTheStreamAlone) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const auto keeps_state = [](const Layer& layer) {
    return dynamic_cast<const KeepsState&>(layer).keeps_state();
  };
  EXPECT_FALSE(keeps_state(*layer_for("attention", Json::object(), {x}, true)));
  EXPECT_FALSE(keeps_state(
      *layer_for("attention", {{"is_causal", true}}, {x, at::ones({x.size(0)}, at::kLong)}, true)));
}

// --- What does not fit

std::string refused_sequence(const std::string& name, const Json& parameters,
                             const std::vector<TensorSpec>& inputs) {
  try {
    sequence_layer(name, parameters, inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TensorSpec by_rows(std::vector<std::int64_t> row, at::ScalarType dtype = at::kDouble) {
  row.insert(row.begin(), TensorSpec::kVaries);
  return {std::move(row), dtype};
}

const TensorSpec kStream = by_rows({5, 6});

TEST(AttentionMistakes, OfHeads) {
  EXPECT_EQ(
      refused_sequence("attention", {{"num_heads", 4}}, {kStream}),
      "has 4 heads, which do not divide the width of 6; set \"head_dim\" for heads of another "
      "width");
  EXPECT_EQ(refused_sequence("attention", {{"num_heads", 6}, {"num_kv_heads", 4}}, {kStream}),
            "/num_kv_heads: is 4, which does not divide the 6 of \"num_heads\"");
  EXPECT_EQ(
      refused_sequence("attention", {{"num_heads", 2}, {"rotary", Json::object()}}, {kStream}),
      "turns 3 numbers of a head in pairs, but heads have 3; set \"rotary.dim\" to an even number "
      "within it");
  EXPECT_EQ(
      refused_sequence("attention", {{"num_heads", 3}, {"rotary", {{"dim", 4}}}}, {kStream}),
      "turns 4 numbers of a head in pairs, but heads have 2; set \"rotary.dim\" to an even number "
      "within it");
}

TEST(AttentionMistakes, OfMasks) {
  const auto refused = [](const TensorSpec& reference) {
    return refused_sequence("attention", {{"num_heads", 2}}, {kStream, reference});
  };
  EXPECT_EQ(refused(by_rows({5, 4}, at::kBool)),
            "the mask is [B, 5, 4] bool, but queries and keys ask for [B, 5, 5] bool");
  EXPECT_EQ(refused(by_rows({3, 5, 5}, at::kBool)),
            "the mask is [B, 3, 5, 5] bool, but queries and keys ask for [B, 2, 5, 5] bool");
  EXPECT_EQ(refused({{4, 5}, at::kBool}),
            "the mask is [4, 5] bool, but queries and keys ask for [5, 5] bool");
  EXPECT_EQ(refused(by_rows({2, 5, 6})),
            "the bias of the scores is [B, 2, 5, 6], but queries and keys ask for [B, 2, 5, 5]");
  EXPECT_EQ(refused(by_rows({4}, at::kBool)),
            "the mask of padding is [B, 4] bool, but queries and keys ask for [B, 5] bool");
  EXPECT_EQ(refused(by_rows({4}, at::kLong)),
            "the list of segments is [B, 4] int64, but queries and keys ask for [B, 5] int64");
  EXPECT_THAT(refused(by_rows({2, 2}, at::kLong)),
              AllOf(HasSubstr("takes as references"), HasSubstr("got [B, 2, 2] int64")));
  EXPECT_EQ(
      refused_sequence("attention", {}, {kStream, by_rows({}, at::kLong), by_rows({5}, at::kBool)}),
      "takes one description of padding, got [B] int64 and [B, 5] bool");
  EXPECT_EQ(refused_sequence("attention", {}, {kStream, kStream, by_rows({5}, at::kLong)}),
            "looks at another sequence, so it takes the segments of both, first [B, T] of the "
            "stream, got only [B, 5] int64");
}

// Of sizes that only a batch has.
TEST(AttentionMistakes, OfMasksOfABatch) {
  const TensorSpec stream = by_rows({TensorSpec::kVaries, 6});
  const auto failure = [&](const TensorSpec& spec, const at::Tensor& reference) -> std::string {
    const auto layer = sequence_layer("attention", Json::object(), {stream, spec});
    try {
      forward(*layer, {at::zeros({2, 5, 6}, at::kDouble), reference});
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  constexpr std::int64_t kVarying = TensorSpec::kVaries;
  EXPECT_EQ(failure(by_rows({kVarying, kVarying}, at::kBool), at::zeros({2, 5, 4}, at::kBool)),
            "the mask is [2, 5, 4] bool, but queries and keys ask for [2, 5, 5] bool");
  EXPECT_EQ(failure(by_rows({kVarying}, at::kLong), at::zeros({2, 4}, at::kLong)),
            "the segments have 4 positions, but the sequences have 5");
  EXPECT_EQ(failure(by_rows({kVarying}, at::kBool), at::zeros({2, 4}, at::kBool)),
            "the mask has 4 positions, but the sequences have 5");
}

TEST(AttentionMistakes, OfKeysThatContradictEachOther) {
  EXPECT_THAT(refused_sequence("attention", {{"rotary", Json::object()}}, {kStream, kStream}),
              AllOf(HasSubstr("rotary"), HasSubstr("got [B, 5, 6]")));
  const auto refused = [](const Json& rotary) {
    return refused_sequence("attention", {{"rotary", rotary}}, {kStream});
  };
  EXPECT_EQ(refused({{"dim", 3}}), "/rotary/dim: must be even, since numbers turn in pairs, got 3");
  EXPECT_EQ(refused({{"scaling", "ntk"}}), "/rotary: \"scaling\": \"ntk\" requires \"factor\"");
  EXPECT_EQ(refused({{"factor", 2}}),
            "/rotary/factor: has no effect with \"scaling\": \"none\"; leave it out");
  EXPECT_EQ(refused({{"scaling", "linear"}, {"factor", 2}, {"low_freq_factor", 1}}),
            "/rotary/low_freq_factor: has no effect with \"scaling\": \"linear\"; leave it out");
  EXPECT_EQ(refused({{"scaling", "llama3"},
                     {"factor", 2},
                     {"low_freq_factor", 4},
                     {"high_freq_factor", 4},
                     {"original_max_position_embeddings", 8}}),
            "/rotary/low_freq_factor: must be less than \"high_freq_factor\"");
}

TEST(PositionalEncodingMistakes, NameBothLengths) {
  EXPECT_THAT(refused_sequence("positional_encoding", {}, {by_rows({TensorSpec::kVaries, 6})}),
              AllOf(HasSubstr("got [B, ?, 6]"), HasSubstr("max_length")));
  EXPECT_EQ(refused_sequence("positional_encoding", {{"max_length", 4}}, {kStream}),
            "has vectors for 4 positions (\"max_length\"), got [B, 5, 6]");
  EXPECT_THAT(refused_sequence("positional_encoding", {{"kind", "sinusoidal"}, {"max_length", 4}},
                               {kStream}),
              HasSubstr("/max_length: has no effect"));
  EXPECT_EQ(refused_sequence("positional_encoding", {}, {kStream, by_rows({4}, at::kLong)}),
            "the segments are [B, 4] int64, but the sequences [B, 5, 6]");
  const auto failure = [](Layer& layer, const std::vector<at::Tensor>& inputs) -> std::string {
    try {
      forward(layer, inputs);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  const at::Tensor x = at::zeros({2, 5, 6}, at::kDouble);
  EXPECT_EQ(failure(*sequence_layer("positional_encoding", {{"max_length", 4}},
                                    {by_rows({TensorSpec::kVaries, 6})}),
                    {x}),
            "has vectors for 4 positions, but the sequence has 5; raise \"max_length\"");
  EXPECT_EQ(failure(*sequence_layer("positional_encoding", {{"max_length", 4}},
                                    {kStream, by_rows({5}, at::kLong)}),
                    {x, at::zeros({2, 5}, at::kLong)}),
            "has vectors for 4 positions, but a segment has 5; raise \"max_length\"");
}

// --- Gated units

// Shazeer (2020), equation 6, with PyTorch's functions; torch.nn has no module for it.
TEST(GatedFeedForward, IsTheFormulaOfThePaper) {
  const TaskRandom random(1);
  const at::Tensor x = random_sequences();
  const auto layer =
      layer_for("gated_feed_forward", {{"hidden_features", 5}, {"out_features", 3}}, {x});
  const auto w = layer->named_parameters();
  const auto mapped = [&](const at::Tensor& rows, const std::string& name) {
    return rows.matmul(w[name + "_weight"].t()).add(w[name + "_bias"]);
  };
  const at::Tensor gate = mapped(x, "gate");

  EXPECT_EQ(w["gate_weight"].sizes(), (std::vector<std::int64_t>{5, kModelWidth}));
  EXPECT_TRUE(
      forward(*layer, {x})
          .allclose(
              mapped(gate.mul(gate.neg().exp().add(1).reciprocal()).mul(mapped(x, "up")), "down"),
              1e-12, 1e-12));
}

}  // namespace
}  // namespace treadle::testing
