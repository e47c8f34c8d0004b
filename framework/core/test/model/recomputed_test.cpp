#include <treadle/core/model/recomputed.h>

#include <gtest/gtest.h>

#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>

namespace treadle {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Block : torch::nn::Module {
  Block() {
    const TaskRandom random(11);
    first = register_module("first", torch::nn::Linear(4, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    second = register_module("second", torch::nn::Linear(8, 3));
    to(at::kDouble);
  }
  /// Two inputs, two outputs, one of which is a step between.
  Tensors forward(const Tensors& inputs) {
    ++calls;
    const at::Tensor between = norm(first(inputs[0])).tanh();
    between_storage =
        c10::weak_intrusive_ptr<c10::StorageImpl>(between.storage().getWeakStorageImpl());
    return {second(between) * inputs[1], between.mean(1)};
  }
  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear second{nullptr};
  int calls = 0;
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> between_storage;
};

struct Outcome {
  Tensors outputs;
  Tensors gradients;  // of the inputs, then of the parameters
  Tensors buffers;
};

Outcome run(bool again, bool inputs_need_gradients = true) {
  Block block;
  const at::Generator generator = make_generator(5);
  Tensors inputs{at::randn({6, 4}, generator, at::kDouble),
                 at::randn({6, 3}, generator, at::kDouble)};
  for (at::Tensor& input : inputs)
    input.set_requires_grad(inputs_need_gradients);
  const ForwardSegment segment = [&](const Tensors& given) { return block.forward(given); };
  Outcome outcome;
  outcome.outputs = again ? recomputed(block, segment, inputs) : segment(inputs);
  (outcome.outputs[0].pow(2).sum() + outcome.outputs[1].sum()).backward();
  EXPECT_EQ(block.calls, again ? 2 : 1);
  for (const at::Tensor& input : inputs)
    outcome.gradients.push_back(input.grad());
  for (const at::Tensor& parameter : block.parameters())
    outcome.gradients.push_back(parameter.grad());
  for (const at::Tensor& buffer : block.buffers())
    outcome.buffers.push_back(buffer.clone());
  return outcome;
}

void expect_equal(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
    if (a[i].defined()) {
      EXPECT_TRUE(at::equal(a[i], b[i])) << i;
    }
  }
}

TEST(Recomputed, HasTheOutputsGradientsAndBuffersOfAPlainCall) {
  for (const bool inputs_need_gradients : {true, false}) {
    const Outcome plain = run(false, inputs_need_gradients);
    const Outcome again = run(true, inputs_need_gradients);

    expect_equal(again.outputs, plain.outputs);
    expect_equal(again.gradients, plain.gradients);
    expect_equal(again.buffers, plain.buffers);
  }
}

TEST(Recomputed, GivesGradientsToWhoAsksForThem) {
  const auto asked = [](bool again) {
    Block block;
    const Tensors inputs{at::ones({6, 4}, at::kDouble), at::ones({6, 3}, at::kDouble)};
    const ForwardSegment segment = [&](const Tensors& given) { return block.forward(given); };
    const Tensors outputs = again ? recomputed(block, segment, inputs) : segment(inputs);
    Tensors gradients = torch::autograd::grad({outputs[0].pow(2).sum()}, block.parameters());
    for (const at::Tensor& parameter : block.parameters())
      EXPECT_FALSE(parameter.grad().defined());
    return gradients;
  };
  expect_equal(asked(true), asked(false));
}

// A zero would be a step of an optimizer with momentum or decay.
TEST(Recomputed, GivesNoGradientsWhereNoneComeBack) {
  Block block;
  const at::Tensor x = at::ones({6, 4}, at::kDouble).set_requires_grad(true);
  const ForwardSegment segment = [&](const Tensors& given) { return block.forward(given); };
  const Tensors outputs = recomputed(block, segment, {x, at::ones({6, 3}, at::kDouble)});

  outputs[1].pow(2).sum().backward();

  EXPECT_TRUE(block.first->weight.grad().defined());
  EXPECT_FALSE(block.second->weight.grad().defined());
}

TEST(Recomputed, KeepsNothingThatLiesBetween) {
  Block block;
  const at::Tensor x = at::ones({6, 4}, at::kDouble).set_requires_grad(true);
  const at::Tensor y = at::ones({6, 3}, at::kDouble);
  const ForwardSegment segment = [&](const Tensors& given) {
    return Tensors{block.forward(given)[0]};
  };

  const Tensors plain = segment({x, y});
  EXPECT_FALSE(block.between_storage->expired());
  const Tensors lean = recomputed(block, segment, {x, y});
  EXPECT_TRUE(block.between_storage->expired());
}

TEST(Recomputed, DrawsTheSameNumbersBothTimes) {
  torch::nn::Module nothing;
  const TaskRandom random(3);
  const at::Tensor x = at::ones({1000}, at::kDouble).set_requires_grad(true);

  const at::Tensor y = recomputed(
      nothing, [](const Tensors& in) { return Tensors{at::dropout(in[0], 0.5, /*train=*/true)}; },
      {x})[0];
  at::rand({100});  // others draw, too, before backward
  y.sum().backward();

  // x is 1, so what was let through is its own gradient.
  EXPECT_TRUE(at::equal(y, x.grad()));
  EXPECT_GT(y.sum().item<double>(), 0);
}

TEST(Recomputed, DrawsOtherNumbersEachCall) {
  torch::nn::Module nothing;
  const TaskRandom random(3);
  const ForwardSegment draw = [](const Tensors& in) {
    return Tensors{at::dropout(in[0], 0.5, /*train=*/true)};
  };
  const at::Tensor x = at::ones({100}, at::kDouble);

  EXPECT_FALSE(at::equal(recomputed(nothing, draw, {x})[0], recomputed(nothing, draw, {x})[0]));
}

TEST(Recomputed, NestsInItself) {
  const Outcome plain = run(false);
  Block block;
  const at::Generator generator = make_generator(5);
  Tensors inputs{at::randn({6, 4}, generator, at::kDouble),
                 at::randn({6, 3}, generator, at::kDouble)};
  for (at::Tensor& input : inputs)
    input.set_requires_grad(true);
  const ForwardSegment inner = [&](const Tensors& given) { return block.forward(given); };
  const ForwardSegment outer = [&](const Tensors& given) {
    return recomputed(block, inner, given);
  };

  const Tensors outputs = recomputed(block, outer, inputs);
  (outputs[0].pow(2).sum() + outputs[1].sum()).backward();

  EXPECT_TRUE(at::equal(inputs[0].grad(), plain.gradients[0]));
  EXPECT_TRUE(at::equal(block.parameters()[0].grad(), plain.gradients[2]));
}

TEST(Recomputed, GivesATiedWeightItsGradientOnce) {
  struct Tied : torch::nn::Module {
    Tied() {
      encoder = register_parameter("encoder", at::ones({1}, at::kDouble));
      register_parameter("decoder", encoder);
    }
    at::Tensor encoder;
  } tied;
  const at::Tensor input = at::ones({1}, at::kDouble);
  const ForwardSegment segment = [&](const Tensors& given) {
    return Tensors{given[0] * tied.encoder * 2 + tied.encoder * 3};
  };

  recomputed(tied, segment, {input})[0].sum().backward();

  EXPECT_EQ(tied.encoder.grad().item<double>(), 5);
}

TEST(Recomputed, IsAPlainCallWhereNothingIsRecorded) {
  Block block;
  const at::NoGradGuard no_gradients;
  const Tensors outputs =
      recomputed(block, [&](const Tensors& given) { return block.forward(given); },
                 {at::ones({6, 4}, at::kDouble), at::ones({6, 3}, at::kDouble)});
  EXPECT_FALSE(outputs[0].requires_grad());
  EXPECT_EQ(block.calls, 1);
}

}  // namespace
}  // namespace treadle
