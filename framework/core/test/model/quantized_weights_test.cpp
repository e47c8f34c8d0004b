// Weights in fewer bits: what is stored by hand, how far it is from what was there, and what is
// refused.
#include <treadle/core/model/quantized_weights.h>

#include <functional>
#include <limits>
#include <string>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kInf = std::numeric_limits<float>::infinity();

std::string storage_failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const StorageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// The largest |dequantised - weight| / scale of all elements.
double largest_error(const at::Tensor& weight) {
  const QuantizedWeight quantized = quantize(weight);
  const at::Tensor exact = weight.to(at::kDouble);
  return (dequantize(quantized).to(at::kDouble) - exact)
      .abs()
      .div(quantized.scale.to(at::kDouble))
      .max()
      .item<double>();
}

TEST(QuantizedWeights, AreWhatTheFormulaGivesByHand) {
  // Scales 1, 0.5 and 1: what is halfway goes to the even neighbour, nothing is truncated.
  const at::Tensor weight =
      at::tensor({127.0F, 0.5F, 1.5F, -2.5F, 2.6F,  //
                  -63.5F, 0.5F, 0.75F, 1.25F, -0.2F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F})
          .view({3, 5});

  const QuantizedWeight quantized = quantize(weight);

  EXPECT_EQ(quantized.values.scalar_type(), at::kChar);
  EXPECT_TRUE(at::equal(
      quantized.values,
      at::tensor({127, 0, 2, -2, 3, -127, 1, 2, 2, 0, 0, 0, 0, 0, 0}, at::kChar).view({3, 5})));
  EXPECT_EQ(quantized.scale.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(quantized.scale, at::tensor({1.0F, 0.5F, 1.0F}).view({3, 1})));
  EXPECT_TRUE(at::equal(dequantize(quantized), at::tensor({127.0F, 0.0F, 2.0F, -2.0F, 3.0F,  //
                                                           -63.5F, 0.5F, 1.0F, 1.0F, 0.0F,   //
                                                           0.0F, 0.0F, 0.0F, 0.0F, 0.0F})
                                                   .view({3, 5})));
}

TEST(QuantizedWeights, AreNoFurtherThanHalfAScaleFromTheWeights) {
  constexpr double kHalf = 0.5 + 1e-5;  // as the header has it
  for (const double size : {1e-30, 1e-3, 1.0, 1e30}) {
    EXPECT_LE(largest_error(at::randn({64, 31}) * size), kHalf) << size;
    EXPECT_LE(largest_error(at::randn({8, 3, 5, 5}) * size), kHalf) << size;
  }
  EXPECT_LE(largest_error(at::linspace(-1, 1, 100001).view({1, -1})), kHalf);
  EXPECT_GE(largest_error(at::linspace(-1, 1, 100001).view({1, -1})), 0.49) << "the bound is tight";
  EXPECT_LE(largest_error(at::randn({16, 16}, at::kDouble)), kHalf);
  EXPECT_LE(largest_error(at::randn({16, 16}).to(at::kBFloat16)), kHalf);
  EXPECT_LE(largest_error(at::randn({16, 16}).to(at::kHalf)), kHalf);
  // Where float32 has few digits left.
  EXPECT_LE(largest_error(at::linspace(-1, 1, 1001).view({1, -1}) * 2e-43), kHalf);
}

TEST(QuantizedWeights, HaveAScaleForEachChannel) {
  // One scale for all would make zeros of the small channel.
  const at::Tensor weight = at::tensor({1000.0F, -500.0F, 0.001F, -0.0005F}).view({2, 1, 2});

  const QuantizedWeight quantized = quantize(weight);

  EXPECT_THAT(quantized.scale.sizes().vec(), ElementsAre(2, 1, 1));
  EXPECT_TRUE(dequantize(quantized).allclose(weight, /*rtol=*/0.01, /*atol=*/0));
}

