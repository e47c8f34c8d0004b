#include <treadle/testing/model/model_contract.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/core/components/module_state.h>
#include <treadle/core/model/model.h>
#include <treadle/core/model/weights.h>
#include <treadle/core/training/parameter_arena.h>
#include <treadle/engine/statistics_refresh.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/gradient_check.h>
#include <treadle/testing/support/tensor_comparison.h>
#include <treadle/testing/support/test_device.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class ModelClaims : public ::testing::WithParamInterface<ModelCase> {
 protected:
  static constexpr std::int64_t kRows = 10;
  static constexpr std::int64_t kLongest = 5;  ///< of sizes that vary

  std::shared_ptr<Model> create(std::uint64_t seed, at::ScalarType dtype = at::kDouble) const {
    const TaskRandom random(seed);
    ModelSpec spec = GetParam().spec;
    spec.dtype = dtype;
    return provider_->create(spec);
  }

  std::vector<at::Tensor> random_inputs(at::ScalarType dtype = at::kDouble) const {
    const TaskRandom random(99);
    std::vector<at::Tensor> inputs;
    for (const PortSpec& port : GetParam().spec.inputs)
      inputs.push_back(random_input(port, dtype));
    return inputs;
  }

  static at::Tensor random_input(const PortSpec& port, at::ScalarType dtype) {
    std::vector<std::int64_t> sizes{kRows};
    for (const std::int64_t size : port.shape)
      sizes.push_back(size == kVaries ? kLongest : size);
    const at::TensorOptions indices(at::kLong);
    switch (port.role) {
      case Role::kFeatures:
      case Role::kImage:
        return at::randn(sizes, dtype);
      case Role::kCategories:
        return random_categories(port, sizes);
      case Role::kTokens:
        return at::randint(port.vocabulary_size, sizes, indices);
      case Role::kLengths:
        return at::randint(1, kLongest + 1, sizes, indices);
      case Role::kMask:
        return at::randint(2, sizes, indices).to(at::kBool);
      case Role::kSegments:
        return at::zeros(sizes, indices);
    }
    return {};
  }

  static at::Tensor random_categories(const PortSpec& port,
                                      const std::vector<std::int64_t>& sizes) {
    std::vector<at::Tensor> columns;
    for (const Column& column : port.columns) {
      columns.push_back(at::randint(static_cast<std::int64_t>(column.categories.size()), {sizes[0]},
                                    at::TensorOptions(at::kLong)));
    }
    return at::stack(columns, 1);
  }

  /// Inputs that have slopes.
  static bool is_of_numbers(const at::Tensor& input) { return input.is_floating_point(); }

  Outputs run(Model& model, const std::vector<at::Tensor>& inputs, std::uint64_t seed = 1) const {
    const TaskRandom random(seed);
    Outputs outputs(GetParam().spec.outputs.size());
    ForwardContext context;
    model.forward(inputs, outputs, context);
    return outputs;
  }

  static StateDict state_of(const Model& model) { return module_state(model).snapshot(); }

  /// The memory of all parameters and buffers.
  static std::set<const void*> memory_of(const Model& model) {
    std::set<const void*> memory;
    const StateDict state = module_state(model);
    for (const auto& [name, tensor] : state.tensors()) {
      if (tensor.numel() > 0)
        memory.insert(tensor.data_ptr());
    }
    return memory;
  }

  std::unique_ptr<ModelProvider> provider_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Model)

CLAIM(Model, GivesOutputsOfTheAskedShapesAndDtype) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto outputs = run(*create(1, dtype), random_inputs(dtype));

    ASSERT_EQ(outputs.size(), GetParam().spec.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      std::vector<std::int64_t> sizes{kRows};
      for (const std::int64_t size : GetParam().spec.outputs[i].shape)
        sizes.push_back(size == kVaries ? kLongest : size);
      EXPECT_EQ(outputs[i].sizes(), sizes);
      EXPECT_EQ(outputs[i].scalar_type(), dtype);
    }
  }
}

CLAIM(Model, ParametersHaveTheSpecsDtype) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const auto& parameter : create(1, dtype)->named_parameters())
      EXPECT_EQ(parameter.value().scalar_type(), dtype) << parameter.key();
  }
}

CLAIM(Model, FloatingBuffersHaveTheSpecsDtype) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const auto& buffer : create(1, dtype)->named_buffers()) {
      if (buffer.value().is_floating_point()) {
        EXPECT_EQ(buffer.value().scalar_type(), dtype) << buffer.key();
      }
    }
  }
}

CLAIM(Model, HasTheSameStructureEveryTime) {
  const auto expect_same_shapes = [](const auto& first, const auto& second) {
    ASSERT_EQ(first.keys(), second.keys());
    for (const auto& item : first)
      EXPECT_EQ(item.value().sizes(), second[item.key()].sizes()) << item.key();
  };
  const auto model = create(1);
  const auto used = create(2, at::kFloat);
  run(*used, random_inputs(at::kFloat));
  const auto other = provider_->create(GetParam().spec);

  for (const Model* another : {used.get(), other.get()}) {
    expect_same_shapes(model->named_parameters(), another->named_parameters());
    expect_same_shapes(model->named_buffers(), another->named_buffers());
  }
  EXPECT_FALSE(model->parameters().empty());
}

CLAIM(Model, EachModelHasMemoryOfItsOwn) {
  const auto one = create(1);
  const auto other = create(1);
  const StateDict before = state_of(*other);
  const std::set<const void*> of_other = memory_of(*other);

  for (const void* memory : memory_of(*one))
    EXPECT_EQ(of_other.count(memory), 0U);
  {
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& parameter : one->parameters())
      parameter.fill_(0.25);
  }
  run(*one, random_inputs());

  const StateDict after = state_of(*other);
  for (const auto& [name, tensor] : after.tensors())
    EXPECT_TRUE(values_match(tensor, before.tensor(name))) << name;
}

