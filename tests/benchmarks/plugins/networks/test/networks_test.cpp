#include <treadle/sdk.h>

#include <cmath>

#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>

#include <treadle/testing/model/model_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::ModelProvider> make(const std::string& name,
                                             nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::ModelProvider>(name, std::move(parameters));
}

treadle::ModelSpec spec_of(std::vector<std::int64_t> shape, std::int64_t outputs = 3) {
  treadle::ModelSpec spec = ModelCase::table_spec(1, {outputs});
  spec.inputs = {{"x", std::move(shape), {}}};
  return spec;
}

ModelCase case_of(std::string name, std::string component, nlohmann::json parameters,
                  treadle::ModelSpec spec) {
  return {std::move(name), [component, parameters] { return make(component, parameters); },
          std::move(spec)};
}

const nlohmann::json kSmallEncoder{{"width", 8}, {"heads", 2}, {"feed_forward", 12}, {"layers", 2}};

INSTANTIATE_TEST_SUITE_P(
    Networks, ModelContract,
    ::testing::Values(case_of("LeNet", "lenet", {}, spec_of({1, 28, 28}, 10)),
                      case_of("LeNetOnSmallColours", "lenet", {}, spec_of({3, 12, 13})),
                      case_of("Lstm", "lstm", {{"hidden", 5}}, spec_of({4, 3})),
                      case_of("LstmOfOneStep", "lstm", {}, spec_of({1, 2}, 1)),
                      case_of("Encoder", "encoder", kSmallEncoder, spec_of({6, 3}))),
    CaseName());

std::vector<std::int64_t> sizes(treadle::Model& model, const std::string& parameter) {
  return model.named_parameters()[parameter].sizes().vec();
}

using Sizes = std::vector<std::int64_t>;

TEST(LeNet, HasTheSizesOfThePaper) {
  const auto model = make("lenet")->create(spec_of({1, 28, 28}, 10));

  EXPECT_EQ(sizes(*model, "net.conv1.weight"), (Sizes{6, 1, 5, 5}));
  EXPECT_EQ(sizes(*model, "net.conv2.weight"), (Sizes{16, 6, 5, 5}));
  EXPECT_EQ(sizes(*model, "net.linear1.weight"), (Sizes{120, 400}));
  EXPECT_EQ(sizes(*model, "net.linear2.weight"), (Sizes{84, 120}));
  EXPECT_EQ(sizes(*model, "net.output.weight"), (Sizes{10, 84}));
}

at::Tensor answer(treadle::Model& model, const at::Tensor& input) {
  treadle::Outputs outputs(1);
  treadle::ForwardContext context;
  const std::vector<at::Tensor> inputs{input};
  model.forward(inputs, outputs, context);
  return outputs[0];
}

void set_all(treadle::Model& model, double value) {
  const at::NoGradGuard no_gradients;
  for (at::Tensor& parameter : model.parameters())
    parameter.fill_(value);
}

// By hand, with all weights and biases 1 and an input of 0: both biases of a gate make 2, its
// cell's state adds to it from the second step on. With s the logistic function, step 1: c = s(2)
// tanh(2), h = s(2) tanh(c); step 2: a = 2 + h, c = s(a) c + s(a) tanh(a), h = s(a) tanh(c). The
// output is h + 1.
TEST(Lstm, AnswersFromItsLastState) {
  treadle::ModelSpec spec = spec_of({2, 1}, 1);
  spec.dtype = at::kDouble;
  const auto model = make("lstm", {{"hidden", 1}})->create(spec);
  set_all(*model, 1);
  const auto s = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double c1 = s(2) * std::tanh(2);
  const double a = 2 + s(2) * std::tanh(c1);
  const double c2 = s(a) * c1 + s(a) * std::tanh(a);

  EXPECT_NEAR(answer(*model, at::zeros({1, 2, 1}, at::kDouble)).item<double>(),
              s(a) * std::tanh(c2) + 1, 1e-14);
}

// Without positions an encoder cannot tell an order from another; with them it can.
TEST(Encoder, SeesTheOrderByItsPositionsAlone) {
  treadle::ModelSpec spec = spec_of({6, 3});
  spec.dtype = at::kDouble;
  const treadle::TaskRandom random(3);
  const auto model = make("encoder", kSmallEncoder)->create(spec);
  const at::Tensor forwards = at::linspace(-1, 1, 18, at::kDouble).view({1, 6, 3});
  const at::Tensor backwards = forwards.flip(1);

  EXPECT_FALSE(answer(*model, forwards).allclose(answer(*model, backwards)));
  {
    const at::NoGradGuard no_gradients;
    model->named_parameters()["net.positions"].zero_();
  }
  EXPECT_TRUE(answer(*model, forwards).allclose(answer(*model, backwards)));
}

// The other rows of a batch are not looked at, and all positions of its own are.
TEST(Encoder, LooksAtEveryPosition) {
  treadle::ModelSpec spec = spec_of({6, 3});
  spec.dtype = at::kDouble;
  const treadle::TaskRandom random(3);
  const auto model = make("encoder", kSmallEncoder)->create(spec);
  const at::Tensor before = at::zeros({1, 6, 3}, at::kDouble);
  for (std::int64_t position = 0; position < 6; ++position) {
    at::Tensor changed = before.clone();
    changed[0][position][1] = 1;

    EXPECT_FALSE(answer(*model, changed).allclose(answer(*model, before))) << position;
  }
}

template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const treadle::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Networks, SayWhatTheyCannotTake) {
  treadle::ModelSpec two_inputs = spec_of({4, 3});
  two_inputs.inputs.push_back(two_inputs.inputs[0]);
  treadle::ModelSpec two_outputs = spec_of({4, 3});
  two_outputs.outputs.push_back(two_outputs.outputs[0]);

  EXPECT_EQ(message_of([&] { make("lstm")->create(two_inputs); }),
            "model \"lstm\" takes one input, but the data has 2");
  EXPECT_EQ(message_of([&] { make("encoder")->create(two_outputs); }),
            "model \"encoder\" gives one output, but the loss requires 2");
  EXPECT_EQ(
      message_of([] { make("lstm")->create(spec_of({7})); }),
      "model \"lstm\" takes sequences (steps, features), but a row of \"x\" has the shape (7)");
  EXPECT_EQ(message_of([] {
              make("lenet")->create(spec_of({28, 28}));
            }),
            "model \"lenet\" takes images (channels, height, width), but a row of \"x\" has the "
            "shape (28, 28)");
  EXPECT_EQ(message_of([] {
              make("lenet")->create(spec_of({1, 28, 11}));
            }),
            "model \"lenet\" takes images of 12 x 12 pixels or more, but these have 28 x 11");
}

TEST(Encoder, SaysThatItsHeadsMustDivideItsWidth) {
  EXPECT_EQ(message_of([] {
              make("encoder", {{"width", 10}, {"heads", 4}});
            }),
            "/heads: must divide the width, 10");
}

}  // namespace
