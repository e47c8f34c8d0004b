// Values of layers that libtorch has no module for, or another form of.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/core/model/layer.h>
#include <treadle/tensor/task_random.h>

#include "layer_on.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

// Of 64 units on 32 numbers: standard deviations √(2 / 96) and √(2 / 128), by 8192 and 16384 draws.
TEST(Lstm, BeginsAsXavierAndWithForgetGatesOpen) {
  const auto layer = layer_on("lstm", {{"hidden_size", 64}, {"init", "xavier_normal"}}, {5, 32});
  const auto weights = layer->named_parameters();
  EXPECT_NEAR(weights["weight_ih_l0"].std().item<double>(), std::sqrt(2.0 / 96), 0.005);
  EXPECT_NEAR(weights["weight_hh_l0"].std().item<double>(), std::sqrt(2.0 / 128), 0.005);
  const at::Tensor bias = weights["bias_ih_l0"].add(weights["bias_hh_l0"]).view({4, 64});
  EXPECT_TRUE(at::equal(bias.mean(1), at::tensor({0.0, 1.0, 0.0, 0.0}, at::kDouble)));
}

// By 8192 draws and more: the error of a standard deviation is below 1 %.
TEST(NormalWeights, HaveTheStandardDeviationThatIsAskedFor) {
  const auto expect = [](const char* name, Json parameters, const char* inner, const char* last) {
    const auto layer = layer_on(name, parameters, {5, 64});
    const auto weights = layer->named_parameters();
    const auto std = [&](const std::string& of) {
      return weights[of + "weight"].std().item<double>();
    };
    EXPECT_NEAR(std(inner), 0.3, 0.01) << name;
    EXPECT_NEAR(std(last), parameters.contains("residual_init_std") ? 0.1 : 0.3, 0.01) << name;
    for (const auto& parameter : weights) {
      if (parameter.key().ends_with("bias")) {
        EXPECT_EQ(parameter.value().abs().max().item<double>(), 0) << name;
      }
    }
  };
  const Json normal{{"init", "normal"}, {"init_std", 0.3}};
  const auto with = [&](Json more) {
    more.update(normal);
    return more;
  };
  expect("dense", with({{"out_features", 128}}), "", "");
  expect("attention", normal, "in_", "out_");
  expect("attention", with({{"residual_init_std", 0.1}}), "in_", "out_");
  expect("gated_feed_forward", with({{"hidden_features", 128}, {"residual_init_std", 0.1}}), "up_",
         "down_");
}

TEST(NormalWeights, NeedTheInitializationThatTheyAreAbout) {
  try {
    layer_on("dense", {{"out_features", 2}, {"init_std", 0.1}}, {3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"init\" is \"pytorch\", not \"normal\""));
  }
}

// Against the definition: y[t] = b + Σ_k w[k] x[t - 2 (2 - k)].
TEST(CausalConv1d, LooksBackOnly) {
  const auto layer = layer_on(
      "conv1d", {{"out_channels", 1}, {"kernel_size", 3}, {"dilation", 2}, {"padding", "causal"}},
      {1, 7});
  const auto weights = layer->named_parameters();
  const at::Tensor x = at::randn({1, 1, 7}, at::kDouble);
  const at::Tensor y = result_on(*layer, x);
  ASSERT_EQ(y.sizes(), x.sizes());
  for (std::int64_t t = 0; t < 7; ++t) {
    double wanted = weights["bias"].item<double>();
    for (std::int64_t k = 0; k < 3; ++k) {
      if (const std::int64_t from = t - 2 * (2 - k); from >= 0)
        wanted += weights["weight"][0][0][k].item<double>() * x[0][0][from].item<double>();
    }
    EXPECT_NEAR(y[0][0][t].item<double>(), wanted, 1e-14) << t;
  }
}

TEST(ScaledRelu, HasASlopeOfElevenTenths) {
  const auto layer = layer_on("scaled_relu", Json::object(), {4});
  const at::Tensor x = at::tensor({-2.0, 0.0, 0.5, 10.0}, at::kDouble).set_requires_grad(true);

  const at::Tensor y = result_on(*layer, x.unsqueeze(0));
  y.sum().backward();

  EXPECT_TRUE(
      at::allclose(y, at::tensor({0.0, 0.0, 0.55, 11.0}, at::kDouble).unsqueeze(0), 0, 1e-15));
  EXPECT_TRUE(at::equal(x.grad(), at::tensor({0.0, 0.0, 1.1, 1.1}, at::kDouble)));
}

