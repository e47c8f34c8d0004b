#pragma once

#include <algorithm>
#include <cmath>
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
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/core/layer.h>
#include <treadle/core/module_state.h>
#include <treadle/core/parameter_arena.h>
#include <treadle/core/task_random.h>
#include <treadle/plan/folding.h>
#include <treadle/plan/lowerable.h>
#include <treadle/testing/at_once.h>
#include <treadle/testing/case_name.h>
#include <treadle/testing/gradient_check.h>
#include <treadle/testing/plan_trial.h>
#include <treadle/testing/tensor_comparison.h>

/// What every LayerFactory, and the layers it makes, must keep. Include in one source file of a
/// test program:
///
///     INSTANTIATE_TEST_SUITE_P(Layers, LayerContract, ::testing::Values(
///         LayerCase{"Dense", [] { return plugin().make<LayerFactory>("dense"); }}), CaseName());
namespace treadle::testing {

struct LayerCase {
  std::string name;
  std::function<std::unique_ptr<LayerFactory>()> make;
  /// Sizes of each input behind the batch. One that is empty and stands behind the first is a state
  /// that is absent.
  std::vector<std::vector<std::int64_t>> inputs = {{6}};
  std::int64_t output_width = 3;  ///< what the loss asks for
  /// Training gives other results than evaluation: it draws random numbers (dropout) or looks at
  /// the whole batch (batch norm).
  bool training_differs = false;
  /// More than 0: the first input is indices of so many categories, int64.
  std::int64_t categories = 0;
  /// What each input holds; inputs beyond them hold features. Lengths are of sequences of five, as
  /// sizes that vary are.
  std::vector<Role> roles = {};
  std::vector<std::int64_t> output_positions = {};  ///< of what the loss asks for
  /// The result's rows are the input's, each a function of its own row.
  bool works_row_by_row = true;
  /// Gradients exist: not for a layer that chooses.
  bool is_differentiable = true;
};

class LayerContract : public ::testing::TestWithParam<LayerCase> {
 protected:
  static constexpr std::int64_t kRows = 5;
  static constexpr std::int64_t kLongest = 5;

