#include <treadle/testing/model/layer_contract.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <treadle/core/components/module_state.h>
#include <treadle/core/components/plugin_call.h>
#include <treadle/core/model/abilities/acts_on_positions.h>
#include <treadle/core/model/abilities/adds_losses.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/weights.h>
#include <treadle/core/training/parameter_arena.h>
#include <treadle/plan/folding.h>
#include <treadle/plan/lowerable.h>
#include <treadle/tensor/autocast.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/graph/plan_interpreter.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/autograd_depth.h>
#include <treadle/testing/support/gradient_check.h>
#include <treadle/testing/support/tensor_comparison.h>
#include <treadle/testing/support/test_device.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class LayerClaims : public ::testing::WithParamInterface<LayerCase> {
 protected:
  static constexpr std::int64_t kRows = 5;
  static constexpr std::int64_t kLongest = 5;

  static LayerSpec spec(at::ScalarType dtype = at::kDouble,
                        const std::vector<std::vector<std::int64_t>>& inputs = GetParam().inputs) {
    LayerSpec spec;
    spec.dtype = dtype;
    spec.is_step_by_step = GetParam().is_step_by_step;
    spec.outputs = {{"output", output_shape()}};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<std::int64_t>& shape = inputs[i];
      if (shape.empty() && i > 0 && role_of(i) == Role::kFeatures) {
        spec.inputs.push_back(TensorSpec::absent());
        continue;
      }
      std::vector<std::int64_t> sizes{TensorSpec::kVaries};
      sizes.insert(sizes.end(), shape.begin(), shape.end());
      spec.inputs.emplace_back(std::move(sizes), dtype_of(role_of(i), dtype));
    }
    return spec;
  }

  static std::vector<std::int64_t> output_shape() {
    std::vector<std::int64_t> shape = GetParam().output_positions;
    shape.push_back(GetParam().output_width);
    return shape;
  }

  static Role role_of(std::size_t input) {
    if (input < GetParam().roles.size())
      return GetParam().roles[input];
    return input == 0 && GetParam().categories > 0 ? Role::kCategories : Role::kFeatures;
  }

  static at::ScalarType dtype_of(Role role, at::ScalarType of_numbers) {
    if (role == Role::kFeatures || role == Role::kImage)
      return of_numbers;
    return role == Role::kMask ? at::kBool : at::kLong;
  }

  std::shared_ptr<Layer> create(std::uint64_t seed, at::ScalarType dtype = at::kDouble) const {
    const TaskRandom random(seed);
    return factory_->create(spec(dtype));
  }

  static std::vector<at::Tensor> random_inputs(std::int64_t rows = kRows,
                                               at::ScalarType dtype = at::kDouble) {
    return random_inputs(rows, spec(dtype));
  }

  static std::vector<at::Tensor> random_inputs(std::int64_t rows, const LayerSpec& asked) {
    const TaskRandom random(99);
    std::vector<at::Tensor> inputs;
    for (std::size_t i = 0; i < asked.inputs.size(); ++i) {
      if (asked.inputs[i].is_absent()) {
        inputs.emplace_back();
        continue;
      }
      std::vector<std::int64_t> sizes = asked.inputs[i].sizes;
      std::replace(sizes.begin() + 1, sizes.end(), TensorSpec::kVaries, kLongest);
      sizes[0] = rows;
      inputs.push_back(random_input(role_of(i), sizes, asked.dtype));
    }
    return inputs;
  }

  static at::Tensor random_input(Role role, const std::vector<std::int64_t>& sizes,
                                 at::ScalarType dtype) {
    const at::TensorOptions indices(at::kLong);
    switch (role) {
      case Role::kFeatures:
      case Role::kImage:
        return at::randn(sizes, dtype);
      case Role::kLengths:
        return at::randint(1, kLongest + 1, sizes, indices);
      case Role::kMask:
        return at::randint(2, sizes, indices).to(at::kBool);
      default:
        return at::randint(std::max<std::int64_t>(GetParam().categories, 1), sizes, indices);
    }
  }

  /// Inputs that have slopes.
  static bool is_of_numbers(const at::Tensor& input) {
    return input.defined() && input.is_floating_point();
  }

  static at::Tensor run(Layer& layer, const std::vector<at::Tensor>& inputs, std::uint64_t seed = 1,
                        bool truncates_bptt = false) {
    const TaskRandom random(seed);
    LayerContext context;
    context.set_truncated_bptt(truncates_bptt);
    return layer.forward(inputs, context);
  }

  /// A layer's buffers as they are now, for what is run several times: a forward of a training may
  /// leave something in them (the vectors of a power iteration).
  class Buffers {
   public:
    explicit Buffers(const Layer& layer) : buffers_(layer.buffers()) {
      for (const at::Tensor& buffer : buffers_)
        kept_.push_back(buffer.clone());
    }
    void restore() const {
      const at::NoGradGuard no_gradients;
      for (std::size_t i = 0; i < buffers_.size(); ++i)
        buffers_[i].copy_(kept_[i]);
    }

   private:
    std::vector<at::Tensor> buffers_;
    std::vector<at::Tensor> kept_;
  };

  /// As run(), from these buffers.
  static at::Tensor run_from(const Buffers& buffers, Layer& layer,
                             const std::vector<at::Tensor>& inputs, std::uint64_t seed = 1,
                             bool truncates_bptt = false) {
    buffers.restore();
    return run(layer, inputs, seed, truncates_bptt);
  }

  /// What it returns, then the further outputs that it names. `requested`: which of those.
  static std::vector<at::Tensor> run_all(Layer& layer, const std::vector<at::Tensor>& inputs,
                                         const std::vector<std::string>& requested) {
    const TaskRandom random(1);
    LayerContext context;
    context.request_outputs(requested);
    std::vector<at::Tensor> outputs{layer.forward(inputs, context)};
    for (at::Tensor& output : context.take_outputs())
      outputs.push_back(std::move(output));
    return outputs;
  }

  /// Of the outputs after the first.
  static std::vector<std::string> output_names(const Layer& layer) {
    const auto* names = dynamic_cast<const NamesOutputs*>(&layer);
    return names == nullptr ? std::vector<std::string>() : names->output_names();
  }

  /// Of a layer's parameters and of the inputs that have slopes; zeros where there is none.
  struct Slopes {
    std::vector<std::string> names;
    std::vector<at::Tensor> gradients;
  };

  template <typename Forward>
  static Slopes slopes_of(const Layer& layer, std::vector<at::Tensor> inputs,
                          const Forward& forward) {
    std::vector<Differentiated> by = parameters_of(layer);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (is_of_numbers(inputs[i])) {
        inputs[i] = inputs[i].detach().set_requires_grad(true);
        by.push_back({"input " + std::to_string(i), inputs[i]});
      }
    }
    const TaskRandom random(1);
    if (const at::Tensor result = forward(inputs); result.requires_grad())
      weighted_sum({result}).backward();
    Slopes slopes;
    for (const Differentiated& one : by) {
      slopes.names.push_back(one.name);
      const at::Tensor& gradient = one.tensor.grad();
      slopes.gradients.push_back(gradient.defined() ? gradient : at::zeros_like(one.tensor));
      one.tensor.mutable_grad() = at::Tensor();
    }
    return slopes;
  }

  static ::testing::AssertionResult slopes_match(const Slopes& got, const Slopes& expected) {
    for (std::size_t i = 0; i < expected.names.size(); ++i) {
      if (auto result = values_match(got.gradients[i], expected.gradients[i], kRounding); !result)
        return result << ", in the gradient of \"" << expected.names[i] << "\"";
    }
    return ::testing::AssertionSuccess();
  }

  /// Of sums of about ten numbers of about 1, in float64.
  static constexpr Closeness kRounding{.relative = 1e-10, .absolute = 1e-12};

  static StateDict state_of(const Layer& layer) { return module_state(layer).snapshot(); }

  std::unique_ptr<LayerFactory> factory_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Layer)

