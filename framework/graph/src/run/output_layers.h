#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::graph {

class Graph;

/// The parameters of the layers that give the graph's outputs: of each output the nearest layers
/// before it that have a matrix, whole, whatever without one stands behind them. In graphs within,
/// and in every branch of control flow, the same.
std::vector<at::Tensor> output_layer_parameters(const Graph& graph);

}  // namespace treadle::graph
