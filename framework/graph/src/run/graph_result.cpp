#include "run/graph_result.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "forward/failure.h"
#include "run/graph_data.h"

// Sizes of a graph within another, whose inputs may be known more exactly than when it was built,
// such as one row at a time in a map. Then its nodes are inferred once more; else the results of
// the build are returned.

namespace treadle::graph {
namespace {

/// Whether what was built for `wanted` may be given this.
bool fits(const TensorSpec& given, const TensorSpec& wanted) {
  return given.dtype == wanted.dtype &&
         std::equal(given.sizes.begin(), given.sizes.end(), wanted.sizes.begin(),
                    wanted.sizes.end(), [](std::int64_t size, std::int64_t built_for) {
                      return size == built_for || built_for == TensorSpec::kVaries;
                    });
}

/// Of each place, for inputs of which more is known than it was built for: a row at a time.
std::vector<TensorSpec> specs_for(const Graph::Impl& graph, std::span<const TensorSpec> inputs) {
  std::vector<TensorSpec> specs(graph.places.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    specs[graph.inputs[i]] = inputs[i];
  for (const StateSlot& slot : graph.states) {
    specs[slot.read] = *graph.nodes[slot.read].result;
    if (slot.has_rows && !inputs.empty() && !inputs[0].sizes.empty())
      specs[slot.read].sizes[0] = inputs[0].sizes[0];
  }
  std::vector<TensorSpec> given;
  for (std::size_t place = 0; place < graph.places.size(); ++place) {
    if (graph.places[place].node == nullptr)
      continue;
    given.clear();
    for (const std::size_t input : graph.places[place].inputs)
      given.push_back(specs[input]);
    try {
      const std::vector<TensorSpec> results = graph.places[place].node->results(given);
      specs[place] = results.front();
      for (std::size_t i = 1; i < results.size(); ++i)
        specs[graph.places[place].further[i - 1]] = results[i];
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      throw DataError("in " + quote_text(graph.nodes[place].id) + ": " + words_in_flight());
    }
  }
  return specs;
}

}  // namespace

c10::SmallVector<at::Tensor, 4> checked_inputs(const Graph::Impl& graph, const Inputs& inputs) {
  if (inputs.size() != graph.inputs.size()) {
    throw DataError("the graph takes " + std::to_string(graph.inputs.size()) +
                    (graph.inputs.size() == 1 ? " input" : " inputs") + ", got " +
                    std::to_string(inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined())
      throw DataError("input " + std::to_string(i) + " of the graph is an undefined tensor");
  }
  c10::SmallVector<at::Tensor, 4> given;
  for (const at::Tensor& input : inputs)
    given.push_back(input.contiguous());
  return given;
}

std::string input_count_text(const Graph::Impl& graph, std::size_t given) {
  const std::size_t wanted = graph.inputs.size();
  return "the graph takes " + std::to_string(wanted) + (wanted == 1 ? " input" : " inputs") +
         ", got " + std::to_string(given);
}

TensorSpec result_of(const Graph& graph, std::span<const TensorSpec> inputs) {
  return results_of(graph, inputs)[graph.impl().outputs.front()];
}

std::vector<TensorSpec> results_of(const Graph& graph, std::span<const TensorSpec> inputs) {
  const Graph::Impl& impl = graph.impl();
  if (!graph.results().front())
    throw DataError("the sizes of a graph that was built without them are not known");
  if (inputs.size() != impl.inputs.size())
    throw DataError(input_count_text(impl, inputs.size()));
  bool is_known = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& built_for = *impl.nodes[impl.inputs[i]].result;
    if (!fits(inputs[i], built_for))
      throw DataError("the graph was built for " + built_for.text() + ", but is given " +
                      inputs[i].text());
    is_known = is_known && inputs[i] == built_for;
  }
  if (!is_known)
    return specs_for(impl, inputs);
  std::vector<TensorSpec> specs;
  for (const NodeInfo& node : impl.nodes)
    specs.push_back(node.result.value_or(TensorSpec::absent()));
  return specs;
}

}  // namespace treadle::graph
