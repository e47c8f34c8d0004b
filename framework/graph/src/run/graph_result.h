#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <treadle/core/model/tensor_spec.h>
#include <treadle/graph/graph.h>

namespace treadle::graph {

/// What a graph within another gives for such inputs. Throws a DataError for inputs that it was not
/// built for, and for a graph that was built without sizes.
TensorSpec result_of(const Graph& graph, std::span<const TensorSpec> inputs);
/// The same of every place; absent where it is not known.
std::vector<TensorSpec> results_of(const Graph& graph, std::span<const TensorSpec> inputs);

/// The inputs of a forward, contiguous, as all values of a graph. Throws a DataError where one is
/// missing.
c10::SmallVector<at::Tensor, 4> checked_inputs(const Graph::Impl& graph, const Inputs& inputs);

/// "the graph takes 2 inputs, got 1"
std::string input_count_text(const Graph::Impl& graph, std::size_t given);

}  // namespace treadle::graph
