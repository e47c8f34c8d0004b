#include "compile/training_work.h"

#include <algorithm>
#include <cstdint>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/abilities/works_step_by_step.h>
#include <treadle/graph/graph.h>

#include "run/graph_data.h"

// Counts by sizes: a weight is used once for each position of the values around its layer. Calls
// are counted by layers, as most of them make about as many.

namespace treadle::graph {
namespace {

constexpr double kUnknownSize = 64;
/// Forward, gradient of the values, gradient of the weights.
constexpr double kPasses = 3;
/// A value is written and read, and so is its gradient.
constexpr double kTouches = 4;
/// Of a layer with weights, and of what else is a node: forward, backward, the sums of gradients.
constexpr double kCallsOfALayer = 20;
constexpr double kCallsOfANode = 5;

/// Elements of a row.
double row_elements(const TensorSpec& spec) {
  double count = 1;
  for (std::size_t i = 1; i < spec.sizes.size(); ++i)
    count *=
        spec.sizes[i] == TensorSpec::kVaries ? kUnknownSize : static_cast<double>(spec.sizes[i]);
  return count;
}

/// Those of a row that lie along the last dimension.
double positions(const TensorSpec& spec) {
  if (spec.sizes.size() < 2)
    return 1;
  const std::int64_t last = spec.sizes.back();
  return row_elements(spec) /
         (last == TensorSpec::kVaries ? kUnknownSize : static_cast<double>(last));
}

double operations(const torch::nn::Module& module, const TensorSpec& input,
                  const TensorSpec& result) {
  double sum = 0;
  for (const at::Tensor& weight : distinct_parameters(module)) {
    const bool is_looked_up = !c10::isFloatingType(input.dtype);
    if (weight.dim() < 2 || is_looked_up || weight.numel() == 0)
      continue;
    // Of a convolution [out, in, ...], each output has used its filter once.
    const double uses = weight.dim() > 2
                            ? row_elements(result) / static_cast<double>(weight.size(0))
                            : std::max(positions(input), positions(result));
    sum += 2 * kPasses * static_cast<double>(weight.numel()) * uses;
  }
  return sum;
}

/// The graph that a layer is made of; null for others.
const Graph* graph_in(const torch::nn::Module& layer) {
  for (const auto& child : layer.children()) {
    if (const auto* graph = dynamic_cast<const Graph*>(child.get()))
      return graph;
  }
  return nullptr;
}

using Counts = std::function<bool(const Callee&)>;

std::optional<StepWork> work_in(const Graph& graph, const Counts& counts);

StepWork work_of(const Callee& callee, const TensorSpec& input, const TensorSpec& result,
                 const Counts& counts) {
  if (callee.graph() != nullptr) {
    if (const std::optional<StepWork> within = work_in(*callee.graph(), counts))
      return *within;
  }
  if (!counts(callee))
    return {};
  if (const Graph* graph = graph_in(*callee.module())) {
    if (const std::optional<StepWork> within = graph->training_work())
      return *within;
  }
  const torch::nn::Module& module = *callee.module();
  StepWork work{operations(module, input, result), 0,
                module.parameters().empty() ? kCallsOfANode : kCallsOfALayer};
  if (const auto* const steps = dynamic_cast<const WorksStepByStep*>(&module);
      steps != nullptr && input.sizes.size() > 1)
    work.calls += steps->calls_per_time_step() * (input.sizes[1] == TensorSpec::kVaries
                                                      ? kUnknownSize
                                                      : static_cast<double>(input.sizes[1]));
  return work;
}

std::optional<StepWork> work_in(const Graph& graph, const Counts& counts) {
  const Graph::Impl& impl = graph.impl();
  if (!impl.nodes[impl.inputs.front()].result)
    return std::nullopt;
  StepWork sum;
  for (std::size_t i = 0; i < impl.places.size(); ++i) {
    const Place& place = impl.places[i];
    const NodeInfo& info = impl.nodes[i];
    if (place.node == nullptr || !info.result)
      continue;
    const auto& source = impl.nodes[place.inputs.front()].result;
    for (std::size_t c = 0; c < place.node->callees().size(); ++c) {
      StepWork work =
          work_of(place.node->callees()[c], source ? *source : *info.result, *info.result, counts);
      work *= place.node->calls_of(c);
      sum += work;
    }
    if (place.node->callees().empty())
      sum.calls += kCallsOfANode;
    sum.bytes += kTouches * row_elements(*info.result) *
                 static_cast<double>(c10::elementSize(info.result->dtype));
  }
  return sum;
}

}  // namespace

std::optional<StepWork> Graph::training_work() const {
  return work_in(*this, [](const Callee&) { return true; });
}

std::optional<double> operations_in(const Graph& graph,
                                    const std::function<bool(const Callee&)>& counts) {
  const std::optional<StepWork> work = work_in(graph, counts);
  return work ? std::optional(work->operations) : std::nullopt;
}

}  // namespace treadle::graph