TEST(InstanceNorm, IsPyTorchs) {
  const TaskRandom random(7);
  for (const std::vector<std::int64_t>& row :
       std::vector<std::vector<std::int64_t>>{{3, 8}, {3, 4, 5}, {3, 2, 3, 4}}) {
    std::vector<std::int64_t> sizes = row;
    sizes.insert(sizes.begin(), 6);
    const at::Tensor x = at::randn(sizes, at::kDouble).mul(3).add(2);
    const auto plain = layer_on("instance_norm", {{"eps", 1e-3}}, row);
    const auto affine = layer_on("instance_norm", {{"affine", true}}, row);
    const auto weights = affine->named_parameters();
    {
      const at::NoGradGuard no_gradients;
      weights["weight"].normal_();
      weights["bias"].normal_();
    }

    EXPECT_TRUE(plain->parameters().empty());
    const auto torchs = [&](const at::Tensor& weight, const at::Tensor& bias, double eps) {
      return at::instance_norm(x, weight, bias, {}, {}, /*use_input_stats=*/true, /*momentum=*/0.1,
                               eps, /*cudnn_enabled=*/false);
    };
    EXPECT_TRUE(at::allclose(result_on(*plain, x), torchs({}, {}, 1e-3), 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(result_on(*affine, x),
                             torchs(weights["weight"], weights["bias"], 1e-5), 1e-12, 1e-12));
  }
}

TEST(InstanceNorm, RefusesChannelsOfOnePosition) {
  for (const std::vector<std::int64_t>& row :
       std::vector<std::vector<std::int64_t>>{{3, 1}, {3, 1, 1}}) {
    try {
      layer_on("instance_norm", Json::object(), row);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("positions of each channel, of which [B, 3, 1"));
    }
  }
}

std::map<std::string, std::vector<std::int64_t>> parameter_sizes(const Layer& layer) {
  std::map<std::string, std::vector<std::int64_t>> sizes;
  for (const auto& item : layer.named_parameters())
    sizes[item.key()] = item.value().sizes().vec();
  return sizes;
}

using Sizes = std::map<std::string, std::vector<std::int64_t>>;

/// max(0, w v + b), or without the maximum.
double linear_of(const std::vector<double>& v, const at::Tensor& weight, double bias, bool relu) {
  double sum = bias;
  for (std::size_t i = 0; i < v.size(); ++i)
    sum += v[i] * weight[static_cast<std::int64_t>(i)].item<double>();
  return relu ? std::max(0.0, sum) : sum;
}

// Gorishniy et al. (2022), formulas (1), (2) and (3), one number after the other.

std::vector<double> periodic(double x, const at::Tensor& frequencies) {
  std::vector<double> v;
  for (double (*const wave)(double) :
       {+[](double a) { return std::cos(a); }, +[](double a) { return std::sin(a); }}) {
    for (std::int64_t i = 0; i < frequencies.size(0); ++i)
      v.push_back(wave(2 * std::numbers::pi * frequencies[i].item<double>() * x));
  }
  return v;
}

std::vector<double> piecewise_linear(double x, const std::vector<double>& edges) {
  const std::size_t bins = edges.size() - 1;
  std::vector<double> e;
  for (std::size_t t = 1; t <= bins; ++t) {
    if (x < edges[t - 1] && t > 1) {
      e.push_back(0);
    } else if (x >= edges[t] && t < bins) {
      e.push_back(1);
    } else {
      e.push_back((x - edges[t - 1]) / (edges[t] - edges[t - 1]));
    }
  }
  return e;
}