TEST(QuantizedWeights, AreTheParametersOfTwoDimensionsAndMore) {
  const NamedTensors weights{
      {"dense.weight", at::randn({4, 3})},   {"dense.bias", at::randn({4})},
      {"empty", at::zeros({0, 3})},          {"ids", at::ones({2, 2}, at::kLong)},
      {"mask", at::ones({2, 2}, at::kBool)}, {"table", at::randn({4, 3})}};

  const NamedTensors stored = convert_weights(weights, {"table"}, WeightDtype::kInt8);

  EXPECT_THAT(stored, SizeIs(7));
  EXPECT_EQ(stored.at("dense.weight").scalar_type(), at::kChar);
  EXPECT_EQ(stored.at("dense.weight.scale").sizes(), at::IntArrayRef({4, 1}));
  for (const char* const name : {"dense.bias", "empty", "ids", "mask", "table"}) {
    EXPECT_EQ(stored.at(name).scalar_type(), weights.at(name).scalar_type()) << name;
    EXPECT_TRUE(at::equal(stored.at(name), weights.at(name))) << name;
  }
}

TEST(QuantizedWeights, OrAllParametersInAnotherPrecisionRoundedToNearest) {
  // Between two neighbours of bfloat16, 1 and 1 + 2^-7: three quarters of the way.
  const float between = 1 + 0.75F / 128;
  const NamedTensors weights{{"weight", at::full({2, 2}, between)},
                             {"bias", at::full({2}, between)},
                             {"mean", at::full({2}, between)},
                             {"count", at::ones({}, at::kLong)}};

  const NamedTensors stored = convert_weights(weights, {"mean"}, WeightDtype::kBFloat16);

  EXPECT_THAT(stored, SizeIs(4));
  for (const char* const name : {"weight", "bias"}) {
    EXPECT_EQ(stored.at(name).scalar_type(), at::kBFloat16) << name;
    EXPECT_EQ(stored.at(name).max().item<float>(), 1 + 1.0F / 128) << name;
  }
  EXPECT_EQ(stored.at("mean").scalar_type(), at::kFloat);
  EXPECT_EQ(stored.at("count").scalar_type(), at::kLong);
  const NamedTensors wide{{"weight", at::full({2, 2}, 0.1, at::kDouble)}};
  EXPECT_EQ(convert_weights(wide, {}, WeightDtype::kFloat32).at("weight").scalar_type(),
            at::kFloat);
  EXPECT_EQ(convert_weights(wide, {}, WeightDtype::kFloat16).at("weight").scalar_type(), at::kHalf);
}

TEST(QuantizedWeights, ThatCannotBeStoredNameTheParameter) {
  const auto refusal = [](const NamedTensors& weights, WeightDtype dtype) {
    return storage_failure([&] { convert_weights(weights, {}, dtype); });
  };
  NamedTensors weights{{"a", at::ones({2, 2})}, {"dense.weight", at::ones({2, 2})}};
  weights.at("dense.weight")[1][0] = kInf;
  for (const NamedWeightDtype& one : weight_dtypes()) {
    EXPECT_EQ(refusal(weights, one.dtype),
              "parameter dense.weight: expected finite values, got inf at [1, 0]; keep the dtype "
              "that the model was trained in, or train it again")
        << one.name;
  }
  weights.at("dense.weight")[1][0] = 70000;
  EXPECT_EQ(refusal(weights, WeightDtype::kFloat16),
            "parameter dense.weight: expected values that float16 can hold, got 70000 at [1, 0]; "
            "choose a dtype with a larger range, or keep the one that the model was trained in");
  EXPECT_EQ(refusal(weights, WeightDtype::kInt8), "nothing was thrown");
  EXPECT_THAT(refusal({{"w", at::full({2, 2}, 1e300, at::kDouble)}}, WeightDtype::kInt8),
              HasSubstr("parameter w: expected channels that float32 can hold, got one with 1e+300 "
                        "at [0, 0]"));
  weights.emplace("a.scale", at::ones({3}));
  EXPECT_EQ(refusal(weights, WeightDtype::kInt8),
            "parameter a: its scale would be called a.scale, which is the name of another tensor; "
            "choose float32, bfloat16 or float16, or rename one of them in the model");
}

