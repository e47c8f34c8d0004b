// Padding never changes a result: a padded batch gives what its rows give one by one, and so do
// gradients.
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/core/model/layer.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLength = 6;
constexpr std::int64_t kWidth = 4;
const std::vector<std::int64_t> kLengths{3, 6, 1, 5};

struct PaddingCase {
  std::string name;
  std::string layer;
  Json parameters = Json::object();
  bool by_mask = false;
  bool keeps_steps = false;  ///< gives a value for every step
  bool attends_elsewhere = false;
  bool truncates_bptt = false;
};

std::shared_ptr<Layer> made(const PaddingCase& one, const std::vector<at::Tensor>& inputs) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  LayerSpec spec;
  spec.dtype = at::kDouble;
  for (const at::Tensor& input : inputs) {
    spec.inputs.push_back(TensorSpec::of(input));
    spec.inputs.back().sizes[0] = TensorSpec::kVaries;
  }
  const TaskRandom random(5);
  return plugin.make<LayerFactory>(one.layer, one.parameters)->create(spec);
}

at::Tensor lengths_of(const std::vector<std::int64_t>& lengths) {
  return at::tensor(lengths, at::kLong);
}

at::Tensor described(const PaddingCase& one, const std::vector<std::int64_t>& lengths,
                     std::int64_t longest) {
  const at::Tensor numbers = lengths_of(lengths);
  return one.by_mask ? at::arange(longest).unsqueeze(0).lt(numbers.unsqueeze(1)) : numbers;
}

class Padding : public ::testing::TestWithParam<PaddingCase> {
 protected:
  /// The stream, perhaps a sequence to look at, and what describes the padding of the last of them.
  static std::vector<at::Tensor> inputs(const at::Tensor& sequence, const at::Tensor& stream,
                                        const at::Tensor& padding) {
    if (GetParam().attends_elsewhere)
      return {stream, sequence, padding};
    return {sequence, padding};
  }

  static at::Tensor run(Layer& layer, const std::vector<at::Tensor>& given) {
    LayerContext context;
    context.set_truncated_bptt(GetParam().truncates_bptt);
    return layer.forward(given, context);
  }
};

TEST_P(Padding, GivesWhatRowsGiveOneByOne) {
  const PaddingCase& one = GetParam();
  const TaskRandom random(2);
  const auto rows = static_cast<std::int64_t>(kLengths.size());
  at::Tensor sequence = at::randn({rows, kLength, kWidth}, at::kDouble);
  const at::Tensor stream = at::randn({rows, 2, kWidth}, at::kDouble);
  const at::Tensor padding = described(one, kLengths, kLength);
  sequence.requires_grad_(true);
  const auto layer = made(one, inputs(sequence, stream, padding));

  const at::Tensor all = run(*layer, inputs(sequence, stream, padding));
  at::Tensor sum = at::zeros({}, at::kDouble);
  at::Tensor sum_alone = at::zeros({}, at::kDouble);
  const at::Tensor alone_sequence = sequence.detach().clone().requires_grad_(true);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = kLengths[static_cast<std::size_t>(row)];
    const at::Tensor own = alone_sequence.narrow(0, row, 1).narrow(1, 0, length);
    const at::Tensor alone =
        run(*layer, inputs(own, stream.narrow(0, row, 1), described(one, {length}, length)));
    at::Tensor of_row = all.narrow(0, row, 1);
    if (one.keeps_steps)
      of_row = of_row.narrow(1, 0, length);
    EXPECT_TRUE(of_row.allclose(alone, 1e-12, 1e-13)) << "row " << row;
    sum = sum.add(of_row.square().sum());
    sum_alone = sum_alone.add(alone.square().sum());
  }

  sum.backward();
  std::vector<at::Tensor> gradients;
  for (at::Tensor& parameter : layer->parameters()) {
    gradients.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  sum_alone.backward();
  EXPECT_TRUE(sequence.grad().allclose(alone_sequence.grad(), 1e-11, 1e-12));
  const auto parameters = layer->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    EXPECT_TRUE(gradients[i].allclose(parameters[i].grad(), 1e-11, 1e-12)) << i;
}

// Whatever stands in the padding: other numbers, and infinity where it is overwritten.
TEST_P(Padding, DoesNotLookAtPadding) {
  const PaddingCase& one = GetParam();
  const TaskRandom random(2);
  const auto rows = static_cast<std::int64_t>(kLengths.size());
  const at::Tensor sequence = at::randn({rows, kLength, kWidth}, at::kDouble);
  const at::Tensor stream = at::randn({rows, 2, kWidth}, at::kDouble);
  const at::Tensor padding = described(one, kLengths, kLength);
  const at::Tensor real = at::arange(kLength).unsqueeze(0).lt(lengths_of(kLengths).unsqueeze(1));
  const at::Tensor other = at::where(real.unsqueeze(2), sequence, at::full_like(sequence, 1e6));
  const auto layer = made(one, inputs(sequence, stream, padding));

  at::Tensor first = run(*layer, inputs(sequence, stream, padding));
  at::Tensor second = run(*layer, inputs(other, stream, padding));

  if (one.keeps_steps) {
    first = first.masked_fill(real.logical_not().unsqueeze(2), 0);
    second = second.masked_fill(real.logical_not().unsqueeze(2), 0);
  }
  EXPECT_TRUE(at::equal(first, second));
}

