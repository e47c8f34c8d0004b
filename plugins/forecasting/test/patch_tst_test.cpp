// PatchTST beside PyTorch's: numbers of patch_tst_reference.py, which says how it fills weights.
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>

#include "test/filled_network.h"

namespace treadle::testing {
namespace {

using PatchJson = nlohmann::json;
using ::testing::HasSubstr;

/// For windows [B, 20, 2].
std::shared_ptr<graph::Graph> patch_network(PatchJson parameters, OutputSpec output) {
  PatchJson builder = {{"use", "patch_tst"}, {"patch_len", 4}, {"stride", 2},
                       {"d_model", 4},       {"num_heads", 2}, {"dim_feedforward", 6},
                       {"num_layers", 2},    {"dropout", 0}};
  if (!parameters.is_null())
    builder.update(parameters);
  return network_of(std::move(builder), 20, 2, std::move(output));
}

/// A parameter, and Σ gradient_i cos(i / 2).
struct Slope {
  const char* name;
  double of_cosines;
};

struct PatchCase {
  const char* name;
  PatchJson parameters;
  std::vector<double> trained;    // [2, 3, 2]
  std::vector<double> evaluated;  // by the running statistics of that one batch
  std::vector<Slope> slopes;
};

// python3 plugins/forecasting/test/patch_tst_reference.py. Biases in front of a norm have no slope.
std::vector<PatchCase> patch_cases() {
  return {{"Plain",
           {},
           {-1.0690698189608148, -1.7926387322233677, 3.196686586402717, 2.381863439883742,
            2.0871665193727593, 3.024358025090532, 1.4159303071723623, 3.400416017741068,
            -1.2841360682858474, -1.6540295764677158, 4.72208708855943, 2.9877400879907903},
           {1.2798823187934527, 1.1402821995498693, 0.8967664011111671, 0.7765258356278635,
            0.4879459551554556, 0.6147475524340563, 2.99356757857053, 3.2283271988506876,
            1.6700723445547416, 1.672696660117768, 2.181432345477002, 2.0753774932919145},
           {{"embedding.weight", 15.915915702652327},
            {"embedding.bias", 0.27258866029873347},
            {"embedding.positions", -2.593582894627065},
            {"layers.0.in_weight", -5.603803656641933},
            {"layers.0.in_bias", 0.4583961821943294},
            {"layers.0.out_weight", 3.624819967585391},
            {"layers.0.out_bias", 0},
            {"layers.0.norm1_weight", -3.0183461469296984},
            {"layers.0.norm1_bias", -0.007448337464118921},
            {"layers.0.linear1_weight", 8.650696561895819},
            {"layers.0.linear1_bias", 0.13178996188500408},
            {"layers.0.linear2_weight", -3.3811394986731504},
            {"layers.0.linear2_bias", 0},
            {"layers.0.norm2_weight", 14.98635084625227},
            {"layers.0.norm2_bias", 0.07049488830872674},
            {"layers.1.in_weight", 2.422048711400638},
            {"layers.1.in_bias", 0.2614113106867745},
            {"layers.1.out_weight", 2.4855483188030028},
            {"layers.1.out_bias", 0},
            {"layers.1.norm1_weight", -10.144869218027026},
            {"layers.1.norm1_bias", -1.6273725628196603},
            {"layers.1.linear1_weight", 5.111179095032642},
            {"layers.1.linear1_bias", -1.8021873436896096},
            {"layers.1.linear2_weight", -8.694415872782766},
            {"layers.1.linear2_bias", 0},
            {"layers.1.norm2_weight", -24.071005986895894},
            {"layers.1.norm2_bias", 3.293845392145593},
            {"head.weight", 5.209186775640407},
            {"head.bias", 0.6895028677597588}}},
          {"WithAffineRevIN",
           {{"revin_affine", true}},
           {-0.11500966818480296, 2.1114540694620016, -3.2863456963242106, -1.9641668886802208,
            2.217221715051009, 0.14774215956880166, 3.196456063922489, 2.350072795446053,
            3.065434827647442, 4.08803244901691, 0.4981916985925201, 1.782384398050738},
           {-0.35462778510356374, 0.40546284104991326, -0.007539473400014929, 0.3700181786650194,
            1.388009459265268, 1.0928320946843086, 1.3260896429202162, 1.8093592288459694,
            2.083099813436509, 2.525395800908875, 2.688781221533176, 2.8324886994010385},
           {{"revin.weight", -2.6511435251990028},
            {"revin.bias", 0.7239512786671543},
            {"embedding.weight", 1.061976974625644},
            {"embedding.bias", -0.1887593511710616},
            {"embedding.positions", -2.0601621347387615},
            {"layers.0.in_weight", -10.505656951082575},
            {"layers.0.in_bias", 0.500543826808188},
            {"layers.0.out_weight", -1.9061879626525604},
            {"layers.0.out_bias", 0},
            {"layers.0.norm1_weight", 0.15855289343430418},
            {"layers.0.norm1_bias", 0.08933436832362313},
            {"layers.0.linear1_weight", -1.1851262832556817},
            {"layers.0.linear1_bias", -0.15021397144842663},
            {"layers.0.linear2_weight", -2.831285018343513},
            {"layers.0.linear2_bias", 0},
            {"layers.0.norm2_weight", 10.368976040304624},
            {"layers.0.norm2_bias", -0.03321780889707766},
            {"layers.1.in_weight", -3.3881708042068186},
            {"layers.1.in_bias", 0.019953900030785423},
            {"layers.1.out_weight", -1.783461850852929},
            {"layers.1.out_bias", 0},
            {"layers.1.norm1_weight", -0.20259656057524325},
            {"layers.1.norm1_bias", -0.08416063149692232},
            {"layers.1.linear1_weight", 0.10378831453477111},
            {"layers.1.linear1_bias", 0.16590333473223778},
            {"layers.1.linear2_weight", 0.2300629823968694},
            {"layers.1.linear2_bias", 0},
            {"layers.1.norm2_weight", -1.63054961710944},
            {"layers.1.norm2_bias", -1.026321670417488},
            {"head.weight", -5.132500308532688},
            {"head.bias", 0.799485112563981}}}};
}

TEST(PatchTst, HasValuesAndGradientsOfPyTorchs) {
  for (const PatchCase& one : patch_cases()) {
    SCOPED_TRACE(one.name);
    const auto network = patch_network(one.parameters, {"output", {3, 2}});
    auto parameters = network->named_parameters();
    ASSERT_EQ(parameters.size(), one.slopes.size());
    fill_parameters(*network);
    if (at::Tensor* const weight = parameters.find("net.revin.weight")) {
      const c10::NoGradGuard no_gradients;
      weight->add_(1);  // the inverse divides by it
    }
    network->train();

    const at::Tensor trained = forecast_of(*network, counted_windows(20));
    (trained.flatten() * at::arange(12, at::kDouble).cos()).sum().backward();

    EXPECT_TRUE(at::allclose(trained.flatten(), at::tensor(one.trained, at::kDouble), 1e-9, 1e-10))
        << trained;
    for (const Slope& slope : one.slopes) {
      const at::Tensor& gradient = parameters[std::string("net.") + slope.name].grad();
      const at::Tensor cosines = (at::arange(gradient.numel(), at::kDouble) * 0.5).cos();
      EXPECT_NEAR((gradient.flatten() * cosines).sum().item<double>(), slope.of_cosines, 1e-8)
          << slope.name;
    }
    network->eval();
    EXPECT_TRUE(at::allclose(forecast_of(*network, counted_windows(20)).flatten(),
                             at::tensor(one.evaluated, at::kDouble), 1e-9, 1e-10));
  }
}

// By hand: 0 … 5 and twice the 5 behind them, in patches of four that begin two steps apart.
TEST(Patches, RepeatTheLastValueBehindTheEnd) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 6, 1}, at::kFloat)};
  const auto layer =
      plugin()
          .make<LayerFactory>("patches", {{"patch_len", 4}, {"stride", 2}, {"end_padding", 2}})
          ->create(spec);
  const at::Tensor x = at::arange(6, at::kFloat).view({1, 6, 1});
  LayerContext context;

  EXPECT_TRUE(
      layer->forward({&x, 1}, context)
          .equal(at::tensor({0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 5, 5}, at::kFloat).view({1, 1, 3, 4})));
}

