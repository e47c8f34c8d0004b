// N-HiTS beside PyTorch's: numbers of n_hits_reference.py, which says how it fills weights.
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_lstsq.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <torch/optim/adam.h>

#include <treadle/base/error.h>

#include "test/filled_network.h"

namespace treadle::testing {
namespace {

using ::testing::HasSubstr;

struct NHitsCase {
  const char* name;
  std::int64_t steps;
  std::int64_t horizon;
  nlohmann::json parameters;
  std::vector<Estimate> estimates;
  std::int64_t parameter_count;
  std::vector<double> forecast;  // [2, horizon, estimates, 2]
  std::vector<double> slopes;    // of each parameter Σ gradient_i cos(i / 2)
};

// python3 plugins/forecasting/test/n_hits_reference.py
std::vector<NHitsCase> n_hits_cases() {
  return {
      {"Linear",
       7,
       5,
       {{"pool_kernel_size", {3, 2, 1}}, {"freq_downsample", {3, 2, 1}}, {"blocks", {1, 2, 1}}},
       {Estimate::kLocation},
       266,
       {1.0763432404169495, 1.796060211015468,   1.8524014826371809,   2.662434870894462,
        1.4725427478675863, 2.309811160864821,   0.058700649640609726, 0.7639874948843972,
        1.5086420547507555, 2.3761896608711632,  0.17252390095242742,  0.5732967109862761,
        0.8659950462033912, 1.2806032369289357,  0.49603698773091487,  0.8942154820176644,
        -0.745723816155008, -0.3981849601235833, 0.5483468105233331,   0.9251793092087762},
       {-0.02411662990687679, -0.006578315219076276, 0.005656924273922368, -0.03532892895107871,
        -0.157160550291878,   -1.0196824548088537,   -0.43008853791301777, -0.10526868905060972,
        -0.06925576176352938, -0.21244645111412044,  -0.37180571449811406, -0.9231636502746248,
        -0.14194492044904514, -0.023319775857212323, 0.02353647570577529,  -0.21932266630832348,
        -0.04601048564190791, -0.930909009352051,    0.6884895273927668,   -0.13617740265014092,
        -2.400487011798795,   -0.4868773849431961,   -2.1706930349751143,  -0.1208013883631803}},
      {"Nearest",
       7,
       5,
       {{"pool_kernel_size", {3, 2, 1}},
        {"freq_downsample", {3, 2, 1}},
        {"blocks", {1, 2, 1}},
        {"interpolation", "nearest"}},
       {Estimate::kLocation},
       266,
       {1.0763432404169495,  1.796060211015468,   1.8652099603988006,  2.675439840882158,
        1.5365851366756855,  2.374836010803299,   0.04589217187898953, 0.7509825248967015,
        1.5086420547507555,  2.3761896608711632,  0.17252390095242742, 0.5732967109862761,
        0.8691926945988888,  1.289413486355707,   0.5120252297084028,  0.93826672915152,
        -0.7489214645505056, -0.4069952095503544, 0.5483468105233331,  0.9251793092087762},
       {-0.06685008730096054, -0.00835312748974997,  -0.018024286884834047,  -0.044860581741188954,
        -0.16869895538932325, -1.0238393531339085,   -0.4455612875559111,    -0.10658642401374535,
        -0.08434095829749627, -0.21413996388296494,  -0.1859382491075875,    -0.7830013422407573,
        -0.12901298397428626, -0.021525795318286738, -0.0033588767787545806, -0.07789398837732756,
        0.1094178195270861,   -0.7866531637415882,   0.6884895273927668,     -0.13617740265014092,
        -2.400487011798795,   -0.4868773849431961,   -2.1706930349751143,    -0.1208013883631803}},
      {"CubicOfTwoQuantiles",
       7,
       5,
       {{"pool_kernel_size", {3, 2, 1}},
        {"freq_downsample", {3, 2, 1}},
        {"blocks", {1, 2, 1}},
        {"interpolation", "cubic"}},
       {Estimate::kLocation, Estimate::kLocation},
       306,
       {1.0904645871491345,  1.8103981904269015,   0.21340509870196173,  0.8509207236514605,
        1.8547070086342714,  2.6647757654922466,   -0.03931231113369929, 0.6066376326253271,
        1.4725427478675852,  2.30981116086482,     -0.17476412298878974, 0.6322328048687166,
        0.05639512364351784, 0.7616466002866122,   -2.0788962042550936,  -1.3943420750660829,
        1.4945207080185687,  2.361851681459728,    -1.0206768087864737,  -0.1995893611124545,
        0.1760493083084626,  0.5830100109792903,   -0.08483235694823454, 0.2106022545949809,
        0.86657062291458,    1.282189081825754,    -0.500697829841894,   -0.16424557211247826,
        0.49603698773091415, 0.8942154820176637,   -1.1362400448200494,  -0.6799421007524258,
        -0.7462993928661973, -0.39977080502040185, -3.2516952125731526,  -2.7364633805054295,
        0.544821403167296,   0.91546600921576,     -2.487107610613177,   -1.9033342464562475},
       {0.3600911273548068,  0.0006521023049706215, 0.23770039095167933,  0.0035021240597189474,
        -0.5402982414509006, -1.2954135326940444,   -2.6846237072657813,  -0.6463897042626934,
        -1.4370326922944323, -1.8963751361195185,   -1.7216427257572064,  -0.69493473862257,
        -2.1115293528929127, -0.3569755459392248,   -0.40442148965472074, -1.9474789429787203,
        -1.019563214549701,  -0.7068714213123172,   1.2391960362712697,   -0.2485401249474418,
        -2.784413643398977,  -0.8886097379809321,   -0.11199644428408995, -2.969721195242977}},
      {"LocationAndScale",
       7,
       5,
       {{"pool_kernel_size", {3, 2, 1}}, {"freq_downsample", {3, 2, 1}}, {"blocks", {1, 2, 1}}},
       {Estimate::kLocation, Estimate::kScale},
       306,
       {1.0763432404169495,   1.796060211015468,   0.04263377303607588,  -0.09197636330859715,
        1.8524014826371809,   2.662434870894462,   -0.11901549786227583, -0.25427208084275965,
        1.4725427478675863,   2.309811160864821,   -0.2366979167539902,  -0.21267937230825507,
        0.058700649640609726, 0.7639874948843972,  -2.123060605056918,   -2.223256715951939,
        1.5086420547507555,   2.3761896608711632,  -0.973773070650989,   -0.9465166285063403,
        0.17252390095242742,  0.5732967109862761,  0.36865073388528063,  0.3658305428859829,
        0.8659950462033912,   1.2806032369289357,  0.12726632724752698,  0.14470017078563205,
        0.49603698773091487,  0.8942154820176644,  -0.474230801631917,   -0.34100270817488154,
        -0.745723816155008,   -0.3981849601235833, -2.5556408832863076,  -2.36753033824845,
        0.5483468105233331,   0.9251793092087762,  -1.6165722150704278,  -1.3806837495921611},
       {0.23066044520704732, -0.005183502192620722, 0.16671049333237045,  -0.02783806713150694,
        -0.4681462585961547, -1.355255268519603,    -1.941939777203644,   -0.47086122484541687,
        -1.0314700764646552, -1.3822624137373438,   -1.1886977576977367,  -0.9215743467403843,
        -1.494499816199284,  -0.2527053200292825,   -0.28960372103533294, -1.406223522304084,
        -0.5992058863503227, -0.9295627174066937,   1.239196036271269,    -0.24854012494744174,
        -2.7844136433989775, -0.8886097379809321,   -0.11199644428408995, -2.969721195242977}},
      {"PoolsAndKnotsBeyondTheEnds",
       6,
       4,
       {{"pool_kernel_size", {8, 4}}, {"freq_downsample", {9, 3}}},
       {Estimate::kLocation},
       95,
       {-0.9920728728813377, -0.4336253759027972, -0.9920728728813377, -0.4336253759027972,
        -0.9920728728813377, -0.4336253759027972, -0.9920728728813377, -0.4336253759027972,
        0.9460817351643132, 0.2919939686240189, 0.9460817351643132, 0.2919939686240189,
        0.9460817351643132, 0.2919939686240189, 0.9460817351643132, 0.2919939686240189},
       {0.037623303694511445, -0.001669112144431939, 1.0746629442341977, 0.40908819361679516,
        0.11298899521184809, -0.7215463631030515, -0.7471967202693489, -0.1821945425763712,
        0.3174437243990761, 0.23544503969200076, 0.08426466214675588, -0.7081693497014324}}};
}

std::shared_ptr<graph::Graph> n_hits(nlohmann::json parameters, std::int64_t steps,
                                     std::int64_t channels, OutputSpec output) {
  parameters["use"] = "n_hits";
  return network_of(std::move(parameters), steps, channels, std::move(output));
}

std::int64_t parameter_count(const graph::Graph& network) {
  const std::vector<at::Tensor> parameters = network.parameters();
  return std::accumulate(parameters.begin(), parameters.end(), std::int64_t{0},
                         [](std::int64_t sum, const at::Tensor& one) { return sum + one.numel(); });
}

TEST(NHits, HasValuesAndGradientsOfPyTorchs) {
  for (const NHitsCase& one : n_hits_cases()) {
    SCOPED_TRACE(one.name);
    nlohmann::json parameters = one.parameters;
    parameters["width"] = 3;
    const auto width = static_cast<std::int64_t>(2 * one.estimates.size());
    const auto network = n_hits(std::move(parameters), one.steps, 2,
                                {"output", {one.horizon, width}, one.estimates});
    fill_parameters(*network);

    const at::Tensor forecast = forecast_of(*network, counted_windows(one.steps));

    EXPECT_EQ(parameter_count(*network), one.parameter_count);
    EXPECT_TRUE(
        at::allclose(forecast.flatten(), at::tensor(one.forecast, at::kDouble), 1e-10, 1e-11))
        << forecast;
    EXPECT_THAT(slopes_of(*network, forecast),
                ::testing::Pointwise(::testing::DoubleNear(1e-9), one.slopes));
  }
}

TEST(NHits, HasTheParametersOfItsAuthorsByDefault) {
  EXPECT_EQ(parameter_count(*n_hits({}, 120, 1, {"output", {24, 1}})), 1118610);
}

// By hand, with weights of 0: θ is the bias, (0, 0, 0 | 2, 4) for a window of three steps and two
// knots. Over the steps 0 … 3 they lie at 0.5 and 2.5, so linear gives 2, 2.5, 3.5 and 4. The level
// is 7, and the scale has none.
TEST(NHitsStack, AddsInterpolatedKnotsToTheLastValue) {
  const c10::NoGradGuard no_gradients;
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 1, 3}, at::kFloat)};
  const auto layer = plugin()
                         .make<LayerFactory>("n_hits_stack", {{"horizon", 4},
                                                              {"freq_downsample", 2},
                                                              {"estimates", {"location", "scale"}},
                                                              {"width", 2}})
                         ->create(spec);
  for (at::Tensor parameter : layer->parameters())
    parameter.zero_();
  layer->named_parameters()["block0_theta_bias"].copy_(
      at::tensor({1, 0, 0, 2, 4, 2, 4}, at::kFloat));
  const at::Tensor x = at::tensor({5, 6, 7}, at::kFloat).view({1, 1, 3});
  LayerContext context;
  const std::vector<std::string> names{"forecast"};
  context.request_outputs(names);

  const at::Tensor left = layer->forward({&x, 1}, context);

  EXPECT_TRUE(at::allclose(left.flatten(), at::tensor({4, 6, 7}, at::kFloat)));
  EXPECT_TRUE(at::allclose(context.take_outputs()[0].flatten(),
                           at::tensor({9.0, 9.5, 10.5, 11.0, 2.0, 2.5, 3.5, 4.0}, at::kFloat)));
}