CLAIM(Layer, GivesWhatItAnnounces) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto layer = create(1, dtype);
    const TensorSpec announced = layer->result(spec(dtype).inputs);
    for (const std::int64_t rows : {1, 4}) {
      layer->eval();
      const at::Tensor given = run(*layer, random_inputs(rows, dtype));
      EXPECT_EQ(given.scalar_type(), announced.dtype);
      ASSERT_EQ(given.dim(), static_cast<std::int64_t>(announced.sizes.size()));
      for (std::size_t i = 0; i < announced.sizes.size(); ++i) {
        if (announced.sizes[i] != TensorSpec::kVaries) {
          EXPECT_EQ(given.size(static_cast<std::int64_t>(i)), announced.sizes[i])
              << "dimension " << i;
        }
      }
    }
  }
}

CLAIM(Layer, AnnouncingChangesNothing) {
  const auto layer = create(1);
  layer->train();
  const StateDict before = state_of(*layer);

  layer->result(spec().inputs);

  EXPECT_TRUE(layer->is_training());
  const StateDict after = state_of(*layer);
  for (const auto& [name, tensor] : before.tensors())
    EXPECT_TRUE(values_match(after.tensor(name), tensor)) << name;
}

CLAIM(Layer, ParametersAndFloatingBuffersHaveTheSpecsDtype) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto layer = create(1, dtype);
    for (const auto& parameter : layer->named_parameters())
      EXPECT_EQ(parameter.value().scalar_type(), dtype) << parameter.key();
    for (const auto& buffer : layer->named_buffers()) {
      if (buffer.value().is_floating_point()) {
        EXPECT_EQ(buffer.value().scalar_type(), dtype) << buffer.key();
      }
    }
  }
}

