#pragma once

#include <vector>

#include <torch/nn/module.h>

namespace treadle::graph {

class Graph;

/// All graphs in a module, itself included, at any depth. Use it instead of modules() for what
/// concerns graphs: the body of a layer that StandsForBody is registered in no graph.
std::vector<Graph*> graphs_within(const torch::nn::Module& module);

}  // namespace treadle::graph
