#include <treadle/sdk.h>

#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <treadle/testing/model/model_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::ModelProvider> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::ModelProvider>("@name@", std::move(parameters));
}

ModelCase case_of(std::string name, nlohmann::json parameters = {},
                  treadle::ModelSpec spec = ModelCase::table_spec()) {
  const bool drops = parameters.contains("dropout");
  return {std::move(name), [parameters] { return make(parameters); }, std::move(spec), drops};
}

treadle::ModelSpec image_spec() {
  treadle::ModelSpec spec = ModelCase::table_spec();
  spec.inputs = {{"image", {1, 4, 3}, {}}};
  return spec;
}

// What every model keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(
    @Name@, ModelContract,
    ::testing::Values(case_of("Defaults"), case_of("Dropout", {{"dropout", 0.5}}),
                      case_of("TwoOutputs", {{"blocks", 1}}, ModelCase::table_spec(6, {3, 2})),
                      case_of("Images", {}, image_spec())),
    CaseName());

/// One column in, one number out, width 2, one block; input weights 2 and 1, output weights 1 and
/// 1, everything else 0.
std::shared_ptr<treadle::Model> small_model() {
  treadle::ModelSpec spec = ModelCase::table_spec(1, {1});
  spec.dtype = at::kDouble;
  auto model = make({{"width", 2}, {"blocks", 1}})->create(spec);
  const at::NoGradGuard no_gradients;
  for (at::Tensor& parameter : model->parameters())
    parameter.zero_();
  auto parameters = model->named_parameters();
  parameters["input.weight"].copy_(at::tensor({2.0, 1.0}, at::kDouble).view({2, 1}));
  parameters["output.weight"].fill_(1);
  return model;
}

double answer(treadle::Model& model, double x) {
  treadle::Outputs outputs(1);
  treadle::ForwardContext context;
  const std::vector<at::Tensor> inputs{at::tensor({x}, at::kDouble).view({1, 1})};
  model.forward(inputs, outputs, context);
  return outputs[0].item<double>();
}

// By hand: (2x, x) goes past the block, whose layers are 0; 2x + x.
TEST(@Name@, ABlockOfZerosPassesItsInputOn) {
  EXPECT_DOUBLE_EQ(answer(*small_model(), 5), 15);
}

// By hand: the lower layer's bias adds 1 and 10.
TEST(@Name@, ABlockAddsToItsInput) {
  const auto model = small_model();
  const at::NoGradGuard no_gradients;
  auto parameters = model->named_parameters();
  parameters["block0.lower.bias"].copy_(at::tensor({1.0, 10.0}, at::kDouble));

  EXPECT_DOUBLE_EQ(answer(*model, 5), 26);
}

// By hand: layer norm makes (1, -1) of (2, 1) but for its epsilon, relu (1, 0) of that; 3 + 1.
TEST(@Name@, ABlockIsNormLayerReluLayer) {
  const auto model = small_model();
  const at::NoGradGuard no_gradients;
  auto parameters = model->named_parameters();
  parameters["block0.upper.weight"].copy_(at::eye(2, at::kDouble));
  parameters["block0.lower.weight"].copy_(at::eye(2, at::kDouble));

  EXPECT_NEAR(answer(*model, 1), 4, 1e-4);
}

std::string message_of(treadle::ModelSpec spec) {
  try {
    make()->create(spec);
  } catch (const treadle::DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(@Name@, SaysWhichColumnsItCannotTake) {
  treadle::ModelSpec categories = ModelCase::table_spec();
  categories.inputs[0].columns[2].categories = {"blue", "red"};
  treadle::ModelSpec missing = ModelCase::table_spec();
  missing.inputs[0].columns[3].may_be_missing = true;

  EXPECT_EQ(message_of(categories),
            "model \"@name@\": column \"x2\" is a category; add {\"use\": \"one_hot\"} to "
            "transforms");
  EXPECT_EQ(message_of(missing),
            "model \"@name@\": column \"x3\" has missing values; add {\"use\": \"impute\"} to "
            "transforms");
}

}  // namespace