// Saved weights are loaded in other precisions, too.
CLAIM(Layer, BuffersThatAreFiniteAreSoInBfloat16) {
  const auto layer = create(1, at::kFloat);
  for (const auto& buffer : layer->named_buffers()) {
    if (buffer.value().is_floating_point()) {
      EXPECT_TRUE(at::equal(buffer.value().to(at::kBFloat16).isfinite(), buffer.value().isfinite()))
          << buffer.key() << ": bfloat16 has no numbers beyond 3.39e38";
    }
  }
}

CLAIM(Layer, HasTheSameStructureEveryTime) {
  const auto expect_same_shapes = [](const auto& first, const auto& second) {
    ASSERT_EQ(first.keys(), second.keys());
    for (const auto& item : first)
      EXPECT_EQ(item.value().sizes(), second[item.key()].sizes()) << item.key();
  };
  const auto layer = create(1);
  const auto used = create(2, at::kFloat);
  run(*used, random_inputs(kRows, at::kFloat));

  expect_same_shapes(layer->named_parameters(), used->named_parameters());
  expect_same_shapes(layer->named_buffers(), used->named_buffers());
}

CLAIM(Layer, EachLayerHasMemoryOfItsOwn) {
  const auto one = create(1);
  const auto other = create(1);
  const StateDict before = state_of(*other);
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

CLAIM(Layer, StateRoundTripGivesTheSameBits) {
  const auto original = create(1);
  run(*original, random_inputs(), 7);  // buffers learn
  const auto loaded = create(2);

  load_module_state(*loaded, state_of(*original));

  for (const bool training : {false, true}) {
    original->train(training);
    loaded->train(training);
    EXPECT_TRUE(at::equal(run(*loaded, random_inputs(), 3), run(*original, random_inputs(), 3)))
        << (training ? "in training" : "in evaluation");
  }
}

CLAIM(Layer, GathersAnewWhatTrainingLeavesInItsBuffers) {
  const auto inputs = random_inputs();
  const auto buffers_of = [](const Layer& layer) {
    std::vector<at::Tensor> copies;
    for (const at::Tensor& buffer : layer.buffers())
      copies.push_back(buffer.clone());
    return copies;
  };
  const auto are_equal = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const at::Tensor& one, const at::Tensor& other) { return at::equal(one, other); });
  };
  const auto fresh = create(1);
  const auto used = create(1);
  // Also those of layers that it is made of.
  const auto gathering_in = [](Layer& layer) {
    std::vector<GathersStatistics*> found;
    for (const auto& module : layer.modules()) {
      if (auto* const gathers = dynamic_cast<GathersStatistics*>(module.get()))
        found.push_back(gathers);
    }
    return found;
  };
  const auto before = buffers_of(*used);
  run(*used, inputs);
  const bool changes = !are_equal(buffers_of(*used), before);
  EXPECT_TRUE(!changes || !gathering_in(*used).empty())
      << "a training forward changes its buffers, and it does not derive from GathersStatistics: "
         "averages of weights would be used with statistics of others";
  if (gathering_in(*used).empty())
    return;

  for (Layer* const layer : {fresh.get(), used.get()}) {
    for (GathersStatistics* const gathers : gathering_in(*layer))
      gathers->begin_gathering();
    for (const std::uint64_t seed : {1U, 2U, 3U})
      run(*layer, inputs, seed);
    for (GathersStatistics* const gathers : gathering_in(*layer))
      gathers->end_gathering();
  }
  EXPECT_TRUE(are_equal(buffers_of(*used), buffers_of(*fresh)))
      << "what was there before is a part of what was gathered";
  // Afterwards it trains as one that never gathered.
  const auto ordinary = create(1);
  load_module_state(*ordinary, state_of(*used));
  const auto others = random_inputs(kRows + 1);
  run(*used, others);
  run(*ordinary, others);
  EXPECT_TRUE(are_equal(buffers_of(*used), buffers_of(*ordinary))) << "in training afterwards";
}

CLAIM(Layer, DrawsItsWeightsFromTheTasksStream) {
  const auto same = create(1)->parameters();
  const auto again = create(1)->parameters();

  EXPECT_TRUE(same_bits(same, again));
}