TEST_P(Padding, ARowOfPaddingHasNumbers) {
  const PaddingCase& one = GetParam();
  const TaskRandom random(2);
  at::Tensor sequence = at::randn({2, kLength, kWidth}, at::kDouble).requires_grad_(true);
  const at::Tensor stream = at::randn({2, 2, kWidth}, at::kDouble);
  const at::Tensor padding = described(one, {0, 2}, kLength);
  const auto layer = made(one, inputs(sequence, stream, padding));

  const at::Tensor result = run(*layer, inputs(sequence, stream, padding));
  result.square().sum().backward();

  EXPECT_TRUE(result.isfinite().all().item<bool>());
  EXPECT_TRUE(sequence.grad().isfinite().all().item<bool>());
  if (one.layer != "attention") {
    EXPECT_EQ(result[0].abs().max().item<double>(), 0);
  }
}

Json reduce(const std::string& by) {
  return {{"reduction", by}, {"dims", {1}}};
}

PaddingCase cut(PaddingCase one) {
  one.truncates_bptt = true;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Layers, Padding,
    ::testing::Values(
        PaddingCase{"Mean", "reduce", reduce("mean")}, PaddingCase{"Max", "reduce", reduce("max")},
        PaddingCase{"Min", "reduce", reduce("min")}, PaddingCase{"Sum", "reduce", reduce("sum")},
        PaddingCase{"Last", "reduce", reduce("last")},
        PaddingCase{"MeanOfMasked", "reduce", reduce("mean"), true},
        PaddingCase{"MeanOverAll", "reduce", {{"reduction", "mean"}, {"dims", {1, 2}}}},
        PaddingCase{"LastOfMasked", "reduce", reduce("last"), true},
        PaddingCase{"Rnn", "rnn", {{"hidden_size", 3}}, false, true},
        PaddingCase{"Gru", "gru", {{"hidden_size", 3}, {"bidirectional", true}}, false, true},
        PaddingCase{"LstmLast", "lstm", {{"hidden_size", 3}, {"return_sequences", false}}},
        PaddingCase{"GruLastOfBoth",
                    "gru",
                    {{"hidden_size", 2},
                     {"return_sequences", false},
                     {"bidirectional", true},
                     {"num_layers", 2}}},
        cut(PaddingCase{"RnnCut", "rnn", {{"hidden_size", 3}}, false, true}),
        cut(PaddingCase{"LstmLastCut", "lstm", {{"hidden_size", 3}, {"return_sequences", false}}}),
        cut(PaddingCase{"GruLastOfBothCut",
                        "gru",
                        {{"hidden_size", 2},
                         {"return_sequences", false},
                         {"bidirectional", true},
                         {"num_layers", 2}}}),
        PaddingCase{"Attention", "attention", {{"num_heads", 2}}, false, true},
        PaddingCase{"AttentionOfMasked", "attention", {{"num_heads", 2}}, true, true},
        PaddingCase{"CausalAttention", "attention", {{"is_causal", true}}, false, true},
        PaddingCase{"AttentionElsewhere", "attention", {}, false, false, true}),
    [](const auto& info) { return info.param.name; });

// torch.nn.LSTM(4, 3, batch_first=True, bidirectional=True) over pack_padded_sequence gives what
// at::lstm over packed rows gives; by hand: the last state of a row of one step is its first.
TEST(PaddingOfLastStates, ARowOfOneStepEndsWhereItBegins) {
  const TaskRandom random(2);
  const at::Tensor sequence = at::randn({3, kLength, kWidth}, at::kDouble);
  const PaddingCase last{"", "lstm", {{"hidden_size", 3}, {"return_sequences", false}}};
  const PaddingCase steps{"", "lstm", {{"hidden_size", 3}}};
  const std::vector<at::Tensor> inputs{sequence, lengths_of({1, 4, 6})};
  LayerContext context;

  const at::Tensor ends = made(last, inputs)->forward(inputs, context);
  const at::Tensor all = made(steps, {sequence})->forward({&sequence, 1}, context);

  EXPECT_TRUE(ends[0].allclose(all[0][0]));
  EXPECT_TRUE(ends[1].allclose(all[1][3]));
  EXPECT_TRUE(ends[2].allclose(all[2][5]));
}

TEST(PaddingOfCutSequences, MayHoldAnything) {
  const TaskRandom random(2);
  const at::Tensor sequence = at::randn({3, kLength, kWidth}, at::kDouble);
  const at::Tensor lengths = lengths_of({1, 4, 6});
  const at::Tensor real = at::arange(kLength).unsqueeze(0).lt(lengths.unsqueeze(1)).unsqueeze(2);
  for (const char* name : {"rnn", "gru", "lstm"}) {
    const auto layer = made({"", name, {{"hidden_size", 3}}}, {sequence, lengths});
    LayerContext context;
    context.set_truncated_bptt(true);
    const std::vector<at::Tensor> inputs{
        at::where(real, sequence, at::full_like(sequence, NAN)).requires_grad_(true), lengths};

    layer->forward(inputs, context).square().sum().backward();

    EXPECT_TRUE(inputs[0].grad().isfinite().all().item<bool>()) << name;
    for (const at::Tensor& parameter : layer->parameters())
      EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>()) << name;
  }
}

TEST(PaddingReferences, AreLengthsOrMasks) {
  const at::Tensor sequence = at::zeros({2, kLength, kWidth}, at::kDouble);
  const auto refused = [&](const std::string& name, const Json& parameters,
                           const at::Tensor& reference) -> std::string {
    try {
      made({"", name, parameters}, {sequence, reference});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const at::Tensor mask = at::zeros({2, kLength}, at::kBool);
  EXPECT_NE(refused("reduce", reduce("mean"), sequence).find("lengths [B] int64"),
            std::string::npos);
  EXPECT_NE(refused("lstm", {{"hidden_size", 2}}, mask).find("lengths"), std::string::npos);
  EXPECT_NE(refused("reduce", Json::object(), mask).find("dimension 1"), std::string::npos);
  EXPECT_EQ(refused("reduce", reduce("max"), mask), "");
}

}  // namespace
}  // namespace treadle::testing
