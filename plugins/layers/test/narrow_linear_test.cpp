// fp8_linear and nvfp4_linear beside the formulas, number by number.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/core/model/linear.h>
#include <treadle/tensor/float8.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

std::shared_ptr<Layer> narrow_layer(const std::string& name, const nlohmann::json& parameters,
                                    std::int64_t width) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  LayerSpec spec;
  spec.inputs.emplace_back(std::vector<std::int64_t>{TensorSpec::kVaries, width}, at::kFloat);
  const TaskRandom random(5);
  return plugin.make<LayerFactory>(name, parameters)->create(spec);
}

at::Tensor called(Layer& layer, const at::Tensor& x) {
  LayerContext context;
  return layer.forward({&x, 1}, context);
}

// In float32, in which they divide; the sums of a test are compared with a tolerance.

float nearest_e4m3(float value) {
  float best = 0;
  for (int code = 0; code < 0x7f; ++code) {
    const int exponent = code / 8;
    const float mantissa = static_cast<float>(code % 8) / 8;
    const float number =
        exponent == 0 ? std::ldexp(mantissa, -6) : std::ldexp(1 + mantissa, exponent - 7);
    if (std::abs(value - number) < std::abs(value - best))
      best = number;
  }
  return best;
}

float nearest_e2m1(float value) {
  constexpr std::array kNumbers{0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  float best = 0;
  for (const float number : kNumbers) {
    if (std::abs(std::abs(value) - number) < std::abs(std::abs(value) - best))
      best = number;
  }
  return std::copysign(best, value);
}

at::Tensor left_of_nvfp4(const at::Tensor& values) {
  at::Tensor left = at::empty_like(values);
  const auto from = values.accessor<float, 2>();
  auto to = left.accessor<float, 2>();
  float largest = 0;
  for (std::int64_t row = 0; row < from.size(0); ++row) {
    for (std::int64_t i = 0; i < from.size(1); ++i)
      largest = std::max(largest, std::abs(from[row][i]));
  }
  const float tensor_scale = largest / (448 * 6);
  for (std::int64_t row = 0; row < from.size(0); ++row) {
    for (std::int64_t begin = 0; begin < from.size(1); begin += 16) {
      const std::int64_t end = std::min(begin + 16, from.size(1));
      float of_block = 0;
      for (std::int64_t i = begin; i < end; ++i)
        of_block = std::max(of_block, std::abs(from[row][i]));
      const float scale = nearest_e4m3(of_block / 6 / tensor_scale) * tensor_scale;
      for (std::int64_t i = begin; i < end; ++i)
        to[row][i] = scale == 0 ? 0 : nearest_e2m1(from[row][i] / scale) * scale;
    }
  }
  return left;
}

TEST(NvFp4Linear, RoundsBlocksOfSixteen) {
  for (const std::int64_t width : {16, 37, 5}) {
    SCOPED_TRACE(width);
    const auto layer = narrow_layer("nvfp4_linear", {{"out_features", 3}}, width);
    const TaskRandom random(9);
    // Blocks from 1e-6 to 1 of the largest: the scales of some are denormal, or 0.
    const at::Tensor x = at::randn({8, width}).mul_(at::pow(10.0, -at::arange(8.0)).view({8, 1}));
    const auto parameters = layer->named_parameters();
    const at::Tensor& weight = parameters["weight"];

    const at::Tensor result = called(*layer, x);

    const at::Tensor expected =
        at::linear(left_of_nvfp4(x), left_of_nvfp4(weight.detach()), parameters["bias"]);
    EXPECT_TRUE(result.allclose(expected, 1e-5, 1e-6));
    EXPECT_FALSE(result.allclose(at::linear(x, weight, parameters["bias"]), 1e-3, 1e-3))
        << "nothing is rounded";
  }
}

TEST(NvFp4Linear, HasGradientsThatAreStraightThrough) {
  const auto layer = narrow_layer("nvfp4_linear", {{"out_features", 3}}, 20);
  const TaskRandom random(9);
  const at::Tensor x = at::randn({4, 20}).set_requires_grad(true);
  const at::Tensor gradient = at::randn({4, 3});
  const at::Tensor weight = layer->named_parameters()["weight"];

  called(*layer, x).backward(gradient);

  EXPECT_TRUE(x.grad().allclose(gradient.mm(left_of_nvfp4(weight.detach())), 1e-5, 1e-6));
  EXPECT_TRUE(weight.grad().allclose(gradient.t().mm(left_of_nvfp4(x.detach())), 1e-5, 1e-6));
}

TEST(NvFp4Linear, TakesZerosAndLeavesNumbersThatAreNone) {
  const auto layer = narrow_layer("nvfp4_linear", {{"out_features", 3}, {"bias", false}}, 20);
  EXPECT_TRUE(at::equal(called(*layer, at::zeros({2, 20})), at::zeros({2, 3})));
  at::Tensor x = at::zeros({2, 20});
  x[0][1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(called(*layer, x)[0].isfinite().any().item<bool>());
}

TEST(Fp8Linear, IsTheProductOfItsRecipe) {
  const TaskRandom random(9);
  const at::Tensor x = at::randn({4, 20});
  for (const bool is_rowwise : {false, true}) {
    const auto layer = narrow_layer(
        "fp8_linear", {{"out_features", 3}, {"recipe", is_rowwise ? "rowwise" : "tensorwise"}}, 20);
    const auto parameters = layer->named_parameters();
    const at::Tensor wanted =
        float8_linear(x, parameters["weight"], parameters["bias"],
                      is_rowwise ? Float8Scaling::kRowwise : Float8Scaling::kTensorwise);
    EXPECT_TRUE(at::equal(called(*layer, x), wanted));
    EXPECT_FALSE(at::equal(wanted, at::linear(x, parameters["weight"], parameters["bias"])));
  }
}

}  // namespace
}  // namespace treadle::testing