CLAIM(Layer, TrainingDiffersFromEvaluationOnlyIfItMay) {
  const auto layer = create(1);
  const Buffers buffers(*layer);
  const at::NoGradGuard no_gradients;
  const auto inputs = random_inputs();

  const at::Tensor trained = run_from(buffers, *layer, inputs);
  EXPECT_TRUE(at::equal(run_from(buffers, *layer, inputs), trained))
      << "with the same random stream";
  layer->eval();

  EXPECT_EQ(at::equal(run_from(buffers, *layer, inputs), trained), !GetParam().training_differs);
}

CLAIM(Layer, EvaluationIsAFunctionOfTheInputs) {
  const auto layer = create(1);
  layer->eval();
  const at::NoGradGuard no_gradients;
  const auto inputs = random_inputs();

  const at::Tensor all = run(*layer, inputs, 1);

  EXPECT_TRUE(at::equal(all, run(*layer, inputs, 2)));
  if (!GetParam().works_row_by_row)
    return;
  ASSERT_EQ(all.size(0), kRows);
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::vector<at::Tensor> alone;
    for (const at::Tensor& input : inputs)
      alone.push_back(input.defined() ? input.slice(0, row, row + 1) : input);
    EXPECT_TRUE(run(*layer, alone).allclose(all.slice(0, row, row + 1))) << "row " << row;
  }
}

CLAIM(Layer, GradientsAreTheSlopesOfTheResult) {
  if (!GetParam().is_differentiable)
    return;
  const auto layer = create(1);
  const Buffers buffers(*layer);
  const auto inputs = random_inputs();
  std::vector<Differentiated> differentiated = parameters_of(*layer);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_of_numbers(inputs[i]))
      differentiated.push_back({"input " + std::to_string(i), inputs[i]});
  }
  for (const bool training : {true, false}) {
    layer->train(training);
    EXPECT_TRUE(gradients_match([&] { return weighted_sum({run_from(buffers, *layer, inputs)}); },
                                differentiated, {.most_elements = 20}))
        << (training ? "in training" : "in evaluation");
  }
}

// "bf16-mixed": what comes from a matrix product before has 16 bits, parameters have 32.
CLAIM(Layer, ComputesUnderAutocast) {
  const auto layer = create(1, at::kFloat);
  layer->train();
  const auto inputs = random_inputs(kRows, at::kFloat);
  std::vector<at::Tensor> rounded = inputs;
  std::vector<at::Tensor> narrow = inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_of_numbers(inputs[i])) {
      narrow[i] = inputs[i].to(at::kBFloat16).set_requires_grad(GetParam().is_differentiable);
      rounded[i] = narrow[i].detach().to(at::kFloat);
    }
  }
  const at::Tensor expected = run(*layer, rounded).detach();
  const AutocastScope autocast(Autocast::on(c10::kCPU, at::kBFloat16));
  try {
    for (const std::vector<at::Tensor>& given : {inputs, narrow}) {
      const at::Tensor result = run(*layer, given);
      EXPECT_EQ(result.sizes(), expected.sizes());
      if (!result.is_floating_point())
        return;
      EXPECT_TRUE(result.isfinite().all().item<bool>());
      // Random numbers are drawn otherwise in another dtype, and a choice may fall otherwise.
      if (GetParam().is_differentiable && !GetParam().training_differs) {
        const double largest = expected.abs().max().item<double>();
        EXPECT_LE((result.to(at::kFloat) - expected).abs().max().item<double>(), 0.06 * largest);
      }
      if (result.requires_grad())
        result.to(at::kFloat).square().sum().backward();
    }
  } catch (const c10::Error& error) {
    EXPECT_TRUE(is_missing_operator(error.msg()))
        << words_of(error) << "\nIn mixed precision, matrix products return bfloat16 while inputs "
        << "and parameters may have float32: convert them before an operator that takes one dtype.";
  }
}

// "bf16". An operator that libtorch does not have in bfloat16 is no fault of the layer.
CLAIM(Layer, ComputesInBfloat16) {
  const auto layer = create(1, at::kBFloat16);
  layer->train();
  auto inputs = random_inputs(kRows, at::kBFloat16);
  for (at::Tensor& input : inputs) {
    if (is_of_numbers(input))
      input.set_requires_grad(GetParam().is_differentiable);
  }
  try {
    const at::Tensor result = run(*layer, inputs);
    if (result.is_floating_point()) {
      EXPECT_EQ(result.scalar_type(), at::kBFloat16);
      EXPECT_TRUE(result.isfinite().all().item<bool>());
    }
    if (result.requires_grad())
      result.square().sum().backward();
  } catch (const c10::Error& error) {
    EXPECT_TRUE(is_missing_operator(error.msg())) << words_of(error);
  }
}

