#include <treadle/tensor/autocast.h>

#include <stdexcept>
#include <thread>

#include <ATen/ops/full.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

at::Tensor product() {
  return at::ones({4, 3}).matmul(at::ones({3, 2}));
}

TEST(Autocast, LastsAsLongAsItsScope) {
  {
    const AutocastScope scope(Autocast::on(c10::kCPU, at::kBFloat16));
    EXPECT_EQ(product().scalar_type(), at::kBFloat16);
    EXPECT_EQ(Autocast::of_this_thread(), Autocast::on(c10::kCPU, at::kBFloat16));
    {
      const AutocastScope off{Autocast()};
      EXPECT_EQ(product().scalar_type(), at::kFloat);
    }
    EXPECT_EQ(product().scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(product().scalar_type(), at::kFloat);
  EXPECT_FALSE(Autocast::of_this_thread().is_on());
}

TEST(Autocast, EndsWithAnException) {
  try {
    const AutocastScope scope(Autocast::on(c10::kCPU, at::kBFloat16));
    throw std::runtime_error("an operator failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_FALSE(Autocast::of_this_thread().is_on());
}

TEST(Autocast, IsOfOneThreadUntilItIsTakenOver) {
  const AutocastScope scope(Autocast::on(c10::kCPU, at::kBFloat16));
  const Autocast mine = Autocast::of_this_thread();
  std::thread([&] {
    EXPECT_EQ(product().scalar_type(), at::kFloat);
    const AutocastScope taken_over(mine);
    EXPECT_EQ(product().scalar_type(), at::kBFloat16);
  }).join();
}

// A cast that is kept joins both calls in 16 bits: 256 + 1 is 256 there.
TEST(Autocast, AddsTheGradientsOfAParameterThatIsUsedTwiceInFloat32) {
  const at::Tensor weight = at::ones({1, 1}).set_requires_grad(true);
  {
    const AutocastScope scope(Autocast::on(c10::kCPU, at::kBFloat16));
    const at::Tensor sum =
        at::full({1, 1}, 256.0F).matmul(weight) + at::ones({1, 1}).matmul(weight);
    sum.sum().backward();
  }
  EXPECT_EQ(weight.grad().item<float>(), 257);
}

// libtorch 1.13 has a kernel for two dtypes that are the same, or none for 16 bits.
TEST(Autocast, KnowsOperatorsThatLibtorchForgot) {
  const AutocastScope scope(Autocast::on(c10::kCPU, at::kBFloat16));
  const at::Tensor weight = at::ones({4}).set_requires_grad(true);
  const at::Tensor narrow = at::full({3, 4}, 0.5F).to(at::kBFloat16).set_requires_grad(true);

  const at::Tensor result =
      at::mish(at::hardtanh(at::layer_norm(narrow, {4}, weight, at::ones({4}))));
  result.sum().backward();

  EXPECT_TRUE(result.isfinite().all().item<bool>());
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(narrow.grad().scalar_type(), at::kBFloat16);
}

TEST(Autocast, ExistsWhereLibtorchHasIt) {
  EXPECT_TRUE(Autocast::exists_on(c10::kCPU));
  EXPECT_TRUE(Autocast::exists_on(c10::kCUDA));
  EXPECT_FALSE(Autocast::exists_on(c10::kMeta));
  EXPECT_THROW(Autocast::on(c10::kMeta, at::kBFloat16), ContractViolation);
}

}  // namespace
}  // namespace treadle
