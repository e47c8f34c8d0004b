#include <treadle/plan/folding.h>

#include <vector>

#include <gtest/gtest.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <treadle/plan/ops.h>

namespace treadle {
namespace {

at::Tensor numbers(const std::vector<double>& values, at::ScalarType dtype = at::kDouble) {
  return at::tensor(values, at::TensorOptions(dtype));
}

ChannelMap twofold_and_tenfold() {
  return {1, numbers({2, 10}), numbers({0.5, -1})};
}

TEST(FoldedWeights, AreScaledByChannelAndTheBiasIsMovedToo) {
  const auto [weight, bias] =
      fold_channel_map(twofold_and_tenfold(), numbers({1, 2, 3, 4}).view({2, 2}), numbers({1, 3}));

  EXPECT_TRUE(at::equal(weight, numbers({2, 4, 30, 40}).view({2, 2}))) << weight;
  EXPECT_TRUE(at::equal(bias, numbers({2.5, 29}))) << bias;
}

TEST(FoldedWeights, WithoutABiasHaveTheShift) {
  const auto [weight, bias] = fold_channel_map(
      twofold_and_tenfold(), numbers({1, 2, 3, 4}, at::kFloat).view({2, 1, 2}), at::Tensor());

  EXPECT_TRUE(at::equal(weight, numbers({2, 4, 30, 40}, at::kFloat).view({2, 1, 2}))) << weight;
  EXPECT_TRUE(at::equal(bias, numbers({0.5, -1}, at::kFloat))) << bias;
}

TEST(ALinearOperation, TakesAMapOfItsOutputsOnly) {
  const auto op = plan_linear(numbers({1, 2, 3, 4}).view({2, 2}), at::Tensor());
  const auto& takes = dynamic_cast<const TakesChannelMap&>(*op);

  EXPECT_NE(takes.followed_by(twofold_and_tenfold(), {{3, 2}, at::kDouble}), nullptr);
  // Here dimension 1 are positions, not channels.
  EXPECT_EQ(takes.followed_by(twofold_and_tenfold(), {{3, 2, 2}, at::kDouble}), nullptr);
}

}  // namespace
}  // namespace treadle
