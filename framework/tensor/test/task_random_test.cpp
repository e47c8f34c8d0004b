#include <treadle/tensor/task_random.h>

#include <gtest/gtest.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>

#include <array>
#include <cmath>
#include <thread>
#include <vector>

#include <treadle/tensor/philox.h>

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

TEST(TaskRandom, DropoutIsAFunctionOfTheElementsPlace) {
  constexpr double kRate = 0.3;
  const std::vector<std::int64_t> counts = {5003, 1, 2, 1024, 3};  // one draw after the other
  const TaskRandom task(17);
  std::array<std::uint32_t, 6040> words{};
  Philox{17}.fill(0, words);
  std::int64_t kept = 0;
  std::size_t place = 0;
  for (const std::int64_t count : counts) {
    const at::Tensor dropped = at::dropout(at::ones({count}), kRate, /*train=*/true);
    for (std::int64_t i = 0; i < count; ++i, ++place) {
      const bool is_kept = words[place] < (1 - kRate) * 0x1p32;
      ASSERT_FLOAT_EQ(dropped[i].item<float>(), is_kept ? 1 / 0.7f : 0) << place;
      kept += is_kept ? 1 : 0;
    }
  }
  const auto all = static_cast<double>(place);
  EXPECT_NEAR(static_cast<double>(kept), 0.7 * all, 5 * std::sqrt(0.21 * all));
}

TEST(TaskRandom, DropoutOfFewerRowsIsThatOfTheFirstOnesInEveryType) {
  const auto dropped = [](std::int64_t rows, at::ScalarType type) {
    const TaskRandom task(4);
    return at::dropout(at::ones({rows, 7}, type), 0.5, /*train=*/true).to(at::kFloat);
  };
  const at::Tensor whole = dropped(400, at::kFloat);
  EXPECT_TRUE(at::equal(dropped(11, at::kFloat), whole.narrow(0, 0, 11)));
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16})
    EXPECT_TRUE(at::equal(dropped(400, type), whole)) << type;
}

TEST(TaskRandom, ProbabilitiesOfNothingAndEverythingAreExact) {
  const TaskRandom task(4);
  EXPECT_EQ(at::empty({3000}).bernoulli_(0.0).sum().item<double>(), 0);
  EXPECT_EQ(at::empty({3000}).bernoulli_(1.0).sum().item<double>(), 3000);
  EXPECT_ANY_THROW(at::empty({3}).bernoulli_(1.5));
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
