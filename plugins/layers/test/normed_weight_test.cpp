// Layers around another one, and ensembles, beside their formulas.
#include <cmath>
#include <string>
#include <vector>

#include <ATen/ops/_weight_norm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/layer.h>

#include "layer_on.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& name, const Json& parameters,
                       std::vector<std::int64_t> row) {
  try {
    layer_on(name, parameters, std::move(row));
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

const Json kFive{{"use", "dense"}, {"out_features", 5}};
const Json kTransposed{{"use", "conv_transpose2d"}, {"out_channels", 3}, {"kernel_size", 2}};

TEST(WeightNorm, BeginsAsTheLayerWithin) {
  const at::Tensor x = at::randn({7, 4}, at::kDouble);
  const auto plain = layer_on("dense", {{"out_features", 5}}, {4});
  const auto normed = layer_on("weight_norm", {{"layer", kFive}}, {4});

  EXPECT_TRUE(at::allclose(result_on(*normed, x), result_on(*plain, x), 1e-14, 1e-14));
}

TEST(WeightNorm, IsPyTorchsOfBothItsParameters) {
  for (const std::int64_t dim : {0, 1}) {
    const auto layer = layer_on("weight_norm", {{"layer", kFive}, {"dim", dim}}, {4});
    auto weights = layer->named_parameters();
    {
      const at::NoGradGuard no_gradients;
      weights["weight_g"].normal_();
      weights["layer.weight"].normal_();
    }
    const at::Tensor x = at::randn({7, 4}, at::kDouble);
    const at::Tensor v = weights["layer.weight"].detach().set_requires_grad(true);
    const at::Tensor g = weights["weight_g"].detach().set_requires_grad(true);
    const at::Tensor expected =
        at::linear(x, at::_weight_norm(v, g, dim), weights["layer.bias"].detach());

    const at::Tensor result = result_on(*layer, x);
    result.square().sum().backward();
    expected.square().sum().backward();

    EXPECT_TRUE(at::allclose(result, expected, 1e-13, 1e-13));
    EXPECT_TRUE(at::allclose(weights["layer.weight"].grad(), v.grad(), 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(weights["weight_g"].grad(), g.grad(), 1e-12, 1e-12));
  }
}

// Of a transposed convolution, outputs are dimension 1 of the weight.
at::Tensor matrix_of(const at::Tensor& weight, bool transposed) {
  return (transposed ? weight.movedim(1, 0) : weight).flatten(1).detach();
}

TEST(SpectralNorm, DividesByTheLargestSingularValueOnceItHasConverged) {
  for (const bool transposed : {false, true}) {
    const auto layer =
        layer_on("spectral_norm", {{"layer", transposed ? kTransposed : kFive}},
                 transposed ? std::vector<std::int64_t>{4, 3, 3} : std::vector<std::int64_t>{4});
    const at::Tensor x =
        transposed ? at::randn({2, 4, 3, 3}, at::kDouble) : at::randn({2, 4}, at::kDouble);
    layer->train();
    for (int step = 0; step < 500; ++step)
      result_on(*layer, x);
    layer->eval();

    const auto weights = layer->named_parameters();
    const at::Tensor& weight = weights["layer.weight"];
    const at::Tensor normed =
        weight.div(at::linalg_svdvals(matrix_of(weight, transposed)).max().item<double>());
    const at::Tensor expected = transposed ? at::conv_transpose2d(x, normed, weights["layer.bias"])
                                           : at::linear(x, normed, weights["layer.bias"]);
    EXPECT_TRUE(at::allclose(result_on(*layer, x), expected, 1e-10, 1e-10));
  }
}

TEST(SpectralNorm, GathersTheVectorsOfTheWeightItHas) {
  const auto layer = layer_on("spectral_norm", {{"layer", kFive}}, {4});
  const at::NoGradGuard no_gradients;
  const at::Tensor weight = layer->named_parameters()["layer.weight"];
  weight.copy_(at::randn_like(weight));  // as an average: no forward has seen it

  dynamic_cast<GathersStatistics&>(*layer).begin_gathering();

  layer->eval();
  const at::Tensor x = at::randn({2, 4}, at::kDouble);
  const at::Tensor normed =
      weight.div(at::linalg_svdvals(matrix_of(weight, false)).max().item<double>());
  EXPECT_TRUE(at::allclose(result_on(*layer, x),
                           at::linear(x, normed, layer->named_parameters()["layer.bias"]), 1e-2,
                           1e-3));
}

TEST(SpectralNorm, TakesOneStepOfPowerIterationInAForwardOfTraining) {
  const auto layer = layer_on("spectral_norm", {{"layer", kFive}}, {4});
  const auto buffers = layer->named_buffers();
  const at::Tensor w = layer->named_parameters()["layer.weight"].detach();
  const at::Tensor v = buffers["v"].clone();
  const at::Tensor x = at::randn({2, 4}, at::kDouble);
  layer->eval();
  result_on(*layer, x);
  EXPECT_TRUE(at::equal(buffers["v"], v)) << "an evaluation changes nothing";

  layer->train();
  result_on(*layer, x);

  const at::Tensor wv = at::mv(w, v);
  const at::Tensor u = wv.div(wv.norm());
  const at::Tensor wu = at::mv(w.t(), u);
  EXPECT_TRUE(at::allclose(buffers["u"], u, 1e-14, 1e-14));
  EXPECT_TRUE(at::allclose(buffers["v"], wu.div(wu.norm()), 1e-14, 1e-14));
}

TEST(NormedWeight, NamesLayersThatItTakes) {
  EXPECT_THAT(refusal_of("weight_norm", {{"layer", "relu"}}, {4}),
              HasSubstr("such as \"dense\", \"head\" or \"conv2d\""));
  EXPECT_THAT(refusal_of("weight_norm", {{"layer", kFive}, {"dim", 2}}, {4}),
              HasSubstr("has \"dim\" 2, and the weight [5, 4]"));
}

TEST(BatchEnsembleDense, ScalesWhatGoesInAndComesOutOfOneWeight) {
  const auto layer = layer_on("batch_ensemble_dense", {{"members", 3}, {"out_features", 5}}, {4});
  auto weights = layer->named_parameters();
  EXPECT_TRUE(at::equal(weights["bias"][0], weights["bias"][2])) << "at first";
  {
    const at::NoGradGuard no_gradients;
    for (const char* name : {"r", "s", "bias"})
      weights[name].normal_();
  }
  const at::Tensor x = at::randn({7, 4}, at::kDouble);

  const at::Tensor result = result_on(*layer, x);

  for (std::int64_t member = 0; member < 3; ++member) {
    const at::Tensor expected = at::linear(x.mul(weights["r"][member]), weights["weight"])
                                    .mul(weights["s"][member])
                                    .add(weights["bias"][member]);
    EXPECT_TRUE(at::allclose(result.select(1, member), expected, 1e-13, 1e-13));
  }
}

TEST(BatchEnsembleDense, BeginsWithSignsWhereItIsToldTo) {
  const auto layer =
      layer_on("batch_ensemble_dense",
               {{"members", 8}, {"out_features", 2}, {"scaling_init", "random_signs"}}, {64});
  const at::Tensor r = layer->named_parameters()["r"];
  EXPECT_TRUE(r.abs().eq(1).all().item<bool>());
  EXPECT_NEAR(r.mean().item<double>(), 0, 4 / std::sqrt(512.0));
}

TEST(EnsembleDense, IsADenseLayerOfEachMember) {
  const auto layer = layer_on("ensemble_dense", {{"members", 3}, {"out_features", 5}}, {3, 4});
  const auto weights = layer->named_parameters();
  const at::Tensor x = at::randn({7, 3, 4}, at::kDouble);
  std::vector<at::Tensor> members;
  for (std::int64_t i = 0; i < 3; ++i)
    members.push_back(at::linear(x.select(1, i), weights["weight"][i].t(), weights["bias"][i]));

  EXPECT_TRUE(at::allclose(result_on(*layer, x), at::stack(members, 1), 1e-13, 1e-13));
}

TEST(EnsembleDense, NamesBothNumbersOfMembers) {
  EXPECT_THAT(refusal_of("ensemble_dense", {{"members", 3}, {"out_features", 5}}, {2, 4}),
              HasSubstr("has 3 members and takes [B, width], or [B, 3, width], got [B, 2, 4]"));
}

}  // namespace
}  // namespace treadle::testing