TEST(PeriodicEmbedding, IsCosinesAndSinesOfItsFrequencies) {
  const auto layer = layer_on("periodic_embedding", {{"n_frequencies", 5}, {"sigma", 0.7}}, {3});
  const at::Tensor frequencies = layer->named_parameters()["frequencies"];
  const TaskRandom random(3);
  const at::Tensor x = at::randn({4, 3}, at::kDouble);

  const at::Tensor y = result_on(*layer, x);

  ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{4, 3, 10}));
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t feature = 0; feature < 3; ++feature) {
      const auto expected = periodic(x[row][feature].item<double>(), frequencies[feature]);
      EXPECT_TRUE(at::allclose(y[row][feature], at::tensor(expected, at::kDouble), 0, 1e-14));
    }
  }
}

TEST(PeriodicEmbedding, HasALinearMapForEachFeatureOrOneForAll) {
  const Json plr{{"n_frequencies", 5}, {"embedding_dim", 2}};
  const TaskRandom random(3);
  const at::Tensor x = at::randn({4, 3}, at::kDouble);
  for (const bool lite : {false, true}) {
    for (const bool relu : {false, true}) {
      Json parameters = plr;
      parameters["lite"] = lite;
      parameters["activation"] = relu;
      const auto layer = layer_on("periodic_embedding", parameters, {3});
      auto weights = layer->named_parameters();

      const at::Tensor y = result_on(*layer, x);

      for (std::int64_t row = 0; row < 4; ++row) {
        for (std::int64_t feature = 0; feature < 3; ++feature) {
          const auto v = periodic(x[row][feature].item<double>(), weights["frequencies"][feature]);
          for (std::int64_t i = 0; i < 2; ++i) {
            const at::Tensor weight =
                lite ? weights["weight"][i] : weights["weight"][feature].select(1, i);
            const at::Tensor bias = lite ? weights["bias"][i] : weights["bias"][feature][i];
            EXPECT_NEAR(y[row][feature][i].item<double>(),
                        linear_of(v, weight, bias.item<double>(), relu), 1e-14);
          }
        }
      }
    }
  }
}

TEST(PeriodicEmbedding, DrawsFrequenciesWithItsDeviation) {
  const auto layer = layer_on("periodic_embedding", {{"n_frequencies", 5000}, {"sigma", 0.3}}, {2});
  const at::Tensor drawn = layer->named_parameters()["frequencies"];

  EXPECT_NEAR(drawn.std().item<double>(), 0.3, 0.01);
  EXPECT_NEAR(drawn.mean().item<double>(), 0, 0.01);
}

TEST(PiecewiseLinearEmbedding, IsThePapersFormula) {
  const std::vector<std::vector<double>> edges{{-1, 0, 2}, {-0.5, 0.5}, {-2, -1, 0.5, 1}};
  const auto layer = layer_on("piecewise_linear_embedding", {{"bins", edges}}, {3});
  const at::Tensor x = at::linspace(-3, 3, 25, at::kDouble);

  const at::Tensor y = result_on(*layer, x.unsqueeze(1).expand({25, 3}));

  ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{25, 3, 3}));
  for (std::int64_t row = 0; row < 25; ++row) {
    for (std::size_t feature = 0; feature < 3; ++feature) {
      auto expected = piecewise_linear(x[row].item<double>(), edges[feature]);
      expected.resize(3);  // zeros behind fewer bins
      EXPECT_TRUE(at::allclose(y[row][static_cast<std::int64_t>(feature)],
                               at::tensor(expected, at::kDouble), 0, 1e-14))
          << "feature " << feature << " at " << x[row].item<double>();
    }
  }
}

TEST(PiecewiseLinearEmbedding, SpacesANumberOfBinsEvenly) {
  const auto spaced =
      layer_on("piecewise_linear_embedding", {{"bins", 3}, {"range", {-1, 2}}}, {2});
  const auto listed = layer_on("piecewise_linear_embedding", {{"bins", {-1, 0, 1, 2}}}, {2});
  const auto usual = layer_on("piecewise_linear_embedding", {{"bins", 6}}, {2});
  const at::Tensor x = at::tensor({-4.0, -0.25, 1.5, 7.0}, at::kDouble).reshape({2, 2});

  EXPECT_TRUE(at::allclose(result_on(*spaced, x), result_on(*listed, x), 0, 1e-14));
  EXPECT_TRUE(at::allclose(result_on(*usual, x)[0][1],
                           at::tensor({1.0, 1.0, 0.75, 0.0, 0.0, 0.0}, at::kDouble), 0, 1e-14));
}

