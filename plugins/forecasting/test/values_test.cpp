// Layers beside PyTorch's operators, networks beside what they are made of.
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/replication_pad1d.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/tensor/task_random.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

LayerSpec windows(std::vector<std::vector<std::int64_t>> inputs) {
  LayerSpec spec;
  spec.dtype = at::kDouble;
  for (std::vector<std::int64_t>& sizes : inputs) {
    sizes.insert(sizes.begin(), TensorSpec::kVaries);
    spec.inputs.emplace_back(std::move(sizes), at::kDouble);
  }
  return spec;
}

/// What a layer computes, and its further output.
struct Computed {
  at::Tensor output;
  at::Tensor further;
};

Computed computed(const std::string& name, const Json& parameters, const at::Tensor& input,
                  const std::string& further) {
  const auto layer = plugin()
                         .make<LayerFactory>(name, parameters)
                         ->create(windows({{input.size(1), input.size(2)}}));
  LayerContext context;
  const std::vector<std::string> names{further};
  context.request_outputs(names);
  const at::Tensor output = layer->forward({&input, 1}, context);
  return {output, context.take_outputs()[0]};
}

at::Tensor random_windows() {
  const TaskRandom random(7);
  return at::randn({3, 9, 2}, at::kDouble);
}

/// [B, 2, channels] of shift and scale, by libtorch's operators alone.
at::Tensor expected_scale(const std::string& method, const at::Tensor& x, double eps) {
  const at::Tensor sorted = std::get<0>(x.sort(1));
  const auto at_rank = [&](double rank) {  // linear between neighbours, as at::quantile
    const auto below = static_cast<std::int64_t>(std::floor(rank));
    const double share = rank - static_cast<double>(below);
    return sorted.select(1, below) * (1 - share) +
           sorted.select(1, std::min<std::int64_t>(below + 1, x.size(1) - 1)) * share;
  };
  if (method == "last")
    return at::stack({x.select(1, -1), at::full({3, 2}, 1, at::kDouble)}, 1);
  if (method == "standard") {
    const at::Tensor mean = x.mean(1);
    return at::stack({mean, ((x - mean.unsqueeze(1)).square().mean(1) + eps).sqrt()}, 1);
  }
  if (method == "robust")
    return at::stack({at_rank(4), at_rank(6) - at_rank(2) + eps}, 1);
  return at::stack({sorted.select(1, 0), sorted.select(1, -1) - sorted.select(1, 0) + eps}, 1);
}