CLAIM(Layer, EveryParameterGetsAGradient) {
  if (!GetParam().is_differentiable)
    return;
  const auto layer = create(1);
  if (layer->parameters().empty())
    return;

  run(*layer, random_inputs()).square().sum().backward();

  for (const auto& parameter : layer->named_parameters())
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
}

CLAIM(Layer, APlanOfItGivesTheSameBits) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const auto& [training, one_step] :
         {std::pair(true, false), std::pair(true, true), std::pair(false, false)}) {
      SCOPED_TRACE(std::string(training ? "in training" : "in evaluation") +
                   (one_step ? ", through one step of time" : "") +
                   (dtype == at::kFloat ? ", float32" : ", float64"));
      const auto layer = create(1, dtype);
      const auto planned = create(1, dtype);
      layer->train(training);
      planned->train(training);
      std::vector<at::Tensor> inputs = random_inputs(kRows, dtype);
      const auto is_absent = [](const at::Tensor& input) { return !input.defined(); };
      const auto* says = dynamic_cast<const Lowerable*>(planned.get());
      if (says == nullptr || std::any_of(inputs.begin(), inputs.end(), is_absent))
        return;
      PlanInterpreter plan(one_step);
      std::vector<PlanValue> given;
      for (at::Tensor& input : inputs) {
        const bool has_slopes = is_of_numbers(input) && GetParam().is_differentiable;
        given.push_back(plan.give(input, has_slopes));
        input.set_requires_grad(has_slopes);
      }
      const auto result = [&] {
        const TaskRandom random(7);
        return says->lower(plan, given);
      }();
      if (!result)
        continue;

      const at::Tensor wanted = run(*layer, inputs, 7, one_step);
      ASSERT_TRUE(at::equal(plan.value(*result), wanted));
      if (!wanted.requires_grad())
        continue;
      const at::Tensor gradient = at::randn_like(wanted);
      wanted.backward(gradient);
      plan.back_propagate(*result, gradient);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        ASSERT_EQ(plan.gradient(given[i]).defined(), inputs[i].grad().defined()) << "input " << i;
        if (inputs[i].grad().defined()) {
          EXPECT_TRUE(at::equal(plan.gradient(given[i]), inputs[i].grad())) << "input " << i;
        }
      }
      const auto parameters = planned->named_parameters();
      for (const auto& parameter : layer->named_parameters()) {
        EXPECT_TRUE(at::equal(plan.gradient_of_parameter(parameters[parameter.key()]),
                              parameter.value().grad()))
            << parameter.key();
      }
      for (const auto& buffer : layer->named_buffers()) {
        EXPECT_TRUE(at::equal(planned->named_buffers()[buffer.key()], buffer.value()))
            << buffer.key();
      }
    }
  }
}

CLAIM(Layer, TruncatedBpttLeavesTheResultAlone) {
  const auto layer = create(1);
  const Buffers buffers(*layer);
  const auto inputs = random_inputs();
  for (const bool training : {true, false}) {
    layer->train(training);
    EXPECT_TRUE(values_match(run_from(buffers, *layer, inputs, 1, true),
                             run_from(buffers, *layer, inputs, 1), kRounding))
        << (training ? "in training" : "in evaluation");
  }
}

// The reference is the same in plain operators, its state detached between steps.
CLAIM(Layer, TruncatedBpttEndsAtEveryStepOfTime) {
  if (!GetParam().is_differentiable)
    return;
  const auto layer = create(1);
  const Buffers buffers(*layer);
  const auto inputs = random_inputs();
  const auto of_layer = [&](bool one_step) {
    return slopes_of(*layer, inputs, [&](const std::vector<at::Tensor>& given) {
      return run_from(buffers, *layer, given, 1, one_step);
    });
  };
  const Slopes all_of_time = of_layer(false);
  const Slopes one_step = of_layer(true);
  if (!GetParam().by_hand) {
    EXPECT_TRUE(slopes_match(one_step, all_of_time))
        << "LayerContext::truncates_bptt() changes its gradients, and nothing says to what: "
           "give LayerCase::by_hand, what it computes in plain operators";
    return;
  }
  const auto by_hand = [&](const HandOn& hand_on) {
    return slopes_of(*layer, inputs, [&](const std::vector<at::Tensor>& given) {
      return GetParam().by_hand(*layer, given, hand_on);
    });
  };
  const Slopes cut = by_hand([](const at::Tensor& state) { return state.detach(); });
  const Slopes whole = by_hand([](const at::Tensor& state) { return state; });

  ASSERT_TRUE(slopes_match(whole, all_of_time)) << "LayerCase::by_hand is another layer";
  ASSERT_FALSE(slopes_match(cut, whole))
      << "LayerCase::by_hand hands no state on: pass it through `hand_on`, in a sequence of two "
         "steps or more";
  EXPECT_TRUE(slopes_match(one_step, cut))
      << "where LayerContext::truncates_bptt() is true, detach the state before each step";
}

