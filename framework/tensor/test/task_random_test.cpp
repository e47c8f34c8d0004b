#include <treadle/tensor/task_random.h>

#include <gtest/gtest.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>

#include <thread>

namespace treadle {
namespace {

/// A module that has never heard of Treadle: random weights, and dropout in forward.
at::Tensor weights_and_dropout() {
  torch::nn::Linear linear(8, 4);
  torch::nn::Dropout dropout(0.5);
  const at::Tensor out = dropout(linear(at::ones({16, 8})));
  return at::cat({linear->weight.flatten(), out.flatten()}).detach();
}

TEST(TaskRandom, MakesInitAndDropoutAFunctionOfTheSeed) {
  at::Tensor first;
  {
    const TaskRandom task(11);
    first = weights_and_dropout();
  }
  at::randn({100});  // moves the process-wide generator
  {
    const TaskRandom task(11);
    EXPECT_TRUE(at::equal(first, weights_and_dropout()));
  }
  {
    const TaskRandom task(12);
    EXPECT_FALSE(at::equal(first, weights_and_dropout()));
  }
}

TEST(TaskRandom, CoversOperatorsThatTakeNoGenerator) {
  const auto draw = [] {
    const TaskRandom task(5);
    return at::cat({at::rand({3}), at::randn({3}), at::randperm(7).to(at::kFloat),
                    at::normal(0.0, 1.0, {3}), at::empty({3}).uniform_(), at::empty({3}).normal_(),
                    at::empty({3}).bernoulli_(0.5), at::empty({3}).exponential_(),
                    at::rand_like(at::ones({2})),
                    at::multinomial(at::ones({5}), 3).to(at::kFloat)});
  };
  EXPECT_TRUE(at::equal(draw(), draw()));
}

TEST(TaskRandom, LeavesTheSharedGeneratorAlone) {
  const at::Tensor before = at::detail::getDefaultCPUGenerator().get_state();
  {
    const TaskRandom task(1);
    weights_and_dropout();
  }
  EXPECT_TRUE(at::equal(before, at::detail::getDefaultCPUGenerator().get_state()));
}

TEST(TaskRandom, LeavesAnExplicitGeneratorInCharge) {
  const auto draw = [](std::uint64_t task_seed) {
    const TaskRandom task(task_seed);
    return at::randn({4}, make_generator(99));
  };
  EXPECT_TRUE(at::equal(draw(1), draw(2)));
}

TEST(TaskRandom, ScopesNestAndEnd) {
  const TaskRandom outer(3);
  const at::Tensor a = at::rand({4});
  {
    const TaskRandom inner(4);
    at::rand({100});
  }
  const at::Tensor b = at::rand({4});

  const TaskRandom again(3);
  EXPECT_TRUE(at::equal(a, at::rand({4})));
  EXPECT_TRUE(at::equal(b, at::rand({4})));
}

TEST(TaskRandom, ThreadsDrawFromTheirOwnStreams) {
  const auto draw_many = [](at::Tensor& out) {
    const TaskRandom task(21);
    std::vector<at::Tensor> parts;
    for (int i = 0; i < 200; ++i)
      parts.push_back(weights_and_dropout());
    out = at::stack(parts);
  };
  at::Tensor alone;
  draw_many(alone);
  at::Tensor a, b;
  std::thread first([&] { draw_many(a); });
  std::thread second([&] { draw_many(b); });
  first.join();
  second.join();
  EXPECT_TRUE(at::equal(alone, a));
  EXPECT_TRUE(at::equal(alone, b));
}

TEST(TaskRandom, GradientsFlowThroughRandomOperators) {
  const TaskRandom task(2);
  at::Tensor x = at::ones({32, 8});
  x.set_requires_grad(true);
  torch::nn::Dropout dropout(0.5);
  const at::Tensor y = dropout(x);
  y.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), y.detach()));  // each element is kept and doubled, or dropped
}

}  // namespace
}  // namespace treadle
