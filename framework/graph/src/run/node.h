#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/model/abilities/names_references.h>
#include <treadle/core/model/layer.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/plan/lowerable.h>

#include "run/forward_scope.h"

namespace treadle::graph {

class PlanLowering;
struct PlanPosition;

/// A layer or a nested graph, which are called alike. Owns it; states are the caller's.
class Callee {
 public:
  /// Its state in one stream.
  struct State {
    StateDict memory;
    LayerReports reports;
    std::unique_ptr<GraphState> graph;  ///< of a nested graph
    std::vector<at::Tensor> outputs;    ///< of the last call: those after the first
  };

  Callee(std::string name, std::string type, std::shared_ptr<Layer> layer,
         std::shared_ptr<torch::nn::Module> module);
  Callee(std::string name, std::string type, std::shared_ptr<Graph> graph);

  /// Returns the first output. `state.outputs` gets those that `further` names.
  at::Tensor call(const Inputs& inputs, State& state, const ForwardScope& scope,
                  std::span<const std::string> further = {}) const;
  TensorSpec result(std::span<const TensorSpec> inputs) const;
  /// The same, followed by those of the outputs that `further` names.
  std::vector<TensorSpec> results(std::span<const TensorSpec> inputs,
                                  std::span<const std::string> further) const;
  /// Of the outputs after the first.
  std::vector<std::string> output_names() const;
  /// Of a graph: the place within of the output of that name.
  std::size_t output_place(std::string_view name) const;

  const std::string& name() const { return name_; }
  const std::string& type() const { return type_; }
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  /// What is registered: the adapted module itself, or layer or graph.
  const std::shared_ptr<torch::nn::Module>& module() const { return module_; }
  /// A module that knows nothing of graphs.
  bool is_adapted() const { return layer_ != nullptr && module_ != layer_; }
  /// The plugin to blame when it throws; empty where no plugin made it.
  const std::string& origin() const;

  /// The ability, of the layer or of the module that was adapted; null when it has none.
  template <typename Ability>
  Ability* ability() const {
    if (auto* of_layer = dynamic_cast<Ability*>(layer_.get()))
      return of_layer;
    return dynamic_cast<Ability*>(module_.get());
  }

  std::vector<std::string> reference_names() const;
  /// Whether it is stateful: one call leaves something for the next.
  bool keeps_state() const;
  /// Whether it logs or adds to the loss, and whether it does the latter.
  bool reports() const;
  bool adds_losses() const;

 private:
  std::string name_;
  std::string type_;
  std::shared_ptr<Layer> layer_;
  std::shared_ptr<Graph> graph_;
  std::shared_ptr<torch::nn::Module> module_;

  void expect_declared(std::span<const LayerReports::Report> reports) const;
};

/// The state of a node in one stream.
struct NodeState {
  std::vector<Callee::State> callees;
  std::vector<at::Tensor> traces;
  at::Tensor pondered;  ///< of a loop whose rows halt by themselves
  bool keeps_traces = true;
};

/// The work at one place of a graph: a callee, or several under control flow. Const and shared by
/// threads: everything that a run writes is in its NodeState.
class Node {
 public:
  explicit Node(std::vector<Callee> callees) : callees_(std::move(callees)) {}
  virtual ~Node() = default;

  /// Returns the first output; the others are then in `state.callees[0].outputs`.
  virtual at::Tensor run(const Inputs& inputs, NodeState& state,
                         const ForwardScope& scope) const = 0;
  /// Expects `inputs` that are known or absent. Throws what does not fit.
  virtual TensorSpec result(std::span<const TensorSpec> inputs) const = 0;
  /// The same, followed by those of its further outputs.
  virtual std::vector<TensorSpec> results(std::span<const TensorSpec> inputs) const {
    return {result(inputs)};
  }
  /// How many outputs it has beside the first. Only calls have any.
  virtual std::size_t further_outputs() const { return 0; }

  /// Lowers it, for inputs that are all present, to operations with the same bits. Nothing, with
  /// nothing added, where that cannot be done: the plan then calls it.
  virtual std::optional<PlanValue> lower(PlanLowering& plan, const PlanPosition& position,
                                         std::span<const PlanValue> inputs) const;
  /// The same for all its outputs.
  virtual std::optional<std::vector<PlanValue>> lower_outputs(
      PlanLowering& plan, const PlanPosition& position, std::span<const PlanValue> inputs) const;
  /// The reason that people see when a plan calls it.
  virtual std::string why_called() const = 0;
  /// Whether one run may call a callee several times.
  virtual bool repeats_its_parts() const { return false; }
  /// Whether its control flow depends on values.
  virtual bool depends_on_numbers() const { return false; }
  /// How often a row meets a callee in a run: at most in a loop, on average in a switch.
  virtual double calls_of(std::size_t callee) const {
    static_cast<void>(callee);
    return 1;
  }

  const std::vector<Callee>& callees() const { return callees_; }
  /// Of all callees, each once.
  std::vector<at::Tensor> parameters() const;
  /// The callee that gets the node's references.
  const Callee& main() const { return callees_.front(); }

 protected:
  const std::vector<Callee> callees_;
};

/// `further`: the names of the outputs that are used beside the first.
std::unique_ptr<Node> make_call_node(Callee callee, std::vector<std::string> further);

}  // namespace treadle::graph
