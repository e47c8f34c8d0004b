// N-BEATS beside PyTorch's: numbers of n_beats_reference.py, which says how it fills weights.
#include <utility>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>

#include "test/filled_network.h"

namespace treadle::testing {
namespace {

struct NBeatsCase {
  const char* name;
  nlohmann::json parameters;
  std::vector<double> forecast;  // [2, 4, 2]
  std::vector<double> slopes;    // of each parameter Σ gradient_i cos(i / 2)
};

// python3 plugins/forecasting/test/n_beats_reference.py
std::vector<NBeatsCase> n_beats_cases() {
  return {{"generic",
           {{"stacks", 2}, {"blocks", 2}, {"width", 3}},
           {1.8904858873315113, 1.5948477713709361, 0.7724712590437244, 1.2367115192553055,
            0.36935398805204733, -0.00902189958310684, 1.21792913366885, 1.3030394333867934,
            0.20324829270916134, 0.8167712855374376, 1.5853822131495912, 1.1630382368797854,
            0.8763549386271949, 0.8760182175160935, -0.33107855700236566, 0.091754292731546},
           {2.193002374745623,   0.09245038917806062,   4.417234117545139,  0.472740387070012,
            1.3517513210057985,  -0.6602892073043356,   2.7217618881800663, 0.5521607996796568,
            6.352242533017311,   0.6538900050439245,    0.8451061478896759, -0.28493471827774997,
            -2.0121002957405425, -0.21681802454526375,  5.673842080897588,  1.3594685441595085,
            0.6315341353585765,  -0.016857154737753177, -3.646822566950048, 0.093707314149996,
            6.966907307397474,   1.274437203724403,     1.1537278510503133, 0.4866721371191365}},
          {"interpretable",
           {{"kind", "interpretable"}, {"trend_width", 3}, {"seasonality_width", 3}},
           {2.4382287198636154, 2.3164759924615703, -1.408933945478669, -1.6334762191184338,
            0.9164939279410902, 0.502102357130405, 3.69447731930904, 3.390989881051385,
            1.715909599406877, 1.982095384107608, -0.4573656151850739, -0.6330603444519154,
            1.5910827735962456, 1.5817026058776822, 2.7370659752526274, 3.1532467081144193},
           {1.2098872188605407, 0.14921705259810084, 1.1395067049535181, 0.3756601993045524,
            0.6276856329124246, -3.588767937524916, -5.376260855018626, 1.6021590420877145,
            13.938012023625413, 5.62141955227794, -5.255957399383224, 9.826642314511275}}};
}

TEST(NBeats, HasValuesAndGradientsOfPyTorchs) {
  for (const NBeatsCase& one : n_beats_cases()) {
    SCOPED_TRACE(one.name);
    nlohmann::json builder = one.parameters;
    builder["use"] = "n_beats";
    builder["num_layers"] = 2;
    const auto network = network_of(std::move(builder), 6, 2, {"output", {4, 2}});
    fill_parameters(*network);

    const at::Tensor forecast = forecast_of(*network, counted_windows(6));

    EXPECT_TRUE(
        at::allclose(forecast.flatten(), at::tensor(one.forecast, at::kDouble), 1e-10, 1e-11))
        << forecast;
    EXPECT_THAT(slopes_of(*network, forecast),
                ::testing::Pointwise(::testing::DoubleNear(1e-9), one.slopes));
  }
}

// Each forecast of several has a polynomial of its own: θ of the bases is [outputs, functions]. By
// hand, with weights of 0 and θ = (…, 1, 2, 3, 4), of degree 1: 1 + 2 s / 4 and 3 + 4 s / 4.
TEST(NBeatsStack, HasABasisForEachOutput) {
  const c10::NoGradGuard no_gradients;
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 1, 3}, at::kFloat)};
  const auto layer =
      plugin()
          .make<LayerFactory>(
              "n_beats_stack",
              {{"basis", "trend"}, {"degree", 1}, {"horizon", 4}, {"outputs", 2}, {"width", 2}})
          ->create(spec);
  for (at::Tensor parameter : layer->parameters())
    parameter.zero_();
  layer->named_parameters()["block0_theta_bias"].copy_(at::tensor({3, 6, 1, 2, 3, 4}, at::kFloat));
  const at::Tensor x = at::tensor({5, 5, 5}, at::kFloat).view({1, 1, 3});
  LayerContext context;
  const std::vector<std::string> names{"forecast"};
  context.request_outputs(names);

  const at::Tensor left = layer->forward({&x, 1}, context);

  EXPECT_TRUE(at::allclose(left.flatten(), at::tensor({2, 0, -2}, at::kFloat)));  // 5 - 3 - 6 s / 3
  EXPECT_TRUE(at::allclose(context.take_outputs()[0].flatten(),
                           at::tensor({1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0}, at::kFloat)));
}

TEST(NBeatsStack, RefusesWhatItCannotTake) {
  const auto refusal = [](std::vector<TensorSpec> inputs) -> std::string {
    LayerSpec spec;
    spec.inputs = std::move(inputs);
    try {
      plugin().make<LayerFactory>("n_beats_stack", {{"horizon", 4}})->create(spec);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const TensorSpec series({TensorSpec::kVaries, 2, 6}, at::kFloat);
  EXPECT_THAT(refusal({TensorSpec({TensorSpec::kVaries, 6}, at::kFloat)}),
              ::testing::HasSubstr("takes series [B, channels, steps]"));
  EXPECT_THAT(refusal({series, TensorSpec({TensorSpec::kVaries, 2, 3}, at::kFloat)}),
              ::testing::HasSubstr("adds to a forecast"));
  EXPECT_THAT(refusal({series, series, series}), ::testing::HasSubstr("takes one reference"));
}

}  // namespace
}  // namespace treadle::testing
