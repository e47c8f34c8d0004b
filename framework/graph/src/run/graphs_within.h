#pragma once

#include <vector>

#include <torch/nn/module.h>

namespace treadle::graph {

class Graph;

/// All graphs in a module, itself included, at any depth. Use it instead of modules() for what
/// concerns graphs: the body of a layer that StandsForBody is registered in no graph.
std::vector<Graph*> graphs_within(const torch::nn::Module& module);

/// The parameters of the layers that give the graph's outputs: of each output the nearest layers
/// before it that have a matrix, whole, whatever without one stands behind them. In graphs within,
/// and in every branch of control flow, the same.
std::vector<at::Tensor> output_layer_parameters(const Graph& graph);

}  // namespace treadle::graph