TEST(WindowScale, UsesNumbersOfEachWindowAndUnscaleUndoesIt) {
  const at::Tensor x = random_windows();
  for (const char* const method : {"last", "standard", "robust", "min_max"}) {
    SCOPED_TRACE(method);
    const Computed scaled =
        computed("window_scale", {{"method", method}, {"eps", 1e-3}}, x, "scale");

    const at::Tensor scale = expected_scale(method, x, 1e-3);
    EXPECT_TRUE(at::allclose(scaled.further, scale, 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(scaled.output, (x - scale.narrow(1, 0, 1)) / scale.narrow(1, 1, 1),
                             1e-12, 1e-12));
    const auto undo =
        plugin().make<LayerFactory>("window_unscale")->create(windows({{9, 2}, {2, 2}}));
    LayerContext context;
    const std::vector<at::Tensor> inputs{scaled.output, scaled.further};
    EXPECT_TRUE(at::allclose(undo->forward(inputs, context), x, 1e-12, 1e-12));
  }
}

// Kim et al.: weights and biases of channels, (x - b) / (w + eps²) on the way back. One of the
// weights is negative, as training may make it.
TEST(WindowScale, HasLearnedWeightsAndUnscaleUndoesThem) {
  const c10::NoGradGuard no_gradients;
  constexpr double kEps = 0.01;
  const at::Tensor x = random_windows();
  const at::Tensor weight = at::tensor({1.5, -0.5}, at::kDouble);
  const at::Tensor bias = at::tensor({0.3, 2.0}, at::kDouble);
  for (const char* const method : {"last", "standard", "robust", "min_max"}) {
    SCOPED_TRACE(method);
    const auto layer =
        plugin()
            .make<LayerFactory>("window_scale",
                                {{"method", method}, {"eps", kEps}, {"affine", true}})
            ->create(windows({{9, 2}}));
    const auto parameters = layer->named_parameters();
    EXPECT_TRUE(parameters["weight"].equal(at::ones({2}, at::kDouble)));
    EXPECT_TRUE(parameters["bias"].equal(at::zeros({2}, at::kDouble)));
    parameters["weight"].copy_(weight);
    parameters["bias"].copy_(bias);
    LayerContext context;
    const std::vector<std::string> names{"scale"};
    context.request_outputs(names);

    const at::Tensor scaled = layer->forward({&x, 1}, context);

    const at::Tensor numbers = expected_scale(method, x, kEps);
    const at::Tensor shift = numbers.narrow(1, 0, 1);
    const at::Tensor scale = numbers.narrow(1, 1, 1);
    EXPECT_TRUE(at::allclose(scaled, (x - shift) / scale * weight + bias, 1e-12, 1e-12));
    const at::Tensor forecast = scaled.narrow(1, 2, 4) * 0.7;
    const auto undo =
        plugin().make<LayerFactory>("window_unscale")->create(windows({{4, 2}, {2, 2}}));
    const std::vector<at::Tensor> inputs{forecast, context.take_outputs()[0]};
    EXPECT_TRUE(at::allclose(undo->forward(inputs, context),
                             (forecast - bias) / (weight + kEps * kEps) * scale + shift, 1e-12,
                             1e-12));
  }
}

// Weights are of channels: a forecast of some of them has to be scaled back before they are taken
// out.
TEST(WindowUnscale, NeedsTheChannelsOfTheWindow) {
  try {
    plugin().make<LayerFactory>("window_unscale")->create(windows({{4, 1}, {2, 2}}));
    ADD_FAILURE() << "which of the two channels?";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("takes a scale [B, 2, 1] for [B, 4, 1], got [B, 2, 2]"),
                      HasSubstr("take channels out behind window_unscale")));
  }
  try {
    LayerSpec spec;
    spec.inputs = {TensorSpec({TensorSpec::kVaries, 4, TensorSpec::kVaries}, at::kFloat)};
    plugin().make<LayerFactory>("window_scale", {{"affine", true}})->create(spec);
    ADD_FAILURE() << "how many weights?";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a weight for each channel (\"affine\")"));
  }
}

// A window of one value has neither deviation nor range: the result is 0, not NaN.
TEST(WindowScale, OfOneValueIsZero) {
  for (const char* const method : {"last", "standard", "robust", "min_max"}) {
    const at::Tensor x = at::full({1, 4, 1}, 3.5, at::kDouble);
    EXPECT_EQ(computed("window_scale", {{"method", method}}, x, "scale")
                  .output.abs()
                  .max()
                  .item<double>(),
              0)
        << method;
  }
}