/// Linear and BatchNorm: parameters of one and two dimensions, and buffers.
struct NormedNet : torch::nn::Module {
  NormedNet()
      : dense(register_module("dense", torch::nn::Linear(3, 2))),
        norm(register_module("norm", torch::nn::BatchNorm1d(2))) {}
  torch::nn::Linear dense;
  torch::nn::BatchNorm1d norm;
};

NamedTensors quantized_weights_of(const NormedNet& net) {
  NamedTensors weights;
  for (const auto& item : net.named_parameters())
    weights.emplace(item.key(), item.value().detach().clone());
  for (const auto& item : net.named_buffers())
    weights.emplace(item.key(), item.value().clone());
  return convert_weights(weights,
                         {"norm.num_batches_tracked", "norm.running_mean", "norm.running_var"},
                         WeightDtype::kInt8);
}

TEST(QuantizedWeights, AreLoadedAsNumbersOfTheModelsDtype) {
  NormedNet saved;
  const NamedTensors stored = quantized_weights_of(saved);
  ASSERT_EQ(stored.at("dense.weight").scalar_type(), at::kChar);
  const at::Tensor expected = dequantized(stored, "dense.weight");

  NormedNet loaded;
  EXPECT_TRUE(compare_weights(loaded, stored).empty()) << compare_weights(loaded, stored).text();
  load_weights(loaded, stored);
  EXPECT_TRUE(at::equal(loaded.dense->weight, expected));
  EXPECT_TRUE(at::equal(loaded.dense->bias, saved.dense->bias));

  NormedNet half;
  half.dense->to(at::kBFloat16);
  load_weights(half, stored);
  EXPECT_EQ(half.dense->weight.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(half.dense->weight, expected.to(at::kBFloat16)));
}

TEST(QuantizedWeights, WithoutAUsableScaleAreRefused) {
  NormedNet net;
  const at::Tensor before = net.dense->weight.detach().clone();
  const auto expect_refusal = [&](const NamedTensors& stored, const std::string& got) {
    const std::string expected =
        "saved weights do not fit the model; unusable scales: dense.weight.scale (expected float32 "
        "[2, 1] of finite numbers that are not negative, got " +
        got +
        "); int8 weights cannot be read without their scales: export the model again, or take an "
        "undamaged copy of the file";
    EXPECT_EQ(storage_failure([&] { load_weights(net, stored); }), expected);
    EXPECT_EQ(storage_failure([&] { load_matching_weights(net, stored); }), expected);
    EXPECT_TRUE(at::equal(net.dense->weight, before));
  };
  NamedTensors stored = quantized_weights_of(NormedNet());
  const auto with_scale = [&](const at::Tensor& scale) {
    stored["dense.weight.scale"] = scale;
    return stored;
  };

  expect_refusal(with_scale(at::ones({3, 1})), "float32 [3, 1]");
  expect_refusal(with_scale(at::ones({2})), "float32 [2]");
  expect_refusal(with_scale(at::ones({2, 1}, at::kDouble)), "float64 [2, 1]");
  expect_refusal(with_scale(at::tensor({1.0F, kInf}).view({2, 1})), "inf at [1, 0]");
  expect_refusal(with_scale(at::tensor({-1.0F, 1.0F}).view({2, 1})), "-1 at [0, 0]");
  stored.erase("dense.weight.scale");
  expect_refusal(stored, "nothing");
}

TEST(QuantizedWeights, BelongTogetherWithTheirScalesInTheDifference) {
  NamedTensors stored = quantized_weights_of(NormedNet());
  stored["old.weight"] = stored.at("dense.weight");
  stored["old.weight.scale"] = stored.at("dense.weight.scale");
  stored["norm.bias.scale"] = at::ones({2});
  NormedNet net;

  const WeightsDifference rest = load_matching_weights(net, stored);

  EXPECT_THAT(rest.unexpected, ElementsAre("norm.bias.scale", "old.weight"));
  EXPECT_THAT(rest.missing, IsEmpty());
  EXPECT_TRUE(at::equal(net.dense->weight, dequantized(stored, "dense.weight")));
}

}  // namespace
}  // namespace treadle