/// Windows and what follows them, [B, steps, 1], of the logistic map x ← 3.7 x (1 - x): chaos, of
/// which no linear map predicts anything, though it has no noise.
std::pair<at::Tensor, at::Tensor> chaotic_windows(std::int64_t lookback, std::int64_t horizon) {
  std::vector<double> values{0.3};
  while (values.size() < 420)
    values.push_back(3.7 * values.back() * (1 - values.back()));
  const at::Tensor series = at::tensor(values, at::kDouble);
  const at::Tensor windows = series.unfold(0, lookback + horizon, 1).unsqueeze(-1);
  return {windows.narrow(1, 0, lookback).contiguous(),
          windows.narrow(1, lookback, horizon).contiguous()};
}

// Later windows judge.
TEST(NHits, LearnsWhatNoLinearMapCan) {
  const auto [x, y] = chaotic_windows(7, 2);
  constexpr std::int64_t kTraining = 300;
  const std::int64_t rest = x.size(0) - kTraining;
  const at::Tensor later = y.narrow(0, kTraining, rest);
  const auto network =
      n_hits({{"width", 32}, {"freq_downsample", {2, 1}}, {"pool_kernel_size", {2, 1}}}, 7, 1,
             {"output", {2, 1}});
  const auto error = [&](std::int64_t begin, std::int64_t rows) {
    return at::mse_loss(forecast_of(*network, x.narrow(0, begin, rows)), y.narrow(0, begin, rows));
  };
  torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.003));
  for (int step = 0; step < 400; ++step) {
    adam.zero_grad();
    error(0, kTraining).backward();
    adam.step();
  }

  const double learned = error(kTraining, rest).item<double>();
  const double repeated =
      at::mse_loss(x.narrow(0, kTraining, rest).narrow(1, 6, 1).expand({-1, 2, -1}), later)
          .item<double>();
  const at::Tensor rows = at::cat({x.squeeze(-1), at::ones({x.size(0), 1}, at::kDouble)}, 1);
  const at::Tensor best = std::get<0>(
      at::linalg_lstsq(rows.narrow(0, 0, kTraining), y.narrow(0, 0, kTraining).squeeze(-1)));
  const double linear =
      at::mse_loss(rows.narrow(0, kTraining, rest).matmul(best).unsqueeze(-1), later)
          .item<double>();

  EXPECT_LT(learned, 0.3 * linear) << "linear: " << linear;
  EXPECT_LT(learned, 0.3 * repeated) << "repeat: " << repeated;
}