// Autoformer's moving_avg: the ends are repeated, then averaged.
TEST(SeriesDecomposition, TakesAMovingAverageOut) {
  const at::Tensor x = random_windows();

  const Computed parts = computed("series_decomposition", {{"kernel_size", 5}}, x, "trend");

  const at::Tensor padded = at::replication_pad1d(x.transpose(1, 2), {2, 2});
  const at::Tensor trend = padded.unfold(2, 5, 1).mean(-1).transpose(1, 2);
  EXPECT_TRUE(at::allclose(parts.further, trend, 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(parts.output, x - trend, 1e-12, 1e-12));
}

std::shared_ptr<graph::Graph> forecaster(Json builder, std::vector<std::int64_t> output,
                                         std::int64_t channels = 2) {
  LayerSpec spec = windows({{9, channels}});
  spec.outputs = {{"output", std::move(output)}};
  const Json steps{{{"use", "graph"}, {"name", "net"}, {"builder", std::move(builder)}}};
  const TaskRandom random(3);
  return graph::read_steps(Config(), steps, "", plugin().registry()).build(spec);
}

at::Tensor result_of(const graph::Graph& network, const at::Tensor& input) {
  graph::GraphState state(network);
  const std::vector<at::Tensor> inputs{input};
  return network.run(inputs, state).front();
}

at::Tensor parameter(const graph::Graph& network, const std::string& name) {
  return network.named_parameters()["net." + name];
}

TEST(Forecasters, AreTheirFormulas) {
  const c10::NoGradGuard no_gradients;
  const at::Tensor x = random_windows();
  const auto map = [](const graph::Graph& network, const std::string& name, const at::Tensor& of) {
    return at::linear(of.transpose(1, 2), parameter(network, name + ".weight"),
                      parameter(network, name + ".bias"))
        .transpose(1, 2);
  };

  const auto linear = forecaster({{"use", "linear"}}, {4, 2});
  EXPECT_TRUE(at::allclose(result_of(*linear, x), map(*linear, "linear", x), 1e-12, 1e-12));

  const auto nlinear = forecaster({{"use", "nlinear"}}, {4, 2});
  const at::Tensor last = x.narrow(1, 8, 1);
  EXPECT_TRUE(
      at::allclose(result_of(*nlinear, x), map(*nlinear, "linear", x - last) + last, 1e-12, 1e-12));

  const auto dlinear = forecaster({{"use", "dlinear"}, {"kernel_size", 5}}, {4, 2});
  const at::Tensor trend =
      at::replication_pad1d(x.transpose(1, 2), {2, 2}).unfold(2, 5, 1).mean(-1).transpose(1, 2);
  EXPECT_TRUE(at::allclose(
      result_of(*dlinear, x),
      map(*dlinear, "linear_seasonal", x - trend) + map(*dlinear, "linear_trend", trend), 1e-12,
      1e-12));
}

// By hand: of the steps 0, 1, 2, … a period of 3 repeats 6, 7, 8.
TEST(Forecasters, RepeatWhatCameLast) {
  const at::Tensor x = at::arange(9, at::kDouble).view({1, 9, 1});
  const auto steps_of = [&](const Json& builder) {
    return result_of(*forecaster(builder, {5, 1}), x.expand({3, 9, 2}).contiguous())
        .select(0, 0)
        .flatten();
  };

  EXPECT_TRUE(steps_of({{"use", "repeat"}}).equal(at::tensor({8, 8, 8, 8, 8}, at::kDouble)));
  EXPECT_TRUE(steps_of({{"use", "seasonal"}, {"period", 3}})
                  .equal(at::tensor({6, 7, 8, 6, 7}, at::kDouble)));
  try {
    forecaster({{"use", "seasonal"}, {"period", 10}}, {5, 1});
    ADD_FAILURE() << "a window has nine steps";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the last 10 steps (\"period\") of windows that have 9"));
  }
}

TEST(Forecasters, OfOneStepOrSomeChannels) {
  const c10::NoGradGuard no_gradients;
  const at::Tensor x = random_windows();

  EXPECT_EQ(result_of(*forecaster({{"use", "nlinear"}}, {2}), x).sizes(),
            (std::vector<std::int64_t>{3, 2}));
  const auto one = forecaster({{"use", "nlinear"}, {"channel", 1}}, {4, 1});
  EXPECT_EQ(result_of(*one, x).sizes(), (std::vector<std::int64_t>{3, 4, 1}));
  try {
    forecaster({{"use", "nlinear"}, {"channel", 1}}, {4, 2});
    ADD_FAILURE() << "there is one channel from 1 on";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("the target has 2 numbers a step, and there are 2 channels"));
  }
}

TEST(WindowUnscale, NamesTheReferenceItNeeds) {
  try {
    plugin().make<LayerFactory>("window_unscale")->create(windows({{9, 2}}));
    ADD_FAILURE() << "there is no scale";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"using\": [\"window\"]"));
  }
}

}  // namespace
}  // namespace treadle::testing