CLAIM(Model, StateRoundTripGivesTheSameBits) {
  const auto original = create(1);
  run(*original, random_inputs(), 7);  // buffers learn
  const auto loaded = create(2);

  load_module_state(*loaded, state_of(*original));

  for (const bool training : {false, true}) {
    original->train(training);
    loaded->train(training);
    EXPECT_TRUE(same_bits(run(*loaded, random_inputs(), 3), run(*original, random_inputs(), 3)))
        << (training ? "in training" : "in evaluation");
  }
}

CLAIM(Model, DeclaresWhatTrainingLeavesInItsBuffers) {
  const auto model = create(1);
  std::vector<at::Tensor> before;
  for (const at::Tensor& buffer : model->buffers())
    before.push_back(buffer.clone());

  run(*model, random_inputs());

  const std::vector<at::Tensor> after = model->buffers();
  const bool changes = !std::equal(
      before.begin(), before.end(), after.begin(), after.end(),
      [](const at::Tensor& one, const at::Tensor& other) { return at::equal(one, other); });
  EXPECT_TRUE(!changes || engine::gathers_statistics(*model))
      << "a training forward changes its buffers, and no module of it derives from "
         "GathersStatistics: averages of weights would be used with statistics of others";
}

CLAIM(Model, TrainingDiffersFromEvaluationOnlyIfItMay) {
  const auto model = create(1);
  const at::NoGradGuard no_gradients;
  const auto inputs = random_inputs();

  const auto trained = run(*model, inputs);
  EXPECT_TRUE(same_bits(run(*model, inputs), trained)) << "with the same random stream";
  model->eval();

  EXPECT_EQ(same_bits(run(*model, inputs), trained), !GetParam().training_differs);
}

CLAIM(Model, FiniteInputsGiveNumbers) {
  const auto model = create(1);
  for (const bool training : {true, false}) {
    model->train(training);
    for (const double size : {0.0, 1e-20, 1.0, 1e3}) {
      std::vector<at::Tensor> inputs;
      for (const at::Tensor& input : random_inputs())
        inputs.push_back(
            is_of_numbers(input) && GetParam().differentiable_in_inputs ? input.mul(size) : input);
      for (const at::Tensor& output : run(*model, inputs))
        EXPECT_TRUE(output.isfinite().all().item<bool>()) << "inputs of about " << size;
    }
  }
}

CLAIM(Model, GradientsAreTheSlopesOfTheOutputs) {
  const auto model = create(1);
  const auto inputs = random_inputs();
  std::vector<Differentiated> differentiated = parameters_of(*model);
  if (GetParam().differentiable_in_inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (is_of_numbers(inputs[i]))
        differentiated.push_back({"input " + std::to_string(i), inputs[i]});
    }
  }
  for (const bool training : {true, false}) {
    model->train(training);
    EXPECT_TRUE(gradients_match([&] { return weighted_sum(run(*model, inputs)); }, differentiated,
                                {.most_elements = 20}))
        << (training ? "in training" : "in evaluation");
  }
}

CLAIM(Model, SeveralThreadsMayEvaluateAtOnce) {
  const auto model = create(1);
  model->eval();
  const auto inputs = random_inputs();
  const auto expected = run(*model, inputs);
  constexpr std::size_t kThreads = 4;
  std::vector<Outputs> results(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    const at::NoGradGuard no_gradients;
    for (int repeat = 0; repeat < 20; ++repeat)
      results[thread] = run(*model, inputs);
  });

  EXPECT_EQ(errors, kNoErrors);
  for (const Outputs& result : results)
    EXPECT_TRUE(same_bits(result, expected));
}

CLAIM(Model, DrawsItsWeightsFromTheTasksStream) {
  const auto same = create(1)->parameters();
  const auto again = create(1)->parameters();
  const auto other = create(2)->parameters();

  EXPECT_TRUE(same_bits(same, again));
  EXPECT_FALSE(same_bits(same, other));
}

CLAIM(Model, EveryParameterGetsAGradient) {
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

CLAIM(Model, EvaluationIsAFunctionOfTheInputs) {
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

CLAIM(Model, LeavesItsInputsAlone) {
  const auto inputs = random_inputs();
  const auto model = create(1);

  run(*model, inputs);

  EXPECT_TRUE(same_bits(inputs, random_inputs()));
}

CLAIM(Model, WorksTheSameFromAnArena) {
  const auto plain = create(1);
  const auto adopted = create(1);
  plain->eval();
  adopted->eval();
  const ParameterArena arena(*adopted);

  EXPECT_TRUE(same_bits(run(*plain, random_inputs()), run(*adopted, random_inputs())));
}

CLAIM(Model, ForwardAndBackwardAgreeOnADevice) {
  const TestDevice* const device = TestDevice::chosen();
  if (device == nullptr)
    GTEST_SKIP() << TestDevice::kNone;
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const bool training : {true, false}) {
      if (training && GetParam().training_differs && !device->draws_as_a_cpu())
        continue;
      SCOPED_TRACE(std::string(training ? "in training" : "in evaluation") +
                   (dtype == at::kFloat ? ", float32" : ", float64"));
      const auto passed = [&](c10::Device where) {
        const auto model = create(1, dtype);
        model->train(training);
        const auto forward = [&](const std::vector<at::Tensor>& inputs) {
          return run(*model, inputs);
        };
        return passed_on(where, *model, random_inputs(dtype), forward, /*has_slopes=*/true);
      };

      expect_results(passed(device->device()), passed(c10::kCPU), device->closeness(dtype));
    }
  }
}

}  // namespace treadle::testing
