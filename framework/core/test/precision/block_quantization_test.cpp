#include <treadle/core/precision/block_quantization.h>

#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/tensor/task_random.h>

namespace treadle {
namespace {

using Signs = BlockQuantizer::Signs;

at::Tensor there_and_back(const BlockQuantizer& quantizer, const at::Tensor& values) {
  return quantizer.dequantize(quantizer.quantize(values));
}

// By hand: the largest power has 64 intervals of [0.1, 1] for both signs, 128 for none; the
// smallest one and two.
TEST(BlockQuantizer, HasTheValuesOfDynamicTrees) {
  const at::Tensor both = BlockQuantizer(Signs::kBoth, c10::kCPU).codebook();
  EXPECT_EQ(both.numel(), 256);
  EXPECT_EQ(both[255].item<float>(), 1);
  EXPECT_NEAR(both[254].item<double>(), 0.1 + 0.9 * 63.5 / 64, 1e-6);
  EXPECT_NEAR(both[0].item<double>(), -(0.1 + 0.9 * 63.5 / 64), 1e-6);
  EXPECT_NEAR(both.abs().masked_select(both.ne(0)).min().item<double>(), 0.55e-6, 1e-12);
  const at::Tensor none = BlockQuantizer(Signs::kNone, c10::kCPU).codebook();
  EXPECT_EQ(none[0].item<float>(), 0);
  EXPECT_NEAR(none[1].item<double>(), 0.325e-6, 1e-12);
  EXPECT_NEAR(none[254].item<double>(), 0.1 + 0.9 * 127.5 / 128, 1e-6);
  EXPECT_TRUE((none.diff() > 0).all().item<bool>());
}

TEST(BlockQuantizer, KeepsEveryValueOfItsCodebook) {
  for (const Signs signs : {Signs::kBoth, Signs::kNone}) {
    const BlockQuantizer quantizer(signs, c10::kCPU);
    const at::Tensor values = quantizer.codebook() * 3;
    EXPECT_TRUE(there_and_back(quantizer, values).equal(values));
  }
}

TEST(BlockQuantizer, TakesTheNearestValue) {
  const BlockQuantizer quantizer(Signs::kBoth, c10::kCPU);
  const TaskRandom random(1);
  const at::Tensor values = at::randn({4 * BlockQuantizer::kBlock});
  const at::Tensor back = there_and_back(quantizer, values).view({4, -1});
  const at::Tensor largest = values.view({4, -1}).abs().amax(1, /*keepdim=*/true);
  const at::Tensor shares = values.view({4, -1}) / largest;
  const at::Tensor nearest =
      (shares.unsqueeze(2) - quantizer.codebook()).abs().amin(2);  // by trying all
  EXPECT_TRUE((back / largest - shares).abs().allclose(nearest, 1e-4, 1e-6));
}

TEST(BlockQuantizer, GivesEachBlockAScaleOfItsOwn) {
  const BlockQuantizer quantizer(Signs::kBoth, c10::kCPU);
  const at::Tensor values = at::ones({2 * BlockQuantizer::kBlock});
  values.narrow(0, 0, BlockQuantizer::kBlock).mul_(1e-12);
  const auto quantized = quantizer.quantize(values);
  EXPECT_EQ(quantized.codes.scalar_type(), at::kByte);
  EXPECT_FLOAT_EQ(quantized.scales[0].item<float>(), 1e-12F);
  EXPECT_TRUE(quantizer.dequantize(quantized).equal(values));
}

TEST(BlockQuantizer, KeepsZeros) {
  for (const Signs signs : {Signs::kBoth, Signs::kNone}) {
    const BlockQuantizer quantizer(signs, c10::kCPU);
    const at::Tensor zeros = at::zeros({BlockQuantizer::kBlock});
    const auto quantized = quantizer.quantize(zeros);
    EXPECT_TRUE(quantizer.dequantize(quantized).equal(zeros));
    EXPECT_EQ(quantized.codes[0].item<int>(), quantizer.zero());
  }
}

// A second moment that became 0 would make the next step without bound.
TEST(BlockQuantizer, NeverTurnsAPositiveNumberWithoutSignIntoZero) {
  const BlockQuantizer quantizer(Signs::kNone, c10::kCPU);
  at::Tensor values = at::full({BlockQuantizer::kBlock}, 1e-20);
  values[7] = 1;
  values[8] = 0;
  const at::Tensor back = there_and_back(quantizer, values);
  EXPECT_GT(back[0].item<float>(), 0);
  EXPECT_EQ(back[8].item<float>(), 0);
}

}  // namespace
}  // namespace treadle