  static LayerSpec spec(at::ScalarType dtype = at::kDouble) {
    LayerSpec spec;
    spec.dtype = dtype;
    spec.outputs = {{"output", output_shape()}};
    for (std::size_t i = 0; i < GetParam().inputs.size(); ++i) {
      const std::vector<std::int64_t>& shape = GetParam().inputs[i];
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
    const TaskRandom random(99);
    std::vector<at::Tensor> inputs;
    const LayerSpec asked = spec(dtype);
    for (std::size_t i = 0; i < asked.inputs.size(); ++i) {
      if (asked.inputs[i].is_absent()) {
        inputs.emplace_back();
        continue;
      }
      std::vector<std::int64_t> sizes = asked.inputs[i].sizes;
      std::replace(sizes.begin() + 1, sizes.end(), TensorSpec::kVaries, kLongest);
      sizes[0] = rows;
      inputs.push_back(random_input(role_of(i), sizes, dtype));
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

  static at::Tensor run(Layer& layer, const std::vector<at::Tensor>& inputs,
                        std::uint64_t seed = 1) {
    const TaskRandom random(seed);
    LayerContext context;
    return layer.forward(inputs, context);
  }

  static StateDict state_of(const Layer& layer) { return module_state(layer).snapshot(); }

  std::unique_ptr<LayerFactory> factory_ = GetParam().make();
};

TEST_P(LayerContract, GivesWhatItAnnounces) {
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

TEST_P(LayerContract, AnnouncingChangesNothing) {
  const auto layer = create(1);
  layer->train();
  const StateDict before = state_of(*layer);

  layer->result(spec().inputs);

  EXPECT_TRUE(layer->is_training());
  const StateDict after = state_of(*layer);
  for (const auto& [name, tensor] : before.tensors())
    EXPECT_TRUE(values_match(after.tensor(name), tensor)) << name;
}

TEST_P(LayerContract, ParametersAndFloatingBuffersHaveTheSpecsDtype) {
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

TEST_P(LayerContract, HasTheSameStructureEveryTime) {
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

TEST_P(LayerContract, EachLayerHasMemoryOfItsOwn) {
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

TEST_P(LayerContract, StateRoundTripGivesTheSameBits) {
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

TEST_P(LayerContract, DrawsItsWeightsFromTheTasksStream) {
  const auto same = create(1)->parameters();
  const auto again = create(1)->parameters();

  EXPECT_TRUE(same_bits(same, again));
}

TEST_P(LayerContract, TrainingDiffersFromEvaluationOnlyIfItMay) {
  const auto layer = create(1);
  const at::NoGradGuard no_gradients;
  const auto inputs = random_inputs();

  const at::Tensor trained = run(*layer, inputs);
  EXPECT_TRUE(at::equal(run(*layer, inputs), trained)) << "with the same random stream";
  layer->eval();

  EXPECT_EQ(at::equal(run(*layer, inputs), trained), !GetParam().training_differs);
}

TEST_P(LayerContract, EvaluationIsAFunctionOfTheInputs) {
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

TEST_P(LayerContract, GradientsAreTheSlopesOfTheResult) {
  if (!GetParam().is_differentiable)
    return;
  const auto layer = create(1);
  const auto inputs = random_inputs();
  std::vector<Differentiated> differentiated = parameters_of(*layer);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_of_numbers(inputs[i]))
      differentiated.push_back({"input " + std::to_string(i), inputs[i]});
  }
  for (const bool training : {true, false}) {
    layer->train(training);
    EXPECT_TRUE(gradients_match([&] { return weighted_sum({run(*layer, inputs)}); }, differentiated,
                                {.most_elements = 20}))
        << (training ? "in training" : "in evaluation");
  }
}

TEST_P(LayerContract, EveryParameterGetsAGradient) {
  if (!GetParam().is_differentiable)
    return;
  const auto layer = create(1);
  if (layer->parameters().empty())
    return;

  run(*layer, random_inputs()).square().sum().backward();

  for (const auto& parameter : layer->named_parameters())
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
}

TEST_P(LayerContract, APlanOfItGivesTheSameBits) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const bool training : {true, false}) {
      SCOPED_TRACE(std::string(training ? "in training" : "in evaluation") +
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
      PlanTrial trial;
      std::vector<PlanValue> given;
      for (at::Tensor& input : inputs) {
        const bool has_slopes = is_of_numbers(input) && GetParam().is_differentiable;
        given.push_back(trial.give(input, has_slopes));
        input.set_requires_grad(has_slopes);
      }
      const auto result = [&] {
        const TaskRandom random(7);
        return says->lower(trial, given);
      }();
      if (!result)
        return;

      const at::Tensor wanted = run(*layer, inputs, 7);
      ASSERT_TRUE(at::equal(trial.value(*result), wanted));
      if (!wanted.requires_grad())
        continue;
      const at::Tensor gradient = at::randn_like(wanted);
      wanted.backward(gradient);
      trial.back_propagate(*result, gradient);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        ASSERT_EQ(trial.gradient(given[i]).defined(), inputs[i].grad().defined()) << "input " << i;
        if (inputs[i].grad().defined()) {
          EXPECT_TRUE(at::equal(trial.gradient(given[i]), inputs[i].grad())) << "input " << i;
        }
      }
      const auto parameters = planned->named_parameters();
      for (const auto& parameter : layer->named_parameters()) {
        EXPECT_TRUE(at::equal(trial.gradient_of_parameter(parameters[parameter.key()]),
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

TEST_P(LayerContract, WhatItSaysOfItsConstantsIsWhatItComputes) {
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
  PlanTrial trial;
  std::vector<PlanValue> given;
  for (const at::Tensor& input : inputs)
    given.push_back(trial.give(input, /*needs_gradient=*/false));
  if (!says->lower(trial, given))
    return;
  const auto mapped = [](const ChannelMap& map, const at::Tensor& values) {
    std::vector<std::int64_t> of_channels(static_cast<std::size_t>(values.dim()), 1);
    of_channels[static_cast<std::size_t>(map.dim)] = values.size(map.dim);
    return values.mul(map.scale.view(of_channels)).add(map.shift.view(of_channels));
  };
  for (const PlanTrial::Applied& applied : trial.applied()) {
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

TEST_P(LayerContract, RemembersOnlyIfItSaysSo) {
  const auto layer = create(1);
  const TaskRandom random(1);
  LayerContext context;

  layer->forward(random_inputs(), context);

  const auto* says = dynamic_cast<const Remembers*>(layer.get());
  EXPECT_TRUE(context.state().empty() || (says != nullptr && says->remembers()))
      << "it leaves something in LayerContext::state(), and does not derive from Remembers";
}

TEST_P(LayerContract, ReportsOnlyWhatItDeclares) {
  const auto layer = create(1);
  const auto* shows = dynamic_cast<const ShowsValues*>(layer.get());
  const auto* adds = dynamic_cast<const AddsLosses*>(layer.get());
  const auto logs = shows == nullptr ? std::vector<std::string>() : shows->observed_names();
  const auto losses = adds == nullptr ? std::vector<std::string>() : adds->loss_names();
  const TaskRandom random(1);
  LayerContext context;

  layer->forward(random_inputs(), context);

  for (const LayerReports::Report& report : context.reports()) {
    const std::vector<std::string>& declared = report.is_loss ? losses : logs;
    EXPECT_EQ(std::count(declared.begin(), declared.end(), report.name), 1)
        << report.name
        << (report.is_loss ? ": derive from AddsLosses" : ": derive from ShowsValues");
  }
}

TEST_P(LayerContract, LossesAddUpOverRows) {
  if (!GetParam().works_row_by_row || GetParam().training_differs)
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

TEST_P(LayerContract, LeavesItsInputsAlone) {
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

TEST_P(LayerContract, SeveralThreadsMayEvaluateAtOnce) {
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

TEST_P(LayerContract, WorksTheSameFromAnArena) {
  const auto plain = create(1);
  const auto adopted = create(1);
  plain->eval();
  adopted->eval();
  if (adopted->parameters().empty())
    return;
  const ParameterArena arena(*adopted);

  EXPECT_TRUE(at::equal(run(*plain, random_inputs()), run(*adopted, random_inputs())));
}

}  // namespace treadle::testing
