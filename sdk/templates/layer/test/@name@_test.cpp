#include <treadle/sdk.h>

#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <treadle/testing/model/layer_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::LayerFactory> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::LayerFactory>("@name@", std::move(parameters));
}

// What every layer keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, LayerContract,
                         ::testing::Values(LayerCase{"Rows", [] { return make(); }},
                                           LayerCase{"Sequences", [] { return make(); }, {{4, 6}}}),
                         CaseName());

treadle::LayerSpec rows_of(std::int64_t width) {
  treadle::LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.inputs = {treadle::TensorSpec({treadle::TensorSpec::kVaries, width}, at::kDouble)};
  return spec;
}

/// Of one number, with these weights and a bias of 0 for the change, 0 weights for the gate.
double answer(double openness, double weight, double x) {
  const auto layer = make({{"openness", openness}})->create(rows_of(1));
  const at::NoGradGuard no_gradients;
  auto parameters = layer->named_parameters();
  parameters["change.weight"].fill_(weight);
  parameters["change.bias"].zero_();
  parameters["gate.weight"].zero_();
  treadle::LayerContext context;
  const std::vector<at::Tensor> inputs{at::tensor({x}, at::kDouble).view({1, 1})};
  return layer->forward(inputs, context).item<double>();
}

// By hand: sigmoid(0) is a half; (3 · 2 + 2) / 2.
TEST(@Name@, AHalfOpenGateMixesEvenly) {
  EXPECT_DOUBLE_EQ(answer(0, 3, 2), 4);
}

TEST(@Name@, AClosedGateLetsTheInputPass) {
  EXPECT_NEAR(answer(-20, 3, 2), 2, 1e-7);
}

TEST(@Name@, AnOpenGateIsALinearLayer) {
  EXPECT_NEAR(answer(20, 3, 2), 6, 1e-7);
}

TEST(@Name@, SaysWhatItCannotTake) {
  treadle::LayerSpec spec = rows_of(3);
  spec.inputs[0].sizes = {treadle::TensorSpec::kVaries};
  try {
    make()->create(spec);
    FAIL();
  } catch (const treadle::DataError& error) {
    EXPECT_STREQ(error.what(), "takes one input of rows of numbers [B, width], got [B]");
  }
}

}  // namespace