// In twice as many steps autograd's graph is as deep, unless each step follows from the one before.
CLAIM(Layer, AStateCarriedThroughTimeHasAReference) {
  const LayerCase& one = GetParam();
  if (!one.is_differentiable || one.by_hand || one.inputs[0].size() != 2 || one.categories > 0)
    return;
  const auto depth_for = [&](std::int64_t steps) -> std::optional<std::size_t> {
    auto inputs = one.inputs;
    inputs[0][0] = steps;
    if (role_of(inputs.size() - 1) == Role::kMask)
      inputs.back()[0] = steps;
    try {
      const LayerSpec asked = spec(at::kDouble, inputs);
      const TaskRandom random(1);
      const auto layer = factory_->create(asked);
      std::vector<at::Tensor> given = random_inputs(kRows, asked);
      given[0].set_requires_grad(true);
      return autograd_depth(run(*layer, given));
    } catch (const std::exception&) {  // it takes no such sizes
      return std::nullopt;
    }
  };
  const auto few = depth_for(kLongest);
  const auto many = depth_for(2 * kLongest);

  EXPECT_EQ(few.value_or(0), many.value_or(few.value_or(0)))
      << "it carries a state from step to step, for its autograd graph is deeper for more steps: "
         "detach the state between them where LayerContext::truncates_bptt() is true, and give "
         "LayerCase::by_hand";
}

CLAIM(Layer, WhatItSaysOfItsConstantsIsWhatItComputes) {
  constexpr double kTolerance = 1e-12;
  const auto layer = create(1);
  const auto* says = dynamic_cast<const Lowerable*>(layer.get());
  const std::vector<at::Tensor> inputs = random_inputs();
  if (says == nullptr || std::any_of(inputs.begin(), inputs.end(),
                                     [](const at::Tensor& input) { return !input.defined(); }))
    return;
  run(*layer, inputs);  // running means are no longer 0 and 1
  layer->eval();
  const at::NoGradGuard no_gradients;
  const TaskRandom random(3);
  for (const at::Tensor& parameter : layer->parameters())
    parameter.add_(at::randn_like(parameter));
  PlanInterpreter plan;
  std::vector<PlanValue> given;
  for (const at::Tensor& input : inputs)
    given.push_back(plan.give(input, /*needs_gradient=*/false));
  if (!says->lower(plan, given))
    return;
  const auto mapped = [](const ChannelMap& map, const at::Tensor& values) {
    std::vector<std::int64_t> of_channels(static_cast<std::size_t>(values.dim()), 1);
    of_channels[static_cast<std::size_t>(map.dim)] = values.size(map.dim);
    return values.mul(map.scale.view(of_channels)).add(map.shift.view(of_channels));
  };
  for (const PlanInterpreter::Applied& applied : plan.applied()) {
    SCOPED_TRACE(std::string(applied.operation->name()));
    const auto* maps = dynamic_cast<const MapsChannels*>(applied.operation.get());
    if (const auto map = maps == nullptr ? std::nullopt : maps->channel_map()) {
      EXPECT_TRUE(mapped(*map, applied.inputs[0]).allclose(applied.output, kTolerance, kTolerance));
    }
    const auto* takes = dynamic_cast<const TakesChannelMap*>(applied.operation.get());
    const TensorSpec result = TensorSpec::of(applied.output);
    for (std::int64_t dim = 0; takes != nullptr && dim < applied.output.dim(); ++dim) {
      const ChannelMap map{dim, at::randn({applied.output.size(dim)}, at::kDouble),
                           at::randn({applied.output.size(dim)}, at::kDouble)};
      const auto both = takes->followed_by(map, result);
      if (both == nullptr)
        continue;
      at::Tensor output = at::empty_like(applied.output);
      std::vector<TensorSpec> given;
      for (const at::Tensor& input : applied.inputs)
        given.push_back(TensorSpec::of(input));
      std::vector<at::Tensor> kept;
      for (const TensorSpec& one : both->keeps(given))
        kept.push_back(one.is_absent() ? at::Tensor() : at::empty(one.sizes, one.dtype));
      both->forward(applied.inputs, output, kept);
      EXPECT_TRUE(output.allclose(mapped(map, applied.output), kTolerance, kTolerance))
          << "with a map of dimension " << dim;
    }
  }
}