// What a channel becomes does not depend on the others, and all are treated alike.
TEST(PatchTst, TreatsChannelsIndependently) {
  const c10::NoGradGuard no_gradients;
  const auto network = patch_network({}, {"output", {3, 2}});
  network->eval();
  const at::Tensor x = counted_windows(20);
  const at::Tensor twice = at::cat({x.narrow(2, 1, 1), x.narrow(2, 1, 1)}, 2);

  const at::Tensor result = forecast_of(*network, twice.contiguous());

  EXPECT_TRUE(at::allclose(result.select(2, 0), result.select(2, 1), 1e-12, 1e-12));
  EXPECT_TRUE(
      at::allclose(result.select(2, 1), forecast_of(*network, x).select(2, 1), 1e-12, 1e-12));
}

// Quantiles: the numbers of the first one, then those of the second. The head's rows are the steps
// of the first, then those of the second.
TEST(PatchTst, HasSeveralEstimatesOfANumber) {
  const c10::NoGradGuard no_gradients;
  const auto network =
      patch_network({}, {"output", {3, 4}, {Estimate::kLocation, Estimate::kLocation}});
  const auto first = patch_network({}, {"output", {3, 2}});
  network->eval();
  first->eval();
  auto of_first = first->named_parameters();
  for (const auto& parameter : network->named_parameters()) {
    at::Tensor& one = of_first[parameter.key()];
    one.copy_(parameter.value().narrow(0, 0, one.size(0)));
  }

  const at::Tensor both = forecast_of(*network, counted_windows(20));

  EXPECT_EQ(both.sizes(), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_TRUE(
      at::allclose(both.narrow(2, 0, 2), forecast_of(*first, counted_windows(20)), 1e-12, 1e-12));
}

template <typename Run>
std::string refusal_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PatchTst, RefusesWhatItCannotDo) {
  EXPECT_THAT(refusal_of([] {
                patch_network({{"num_heads", 3}}, {"output", {3, 2}});
              }),
              HasSubstr("must divide d_model, 4"));
  EXPECT_THAT(refusal_of([] {
                patch_network({{"patch_len", 30}}, {"output", {3, 2}});
              }),
              HasSubstr("a patch has 30 steps (\"patch_len\"), and a window 20 with 2 behind"));
  EXPECT_THAT(refusal_of([] {
                patch_network({}, {"output", {3, 4}, {Estimate::kCount, Estimate::kCount}});
              }),
              AllOf(HasSubstr("the loss is of counts, whose distribution cannot be scaled back"),
                    HasSubstr("choose gaussian_nll or quantile")));
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 2, 5, 4}, at::kFloat),
                 TensorSpec({TensorSpec::kVaries, 2, 1, 5, 5}, at::kFloat)};
  EXPECT_THAT(
      refusal_of([&] {
        plugin().make<LayerFactory>("patch_encoder_layer", {{"num_heads", 2}})->create(spec);
      }),
      HasSubstr("takes the scores of a layer of as many heads"));
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 5, 4}, at::kFloat)};
  EXPECT_THAT(
      refusal_of([&] { plugin().make<LayerFactory>("patch_encoder_layer", {})->create(spec); }),
      HasSubstr("takes patches [B, channels, patches, width]"));
}

TEST(RecurrentForecasters, AreALayerAndAHead) {
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 20, 2}, at::kFloat)};
  spec.outputs = {{"output", {3, 4}}};

  EXPECT_EQ(plugin()
                .make<GraphBuilder>("gru_forecaster", {{"hidden_size", 8}, {"num_layers", 2}})
                ->build(spec),
            PatchJson::parse(R"([{"use": "gru", "hidden_size": 8, "num_layers": 2, "dropout": 0.0,
                                  "return_sequences": false, "name": "encoder"},
                                 {"use": "head", "name": "head"}])"));
  EXPECT_EQ(plugin().make<GraphBuilder>("lstm_forecaster", {})->build(spec)[0]["use"], "lstm");
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 20}, at::kFloat)};
  EXPECT_THAT(refusal_of([&] { plugin().make<GraphBuilder>("lstm_forecaster", {})->build(spec); }),
              HasSubstr("takes windows [B, steps, channels]"));
}

}  // namespace
}  // namespace treadle::testing
