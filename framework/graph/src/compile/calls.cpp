#include "compile/calls.h"

#include <string>

#include "forward/failure.h"
#include "forward/gradient_order.h"
#include "run/branches.h"
#include "run/place_text.h"
#include "run/run_graph.h"

// The opaque calls of a plan. A program makes them where a node was not lowered.
//
// A program is shared by all forwards of its graph, so a call holds no state. It holds the path
// from the compiled graph down to its node, and finds the state of the present forward by that path
// in Run::context. A context exists during forwards only; a backward reads the tapes and calls
// nothing.
//
// A call refers to nodes of the graph. The graph owns the executor, which owns the plans. An
// autograd node may keep a program alive after its graph is gone, but then only for a backward.
//
// Calls run the same code as a dynamic graph, and end with contiguous_with_gradient() as
// run_place() does: rule 4 of run/gradient_order.h holds in both.

namespace treadle::graph {
namespace {

const GraphCallContext& context_of(const plan::Run& run) {
  return static_cast<const GraphCallContext&>(*run.context);
}

NodeState& node_state(const GraphCallContext& context, const StatePath& path) {
  return graph_state(context.state, path, path.size() - 1).nodes[path.back().first];
}

// A graph within runs node by node here, whatever its own executor is: Callee::call() calls
// run_graph().
class CalleeCall final : public plan::PlanCall {
 public:
  CalleeCall(const Callee& callee, StatePath path) : callee_(callee), path_(std::move(path)) {}

  void call(Inputs inputs, plan::Run& run, std::vector<at::Tensor>& results) const override {
    const GraphCallContext& context = context_of(run);
    Callee::State& own = node_state(context, path_).callees[path_.back().second];
    results.push_back(contiguous_with_gradient(callee_.call(inputs, own, context.scope)));
  }
  std::vector<at::Tensor> parameters() const override { return callee_.module()->parameters(); }

 private:
  const Callee& callee_;
  const StatePath path_;
};

class NodeCall final : public plan::PlanCall {
 public:
  NodeCall(const Node& node, StatePath path) : node_(node), path_(std::move(path)) {}

  void call(Inputs inputs, plan::Run& run, std::vector<at::Tensor>& results) const override {
    const GraphCallContext& context = context_of(run);
    NodeState& own = node_state(context, path_);
    results.push_back(contiguous_with_gradient(node_.run(inputs, own, context.scope)));
    for (std::size_t i = 0; i < node_.further_outputs(); ++i)
      results.push_back(std::move(own.callees[0].outputs[i]));
  }
  std::size_t result_count() const override { return 1 + node_.further_outputs(); }
  std::vector<at::Tensor> parameters() const override { return node_.parameters(); }

 private:
  const Node& node_;
  const StatePath path_;
};

// Always concurrent: branches that run one by one are lowered instead, each by itself. A program is
// used only while that choice would be the same (Program::conditions).
class GroupCall final : public plan::PlanCall {
 public:
  GroupCall(const Graph::Impl& graph, const BranchGroup& group, std::size_t seed, StatePath path)
      : graph_(graph), group_(group), seed_(seed), path_(std::move(path)) {}

  void call(Inputs inputs, plan::Run& run, std::vector<at::Tensor>& results) const override {
    const GraphCallContext& context = context_of(run);
    GraphState::Data& own = graph_state(context.state, path_, path_.size());
    // By place, as run_branches() expects them; only sources and results are set.
    std::vector<at::Tensor> values(graph_.places.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values[group_.sources[i]] = inputs[i];
    // The seed was drawn by the program's kDrawSeed instruction, once per graph as in run_graph(),
    // so branches have the same random streams in all kinds of execution.
    run_branches(group_, Branches::kParallel, run.seeds[seed_], graph_.parameters, values,
                 [&](std::size_t place, const Inputs& given) {
                   return run_place(graph_, place, given, own, context.scope);
                 });
    for (const std::size_t place : group_.places)
      results.push_back(std::move(values[place]));
  }

  std::size_t result_count() const override { return group_.places.size(); }

  std::vector<at::Tensor> parameters() const override {
    std::vector<at::Tensor> all;
    for (const std::size_t place : group_.places) {
      const auto of_place = graph_.places[place].node->parameters();
      all.insert(all.end(), of_place.begin(), of_place.end());
    }
    return all;
  }

  // The error names the branch: the call as a whole has no node of its own.
  void rethrow_from_result(std::size_t result, Inputs inputs) const override {
    const std::size_t place = group_.places[result];
    std::vector<std::string> sizes;
    for (const std::size_t source : group_.inputs[result])
      sizes.push_back(sizes_text(inputs[source]));
    rethrow_failed(node_text(graph_.nodes[place]), failed_text(graph_, place, sizes));
  }

 private:
  const Graph::Impl& graph_;
  const BranchGroup& group_;
  const std::size_t seed_;
  const StatePath path_;
};

}  // namespace

GraphState::Data& graph_state(GraphState::Data& top, const StatePath& path, std::size_t steps) {
  GraphState::Data* data = &top;
  for (std::size_t i = 0; i < steps; ++i)
    data = &data->nodes[path[i].first].callees[path[i].second].graph->data();
  return *data;
}

std::shared_ptr<const plan::PlanCall> call_of_callee(const Callee& callee, StatePath path) {
  return std::make_shared<CalleeCall>(callee, std::move(path));
}

std::shared_ptr<const plan::PlanCall> call_of_node(const Node& node, StatePath path) {
  return std::make_shared<NodeCall>(node, std::move(path));
}

std::shared_ptr<const plan::PlanCall> call_of_group(const Graph::Impl& graph,
                                                    const BranchGroup& group, std::size_t seed,
                                                    StatePath path) {
  return std::make_shared<GroupCall>(graph, group, seed, std::move(path));
}

}  // namespace treadle::graph