CLAIM(Layer, RemembersOnlyIfItSaysSo) {
  const auto layer = create(1);
  const TaskRandom random(1);
  LayerContext context;

  layer->forward(random_inputs(), context);

  const auto* says = dynamic_cast<const KeepsState*>(layer.get());
  EXPECT_TRUE(context.state().empty() || (says != nullptr && says->keeps_state()))
      << "it leaves something in LayerContext::state(), and does not derive from KeepsState";
}

CLAIM(Layer, ActsOnPositionsOnlyIfItSaysSo) {
  const auto layer = create(1);
  const auto* says = dynamic_cast<const ActsOnPositions*>(layer.get());
  if (says == nullptr || !says->acts_on_positions())
    return;
  const at::Tensor input = random_inputs()[0].flatten(0, -2);
  const at::Tensor whole = run(*layer, random_inputs()).flatten(0, -2);

  for (std::int64_t begin = 0; begin < input.size(0); begin += 3) {
    const std::int64_t count = std::min<std::int64_t>(3, input.size(0) - begin);
    EXPECT_TRUE(values_match(run(*layer, {input.narrow(0, begin, count)}),
                             whole.narrow(0, begin, count), kRounding))
        << "it derives from ActsOnPositions, but its result for some positions differs from that "
           "for all";
  }
}

CLAIM(Layer, ReportsOnlyWhatItDeclares) {
  const auto layer = create(1);
  const auto* shows = dynamic_cast<const LogsValues*>(layer.get());
  const auto* adds = dynamic_cast<const AddsLosses*>(layer.get());
  const auto logs = shows == nullptr ? std::vector<std::string>() : shows->logged_names();
  const auto losses = adds == nullptr ? std::vector<std::string>() : adds->loss_names();
  const TaskRandom random(1);
  LayerContext context;

  layer->forward(random_inputs(), context);

  for (const LayerReports::Report& report : context.reports()) {
    const std::vector<std::string>& declared = report.is_loss ? losses : logs;
    EXPECT_EQ(std::count(declared.begin(), declared.end(), report.name), 1)
        << report.name
        << (report.is_loss ? ": derive from AddsLosses" : ": derive from LogsValues");
  }
}

CLAIM(Layer, LossesAddUpOverRows) {
  if (!GetParam().works_row_by_row || GetParam().training_differs || GetParam().has_losses_of_batch)
    return;
  const auto layer = create(1);
  const auto inputs = random_inputs();
  const auto losses_of = [&](std::int64_t begin, std::int64_t end) {
    std::vector<at::Tensor> part;
    for (const at::Tensor& input : inputs)
      part.push_back(input.defined() ? input.slice(0, begin, end) : input);
    const TaskRandom random(1);
    LayerContext context;
    layer->forward(part, context);
    double sum = 0;
    for (const LayerReports::Report& report : context.reports())
      sum += report.is_loss ? report.value.item<double>() : 0.0;
    return sum;
  };

  const double all = losses_of(0, kRows);

  EXPECT_NEAR(losses_of(0, 2) + losses_of(2, kRows), all, 1e-9 * (1 + std::abs(all)))
      << "what it adds to the loss is a sum over the rows of the call";
}

CLAIM(Layer, NamesEachFurtherOutputOnce) {
  const auto layer = create(1);
  const std::vector<std::string> names = output_names(*layer);

  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(std::count(names.begin(), names.end(), "output"), 0) << "forward() returns that one";
}

CLAIM(Layer, FurtherOutputsAreAsAnnounced) {
  const auto layer = create(1);
  const std::vector<std::string> names = output_names(*layer);
  const std::vector<TensorSpec> announced = layer->results(spec().inputs, names);
  layer->eval();

  const std::vector<at::Tensor> outputs = run_all(*layer, random_inputs(), names);

  ASSERT_EQ(outputs.size(), announced.size());
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    SCOPED_TRACE(names[i - 1]);
    EXPECT_EQ(outputs[i].scalar_type(), announced[i].dtype);
    ASSERT_EQ(outputs[i].dim(), static_cast<std::int64_t>(announced[i].sizes.size()));
    for (std::size_t dim = 0; dim < announced[i].sizes.size(); ++dim) {
      if (announced[i].sizes[dim] != TensorSpec::kVaries) {
        EXPECT_EQ(outputs[i].size(static_cast<std::int64_t>(dim)), announced[i].sizes[dim])
            << "dimension " << dim;
      }
    }
  }
}

