#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>

#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/tensor/task_random.h>

#include "test/this_plugin.h"

/// Networks beside a reference in PyTorch, which fills weights and sums up gradients alike.
namespace treadle::testing {

/// In float64, for windows [B, steps, channels] and a loss that requires `output`.
inline std::shared_ptr<graph::Graph> network_of(nlohmann::json builder, std::int64_t steps,
                                                std::int64_t channels, OutputSpec output) {
  LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, steps, channels}, at::kDouble)};
  spec.outputs = {std::move(output)};
  const nlohmann::json flow{{{"use", "graph"}, {"name", "net"}, {"builder", std::move(builder)}}};
  const TaskRandom random(3);
  return graph::read_steps(Config(), flow, "", plugin().registry()).build(spec);
}

inline at::Tensor forecast_of(const graph::Graph& network, const at::Tensor& windows) {
  graph::GraphState state(network);
  const std::vector<at::Tensor> inputs{windows};
  return network.run(inputs, state).front();
}

/// Element i of parameter k is sin(1.3 i + k) / 2.
inline void fill_parameters(const graph::Graph& network) {
  const c10::NoGradGuard no_gradients;
  std::vector<at::Tensor> parameters = network.parameters();
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const at::Tensor i = at::arange(parameters[k].numel(), at::kDouble);
    parameters[k].copy_(
        ((i * 1.3 + static_cast<double>(k)).sin() * 0.5).view(parameters[k].sizes()));
  }
}

/// Element i is 2 cos(0.37 i) + 0.05 i.
inline at::Tensor counted_windows(std::int64_t steps) {
  const at::Tensor i = at::arange(4 * steps, at::kDouble);
  return ((i * 0.37).cos() * 2 + i * 0.05).view({2, steps, 2});
}

/// Of each parameter Σ gradient_i cos(i / 2), for the gradient cos(i) of the forecast.
inline std::vector<double> slopes_of(const graph::Graph& network, const at::Tensor& forecast) {
  (forecast.flatten() * at::arange(forecast.numel(), at::kDouble).cos()).sum().backward();
  std::vector<double> slopes;
  for (const at::Tensor& parameter : network.parameters()) {
    const at::Tensor gradient = parameter.grad().flatten();
    slopes.push_back(
        (gradient * (at::arange(gradient.numel(), at::kDouble) * 0.5).cos()).sum().item<double>());
  }
  return slopes;
}

}  // namespace treadle::testing
