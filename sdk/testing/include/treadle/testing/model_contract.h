#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/core/model.h>
#include <treadle/core/parameter_arena.h>
#include <treadle/core/task_random.h>
#include <treadle/testing/case_name.h>

/// What every ModelProvider, and the models it builds, must keep. Include in one source file of a
/// test program:
///
///     INSTANTIATE_TEST_SUITE_P(Models, ModelContract, ::testing::Values(
///         ModelCase{"Mlp", [] { return plugin().make<ModelProvider>("mlp"); }}), CaseName());
namespace treadle::testing {

struct ModelCase {
  std::string name;
  std::function<std::unique_ptr<ModelProvider>()> make;
  ModelSpec spec = table_spec();  ///< one the model can take

  /// `features` columns in; outputs of the given widths.
  static ModelSpec table_spec(std::int64_t features = 6, std::vector<std::int64_t> widths = {3}) {
    ModelSpec spec;
    spec.inputs = {{"features", {features}, {}}};
    for (std::int64_t i = 0; i < features; ++i)
      spec.inputs[0].columns.push_back({"x" + std::to_string(i), {}, false});
    for (const std::int64_t width : widths)
      spec.outputs.push_back({"output-" + std::to_string(spec.outputs.size()), width});
    return spec;
  }
};

class ModelContract : public ::testing::TestWithParam<ModelCase> {
 protected:
  static constexpr std::int64_t kRows = 10;

  std::shared_ptr<Model> create(std::uint64_t seed, at::ScalarType dtype = at::kDouble) const {
    const TaskRandom random(seed);
    ModelSpec spec = GetParam().spec;
    spec.dtype = dtype;
    return provider_->create(spec);
  }

  std::vector<at::Tensor> random_inputs(at::ScalarType dtype = at::kDouble) const {
    const TaskRandom random(99);
    std::vector<at::Tensor> inputs;
    for (const PortSpec& port : GetParam().spec.inputs) {
      std::vector<std::int64_t> sizes{kRows};
      sizes.insert(sizes.end(), port.shape.begin(), port.shape.end());
      inputs.push_back(at::randn(sizes, dtype));
    }
    return inputs;
  }

  Outputs run(Model& model, const std::vector<at::Tensor>& inputs, std::uint64_t seed = 1) const {
    const TaskRandom random(seed);
    Outputs outputs(GetParam().spec.outputs.size());
    ForwardContext context;
    model.forward(inputs, outputs, context);
    return outputs;
  }

  static bool same_bits(const Outputs& a, const Outputs& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
  }

  std::unique_ptr<ModelProvider> provider_ = GetParam().make();
};

TEST_P(ModelContract, GivesOutputsOfTheAskedWidthsAndDtype) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto outputs = run(*create(1, dtype), random_inputs(dtype));

    ASSERT_EQ(outputs.size(), GetParam().spec.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i].sizes(),
                (std::vector<std::int64_t>{kRows, GetParam().spec.outputs[i].width}));
      EXPECT_EQ(outputs[i].scalar_type(), dtype);
    }
  }
}

TEST_P(ModelContract, ParametersHaveTheSpecsDtype) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const auto& parameter : create(1, dtype)->named_parameters())
      EXPECT_EQ(parameter.value().scalar_type(), dtype) << parameter.key();
  }
}

TEST_P(ModelContract, HasTheSameStructureEveryTime) {
  const auto first = create(1)->named_parameters();
  const auto second = create(2)->named_parameters();

  ASSERT_EQ(first.keys(), second.keys());
  for (const auto& parameter : first)
    EXPECT_EQ(parameter.value().sizes(), second[parameter.key()].sizes()) << parameter.key();
}

TEST_P(ModelContract, DrawsItsWeightsFromTheTasksStream) {
  const auto same = create(1)->parameters();
  const auto again = create(1)->parameters();
  const auto other = create(2)->parameters();

  EXPECT_TRUE(same_bits(same, again));
  EXPECT_FALSE(same_bits(same, other));
}

TEST_P(ModelContract, EveryParameterGetsAGradient) {
  const auto model = create(1);
  at::Tensor sum;
  for (const at::Tensor& output : run(*model, random_inputs())) {
    const at::Tensor part = output.square().sum();
    sum = sum.defined() ? sum.add(part) : part;
  }

  sum.backward();

  for (const auto& parameter : model->named_parameters())
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
}

TEST_P(ModelContract, EvaluationIsAFunctionOfTheInputs) {
  const auto model = create(1);
  model->eval();
  const at::NoGradGuard no_gradients;
  const auto inputs = random_inputs();

  const auto all = run(*model, inputs, 1);

  EXPECT_TRUE(same_bits(all, run(*model, inputs, 2)));
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::vector<at::Tensor> alone;
    for (const at::Tensor& input : inputs)
      alone.push_back(input.slice(0, row, row + 1));
    const auto outputs = run(*model, alone);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      EXPECT_TRUE(outputs[i].allclose(all[i].slice(0, row, row + 1))) << "row " << row;
  }
}

TEST_P(ModelContract, LeavesItsInputsAlone) {
  const auto inputs = random_inputs();
  const auto model = create(1);

  run(*model, inputs);

  EXPECT_TRUE(same_bits(inputs, random_inputs()));
}

TEST_P(ModelContract, WorksTheSameFromAnArena) {
  const auto plain = create(1);
  const auto adopted = create(1);
  plain->eval();
  adopted->eval();
  const ParameterArena arena(*adopted);

  EXPECT_TRUE(same_bits(run(*plain, random_inputs()), run(*adopted, random_inputs())));
}

}  // namespace treadle::testing