CLAIM(Layer, RequestsChangeNoOtherOutput) {
  const auto layer = create(1);
  const std::vector<std::string> names = output_names(*layer);
  const auto inputs = random_inputs();
  layer->eval();
  const std::vector<at::Tensor> all = run_all(*layer, inputs, names);

  EXPECT_TRUE(at::equal(run_all(*layer, inputs, {})[0], all[0]));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<at::Tensor> alone = run_all(*layer, inputs, {names[i]});
    EXPECT_TRUE(at::equal(alone[0], all[0])) << "with " << names[i];
    EXPECT_TRUE(at::equal(alone[1], all[i + 1])) << names[i];
  }
}

CLAIM(Layer, FurtherOutputsAreOfTheirRows) {
  const auto layer = create(1);
  const std::vector<std::string> names = output_names(*layer);
  if (names.empty() || !GetParam().works_row_by_row)
    return;
  layer->eval();
  const auto inputs = random_inputs();
  const std::vector<at::Tensor> all = run_all(*layer, inputs, names);
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::vector<at::Tensor> alone;
    for (const at::Tensor& input : inputs)
      alone.push_back(input.defined() ? input.slice(0, row, row + 1) : input);
    const std::vector<at::Tensor> of_row = run_all(*layer, alone, names);
    for (std::size_t i = 1; i < all.size(); ++i) {
      ASSERT_EQ(all[i].size(0), kRows) << names[i - 1];
      ASSERT_EQ(of_row[i].sizes().slice(1), all[i].sizes().slice(1)) << names[i - 1];
      EXPECT_TRUE(of_row[i].allclose(all[i].slice(0, row, row + 1)))
          << names[i - 1] << ", row " << row;
    }
  }
}

CLAIM(Layer, GradientsAreTheSlopesOfEveryOutput) {
  const auto layer = create(1);
  const std::vector<std::string> names = output_names(*layer);
  if (names.empty() || !GetParam().is_differentiable)
    return;
  const auto inputs = random_inputs();
  std::vector<Differentiated> differentiated = parameters_of(*layer);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_of_numbers(inputs[i]))
      differentiated.push_back({"input " + std::to_string(i), inputs[i]});
  }
  EXPECT_TRUE(gradients_match(
      [&] {
        std::vector<at::Tensor> of_numbers;
        for (const at::Tensor& output : run_all(*layer, inputs, names)) {
          if (output.is_floating_point())
            of_numbers.push_back(output);
        }
        return weighted_sum(of_numbers);
      },
      differentiated, {.most_elements = 20}));
}

CLAIM(Layer, LeavesItsInputsAlone) {
  const auto inputs = random_inputs();
  const auto layer = create(1);

  run(*layer, inputs);

  const auto as_they_were = random_inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) {
      EXPECT_TRUE(at::equal(inputs[i], as_they_were[i])) << "input " << i;
    }
  }
}

CLAIM(Layer, SeveralThreadsMayEvaluateAtOnce) {
  const auto layer = create(1);
  layer->eval();
  const auto inputs = random_inputs();
  const at::Tensor expected = run(*layer, inputs);
  constexpr std::size_t kThreads = 4;
  std::vector<at::Tensor> results(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    const at::NoGradGuard no_gradients;
    for (int repeat = 0; repeat < 20; ++repeat)
      results[thread] = run(*layer, inputs);
  });

  EXPECT_EQ(errors, kNoErrors);
  for (const at::Tensor& result : results)
    EXPECT_TRUE(at::equal(result, expected));
}

CLAIM(Layer, WorksTheSameFromAnArena) {
  const auto plain = create(1);
  const auto adopted = create(1);
  plain->eval();
  adopted->eval();
  if (adopted->parameters().empty())
    return;
  const ParameterArena arena(*adopted);

  EXPECT_TRUE(at::equal(run(*plain, random_inputs()), run(*adopted, random_inputs())));
}

// A layer of states carried through time may be computed in another order there: libtorch's
// recurrent operators look at all times of a sequence at once on a CPU alone.
CLAIM(Layer, ForwardAndBackwardAgreeOnADevice) {
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
        const auto layer = create(1, dtype);
        layer->train(training);
        const auto forward = [&](const std::vector<at::Tensor>& inputs) {
          return run_all(*layer, inputs, output_names(*layer));
        };
        return passed_on(where, *layer, random_inputs(kRows, dtype), forward,
                         GetParam().is_differentiable);
      };
      Closeness allowed = device->closeness(dtype);
      if (GetParam().by_hand && dtype == at::kFloat)
        allowed = {.relative = 1e-4, .absolute = 1e-5};
      else if (GetParam().by_hand)
        allowed = kRounding;

      expect_results(passed(device->device()), passed(c10::kCPU), allowed);
    }
  }
}

}  // namespace treadle::testing
