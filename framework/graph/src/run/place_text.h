#pragma once

#include <string>
#include <vector>

#include "run/graph_data.h"

namespace treadle::graph {

/// "[32, 4]"
std::string sizes_text(at::IntArrayRef sizes);
/// The same; "nothing" where there is no tensor.
std::string sizes_text(const at::Tensor& tensor);

/// "node "dense_0""
std::string node_text(const NodeInfo& node);

/// "node "dense_0" (dense) failed on [32, 4] from "input": ". `sizes`: of each of the place's
/// inputs.
std::string failed_text(const GraphStructure& graph, std::size_t place,
                        const std::vector<std::string>& sizes);

}  // namespace treadle::graph