template <typename Run>
std::string refusal_of_n_hits(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NHits, RefusesListsOfDifferentLengths) {
  const auto refusal = [](const nlohmann::json& parameters) {
    return refusal_of_n_hits([&] { plugin().make<GraphBuilder>("n_hits", parameters); });
  };
  EXPECT_THAT(refusal({{"pool_kernel_size", {4, 2}}}),
              AllOf(HasSubstr("freq_downsample"),
                    HasSubstr("a number for each stack: pool_kernel_size has 2, got 3")));
  EXPECT_THAT(refusal({{"blocks", {1}}}),
              AllOf(HasSubstr("blocks"), HasSubstr("pool_kernel_size has 3, got 1")));
}

TEST(NHits, HasAffineWeightsOnlyWhereItScales) {
  EXPECT_THAT(refusal_of_n_hits([] {
                plugin().make<GraphBuilder>("n_hits", {{"revin_affine", true}});
              }),
              AllOf(HasSubstr("revin_affine"), HasSubstr("set \"scale\": \"standard\"")));
}

TEST(NHits, RefusesWhatItCannotForecast) {
  const auto refusal = [](std::vector<std::int64_t> shape, std::vector<Estimate> estimates,
                          const nlohmann::json& parameters = {}) {
    return refusal_of_n_hits([&] {
      n_hits(parameters, 7, 2, {"output", std::move(shape), std::move(estimates)});
    });
  };
  EXPECT_THAT(refusal({5, 3}, {Estimate::kLocation}),
              HasSubstr("the target has 3 numbers a step, and there are 2 channels"));
  EXPECT_THAT(refusal({5, 3}, {Estimate::kLocation, Estimate::kScale}),
              HasSubstr("computes 2 estimates of each number, and the loss's output \"output\" has "
                        "3 a step"));
  EXPECT_THAT(refusal({5, 2}, {}), HasSubstr("choose a loss of numbers"));
  EXPECT_THAT(refusal({5, 2, 2}, {Estimate::kLocation}), HasSubstr("computes [horizon, numbers]"));
  EXPECT_EQ(refusal({5, 4}, {Estimate::kCount, Estimate::kCount}), "");
  EXPECT_THAT(refusal({5, 4}, {Estimate::kCount, Estimate::kCount}, {{"scale", "standard"}}),
              AllOf(HasSubstr("the loss is of counts"), HasSubstr("without \"scale\"")));
}

TEST(NHitsStack, RefusesWhatItCannotTake) {
  const auto refusal = [](std::vector<TensorSpec> inputs) {
    return refusal_of_n_hits([&] {
      LayerSpec spec;
      spec.inputs = std::move(inputs);
      plugin().make<LayerFactory>("n_hits_stack", {{"horizon", 4}})->create(spec);
    });
  };
  const TensorSpec series({TensorSpec::kVaries, 2, 6}, at::kFloat);
  EXPECT_THAT(refusal({TensorSpec({TensorSpec::kVaries, 2, TensorSpec::kVaries}, at::kFloat)}),
              HasSubstr("takes series [B, channels, steps] of one length"));
  EXPECT_THAT(refusal({series, TensorSpec({TensorSpec::kVaries, 2, 3}, at::kFloat)}),
              HasSubstr("adds to a forecast"));
  EXPECT_THAT(refusal({series, series, series}), HasSubstr("takes one reference"));
}

}  // namespace
}  // namespace treadle::testing
