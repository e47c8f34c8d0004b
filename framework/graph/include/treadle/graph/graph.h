#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/core/model/abilities/chooses_execution.h>
#include <treadle/core/model/abilities/counts_forward.h>
#include <treadle/core/model/abilities/estimates_work.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/abilities/names_parts.h>
#include <treadle/core/model/abilities/prepares_for_inference.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/logged_values.h>
#include <treadle/core/model/model.h>
#include <treadle/core/model/tensor_spec.h>
#include <treadle/graph/graph_state.h>

namespace treadle::plan {
class Plan;
}

namespace treadle::graph {

/// The default names of a node's ports. Merging nodes have `input_0`, `input_1`, …; a reference
/// arrives at `ref_<tag>`.
inline constexpr std::string_view kDefaultInput = "input";
inline constexpr std::string_view kDefaultOutput = "output";

/// kOutput: a further output of the node that is its one input.
enum class NodeKind { kInput, kState, kLayer, kGraph, kLoop, kMap, kSwitch, kMixture, kOutput };

/// How a value comes to a node.
struct NodeInput {
  enum class Kind {
    kStream,
    kReference,  ///< given by using_()
    kState       ///< what was there in the forward before: no order between the two
  };
  std::size_t node = 0;  ///< index of the node it comes from
  std::string port;
  Kind kind = Kind::kStream;
};

class FlowBuilder;
class Graph;
struct ForwardScope;
struct Trunk;

/// Values to log, and the reduction of their elements; nothing: each has one element.
struct LoggedTag {
  std::string tag;  ///< a tag, a group of them, or the id of a node, with * for any text
  std::optional<Reduction> by;
};

/// A node, for listings.
struct NodeInfo {
  std::string id;    ///< "dense_0", or what it was named
  std::string type;  ///< "dense"
  NodeKind kind = NodeKind::kLayer;
  std::vector<NodeInput> inputs;
  std::vector<std::string> tags;
  /// The output, where known before a forward pass.
  std::optional<TensorSpec> result;
  std::int64_t parameters = 0;  ///< elements, those of graphs within included
  bool frozen = false;
  /// The longest way from an input or state to it, in nodes.
  std::size_t level = 0;
  /// "3 rounds": what a loop, map or switch does with its parts.
  std::string control;
  /// The parameters of a single layer, as a document has them: {"out_features": 16}, JSON. Empty
  /// where it is a module from C++.
  std::string attributes;
  /// The parts of a composite and graphs within it: "body" of a loop.
  struct Inside {
    std::string name;
    std::string type;
    const Graph* graph = nullptr;  ///< null for a single layer
  };
  std::vector<Inside> inside;
};

/// How a graph's forward runs.
enum class Execution : std::uint8_t {
  kDynamic,   ///< node by node
  kCompiled,  ///< as a plan, compiled for each combination of input sizes
  kAuto       ///< compiled where that is known to be no slower, else dynamic
};
/// By its name in documents: "auto", "compiled" or "dynamic".
Execution execution_named(std::string_view name);

/// How independent nodes run: the branches of a split, the experts of a mixture. The bits are the
/// same. Stateful nodes run by themselves; so do, in the body of a loop or map, branches that use a
/// weight more than once.
enum class Branches : std::uint8_t {
  kSequential,  ///< one after the other
  kParallel     ///< as oneTBB tasks: for branches of a tenth of a millisecond or more
};
/// By its name in documents: "sequential" or "parallel".
Branches branches_named(std::string_view name);

/// A built flow: a module that can be run, trained, saved, inspected, and nested in another flow.
///
/// Nodes, and so parameters, stand in the order of the flow, in every process: `<node id>.<name>`.
/// A module that nested graphs share has several names; distinct_parameters()
/// (module_state.h) lists its weights once. Per-call state lives in GraphState, so forward
/// passes may run concurrently, except in training with running statistics (batch norm).
class Graph final : public Model,
                    public KeepsState,
                    public LogsValues,
                    public NamesParts,
                    public NamesParameterRoles,
                    public PreparesForInference,
                    public EstimatesWork,
                    public CountsForward,
                    public ChoosesExecution {
 public:
  ~Graph() override;

  bool keeps_state() const override;

  /// As a model: state, its own and that of its layers, is part of the context. The output of a
  /// last layer that ActsOnPositions is deferred where the context takes that.
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override;

  /// Returns one tensor for each of the outputs, or the end of the stream. Inputs are sent to the
  /// device of the weights, and floating-point ones converted to their dtype. Throws Interrupted
  /// after a stop, between two nodes or two rounds. Errors of a node name the node, its inputs and
  /// where they come from.
  std::vector<at::Tensor> run(const Inputs& inputs, GraphState& state,
                              std::stop_token stop = {}) const;

  /// The first output of run(), without a state that outlives the call.
  at::Tensor forward(const at::Tensor& input) const;

  /// Here and in graphs within; sequential until set. Before the first forward, or between
  /// forwards.
  void set_branches(Branches branches);

  /// Before the first forward, or between forwards. Results are the same.
  ///
  /// A compiled graph makes a plan for each combination of input sizes: values share one block of
  /// memory, kernels write into it, adjacent element-wise operations are fused, and gradients need
  /// no record of every operation. Nodes that cannot be lowered are called. Gradients of parameters
  /// are added to grad() directly; one backward per forward, no gradients of gradients. Under
  /// autocast, and in float8, the graph runs dynamically.
  ///
  /// kAuto decides now, from the graph alone, and folds no constants for inference: results are the
  /// same bits, whatever it decides.
  void set_execution(Execution execution);
  /// kDynamic or kCompiled.
  Execution execution() const;
  /// The choice of kAuto, for people: "compiled", or "dynamic, because …". Empty if kAuto was not
  /// set.
  const std::string& execution_choice() const override;
  /// From now on, compiled forwards in evaluation without gradients fold constants: a batch norm
  /// becomes a part of the weights of the convolution before it. Results are the same up to
  /// rounding, usually 1e-5 in float32. Plans are remade after weights change; call this again
  /// after writes that libtorch does not count. Before the first forward, or between forwards.
  void prepare_for_inference() override;
  /// The plan (treadle/plan/plan.h) for such inputs in the present mode (training or evaluation,
  /// gradients recorded or not): runs a forward.
  plan::Plan compile(const Inputs& inputs);
  /// The same for so many rows of zeros. Expects a graph whose inputs' sizes are known.
  plan::Plan compile(std::int64_t rows);

  /// Products of weights count, with both gradients three times the forward; products of values
  /// with each other (attention scores) do not. A loop counts with the most rounds it may make, a
  /// branch of a switch with its share, a size that the data decides as 64.
  std::optional<StepWork> training_work() const override;

  /// By costs() (cost.h), those of graphs within included.
  std::optional<ForwardCost> forward_cost() override;

  /// In the order in which they run.
  const std::vector<NodeInfo>& nodes() const;
  std::size_t input_count() const;
  /// Names of the inputs after the first.
  const std::vector<std::string>& input_names() const;
  /// Indices of the nodes whose values the graph gives.
  const std::vector<std::size_t>& output_nodes() const;
  /// The output, where known.
  std::vector<std::optional<TensorSpec>> results() const;

  /// The index of the node with that tag; nothing for an unknown one.
  std::optional<std::size_t> find_tag(std::string_view tag) const;
  std::vector<std::string> tags() const;
  /// The tags of a group; empty for an unknown one.
  std::vector<std::string> tag_group(std::string_view name) const;
  /// The graph that stands behind a tag; null for anything else.
  std::shared_ptr<Graph> sub(std::string_view tag) const;
  /// The flow that a graph builder wrote for this graph; null for others.
  const FlowBuilder* built_from() const;

  /// As a model: what each training forward logs, see ForwardContext::log(). The name of a
  /// group stands for its tags, "dense_*" for all nodes of that name, which are logged by their
  /// ids, "encoder.dense_*" for those of the graph that the node "encoder" is. Throws a UsageError
  /// for an unknown tag, and for one that is known to have several elements and no reduction.
  /// Before the first forward.
  void set_logged_tags(const std::vector<LoggedTag>& tags);
  std::vector<std::string> logged_names() const override;

  /// Tags and groups.
  std::vector<std::string> part_names() const override;
  std::vector<std::string> parameters_of_part(std::string_view name) const override;

  /// kOutput for the layers that give its outputs: of each the nearest before it with a matrix.
  Roles parameter_roles() const override;

  /// Parameters of the node behind a tag; empty for an unknown one.
  std::vector<at::Tensor> parameters_of(std::string_view tag) const;
  /// Whether the node's parameters are trained. Throws a UsageError for an unknown tag.
  void freeze(const std::vector<std::string>& tags);
  void unfreeze(const std::vector<std::string>& tags);
  /// Takes the gradients of frozen parameters away, so that an optimizer skips them.
  void zero_frozen_grads();

  // Internal: for the code that builds graphs.
  struct Impl;
  explicit Graph(std::unique_ptr<Impl> impl);
  const Impl& impl() const { return *impl_; }
  /// run() within a forward of something larger.
  std::vector<at::Tensor> run_within(const Inputs& inputs, GraphState& state,
                                     const ForwardScope& scope) const;
  /// `input_count`: of the model. `input_order`: which of them each of the graph's is; others are
  /// not used. `output_widths`: what the one output is cut into; empty: it is not cut.
  void serve_as_model(std::size_t input_count, std::vector<std::size_t> input_order,
                      std::vector<std::int64_t> output_widths);
  void set_built_from(std::shared_ptr<const FlowBuilder> flow);
  /// It is a part, or in a part, of what runs more than once in a forward, or shares weights with
  /// what else runs in it.
  void set_repeated();

 private:
  /// Itself without its last layer; null where that cannot be deferred. See run/trunk.h.
  const Trunk* trunk();
  void set_trained(const std::vector<std::string>& tags, bool trained);

  std::unique_ptr<Impl> impl_;
};

/// A graph as a layer, with its first output. The graph's states are the layer's state.
std::shared_ptr<Layer> as_layer(std::shared_ptr<Graph> graph);

}  // namespace treadle::graph