TEST(PiecewiseLinearEmbedding, HasALinearMapForEachFeature) {
  const std::vector<double> edges{-1, 0, 1};
  for (const bool relu : {false, true}) {
    const auto layer = layer_on(
        "piecewise_linear_embedding",
        {{"bins", edges}, {"embedding_dim", 4}, {"activation", relu}, {"flatten", true}}, {3});
    auto weights = layer->named_parameters();
    const TaskRandom random(5);
    const at::Tensor x = at::randn({6, 3}, at::kDouble);

    const at::Tensor y = result_on(*layer, x);

    ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{6, 12}));
    for (std::int64_t row = 0; row < 6; ++row) {
      for (std::int64_t feature = 0; feature < 3; ++feature) {
        const auto e = piecewise_linear(x[row][feature].item<double>(), edges);
        for (std::int64_t i = 0; i < 4; ++i) {
          EXPECT_NEAR(y[row][4 * feature + i].item<double>(),
                      linear_of(e, weights["weight"][feature].select(1, i),
                                weights["bias"][feature][i].item<double>(), relu),
                      1e-14);
        }
      }
    }
  }
}

// As rtdl_num_embeddings has them: PeriodicEmbeddings(3, 4, n_frequencies=5), lite or not, and
// PiecewiseLinearEmbeddings of two bins for each of three features.
TEST(NumericEmbeddings, HaveTheirAuthorsParameters) {
  const Json plr{{"n_frequencies", 5}, {"embedding_dim", 4}};
  Json lite = plr;
  lite["lite"] = true;

  EXPECT_EQ(parameter_sizes(*layer_on("periodic_embedding", plr, {3})),
            (Sizes{{"frequencies", {3, 5}}, {"weight", {3, 10, 4}}, {"bias", {3, 4}}}));
  EXPECT_EQ(parameter_sizes(*layer_on("periodic_embedding", lite, {3})),
            (Sizes{{"frequencies", {3, 5}}, {"weight", {4, 10}}, {"bias", {4}}}));
  EXPECT_EQ(parameter_sizes(*layer_on("piecewise_linear_embedding",
                                      {{"bins", {-1, 0, 1}}, {"embedding_dim", 4}}, {3})),
            (Sizes{{"weight", {3, 2, 4}}, {"bias", {3, 4}}}));
}

std::string refusal_on(const std::string& name, const Json& parameters,
                       std::vector<std::int64_t> row = {3}) {
  try {
    layer_on(name, parameters, std::move(row));
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(NumericEmbeddings, RefuseWhatHasNoEffectOrDoesNotFit) {
  EXPECT_EQ(refusal_on("periodic_embedding", {{"lite", true}}),
            "/lite: is about the linear map behind the encoding, and there is none: give "
            "\"embedding_dim\" as well");
  EXPECT_THAT(refusal_on("piecewise_linear_embedding", {{"activation", true}}),
              HasSubstr("/activation: is about the linear map"));
  EXPECT_EQ(refusal_on("piecewise_linear_embedding", {{"bins", {0, 2, 2}}}),
            "/bins: each edge must be more than the one before it, got 2.0 after 2.0");
  EXPECT_THAT(refusal_on("piecewise_linear_embedding", {{"bins", 4}, {"range", {1, 1}}}),
              HasSubstr("/range: expected the lower end and the upper one, got [1,1]"));
  EXPECT_THAT(refusal_on("piecewise_linear_embedding", {{"bins", {0, 1}}, {"range", {0, 1}}}),
              HasSubstr("/range: is for a number of bins"));
  EXPECT_EQ(refusal_on("piecewise_linear_embedding", {{"bins", {{0, 1}, {0, 2}}}}),
            "has bins for 2 features, got [B, 3]; give a list of edges for each feature, or one "
            "for all");
  EXPECT_THAT(refusal_on("periodic_embedding", Json::object(), {3, 4}),
              HasSubstr("takes rows of numbers [B, features], got [B, 3, 4]"));
}

}  // namespace
}  // namespace treadle::testing
