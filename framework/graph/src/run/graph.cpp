#include <treadle/graph/graph.h>

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <ATen/ops/split_with_sizes.h>
#include <c10/util/SmallVector.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/model/abilities/takes_indices.h>

#include "forward/failure.h"
#include "forward/stands_for_body.h"
#include "run/executor.h"
#include "run/graph_data.h"
#include "run/graph_result.h"
#include "run/graphs_within.h"
#include "run/reports.h"
#include "run/run_graph.h"
#include "run/spare_state.h"

// A graph as a module and as a model: registration of parameters, tags, freezing, and the way from
// a Model's forward to the executor. Execution itself: run_graph.cpp (dynamic),
// compile/compiled.cpp.
//
// Modules are registered in the order of nodes, once each. Names of parameters, and with them saved
// files, depend on this.

namespace treadle::graph {
namespace {

/// The default. The other one is made in compile/compiled.cpp, which run/ does not depend on.
class DynamicExecutor final : public Executor {
 public:
  Execution execution() const override { return Execution::kDynamic; }
  void run(const Graph& graph, const Inputs& inputs, GraphState::Data& state,
           const ForwardScope& scope, std::vector<at::Tensor>& outputs) override {
    run_graph(graph.impl(), inputs, state, scope, outputs);
  }
};

/// A nested graph used as a layer. Its state travels through the layer's memory, so that streams
/// stay apart.
class GraphLayer final : public Layer,
                         public KeepsState,
                         public LogsValues,
                         public AddsLosses,
                         public TakesIndices {
 public:
  explicit GraphLayer(std::shared_ptr<Graph> graph)
      : graph_(register_module("graph", std::move(graph))) {}

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    // The state lives in the layer's context between calls. The borrowed GraphState is only where
    // this call works; it is returned empty.
    SpareState state(*graph_);
    if (!context.state().empty())
      state->load_state(context.state());
    const Graph::Impl& impl = graph_->impl();
    if (impl.reports)
      begin_reports(impl, state->data(), context.is_logging(), context.takes_losses());
    std::vector<at::Tensor> results = graph_->run_within(
        inputs, *state, {context.stop(), context.truncates_bptt(), context.calls_layers()});
    if (state->keeps_state())
      context.state() = state->state();
    if (impl.reports) {
      hand_over_reports(impl, state->data(), [&](LayerReports::Report&& report) {
        if (report.is_loss) {
          context.add_loss(report.name, std::move(report.value));
        } else {
          context.log(report.name, report.value);
        }
      });
    }
    return std::move(results.front());
  }
  bool keeps_state() const override { return graph_->impl().keeps_state; }
  std::vector<std::string> logged_names() const override {
    return graph::logged_names(graph_->impl());
  }
  std::vector<std::string> loss_names() const override { return graph::loss_names(graph_->impl()); }

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override {
    // A graph that was built without sizes has none to infer from.
    return graph_->results().front() ? result_of(*graph_, inputs) : tried_on_zeros(inputs);
  }

  std::shared_ptr<Graph> graph_;
};

/// Registers the modules of nodes under the nodes' names. "encoder.0" is "0" in a module "encoder".
class Registration {
 public:
  explicit Registration(torch::nn::Module& owner) : owner_(owner) {}

  void add_nodes(const Graph::Impl& graph) {
    for (std::size_t i = 0; i < graph.places.size(); ++i) {
      if (graph.places[i].node != nullptr)
        add_node(graph.nodes[i].id, graph.nodes[i].type, *graph.places[i].node);
    }
  }

 private:
  void add_node(const std::string& id, const std::string& type, const Node& node) {
    // A node with one nameless callee is registered as its module, "dense_0.weight". A composite
    // gets a module around its callees: "loop_0.body.weight", "loop_0.condition.weight".
    if (node.callees().size() == 1 && node.main().name().empty()) {
      const std::shared_ptr<torch::nn::Module>& module = node.main().module();
      const auto* stands_for = dynamic_cast<const StandsForBody*>(module.get());
      // The body's nodes take the layer's place. Neither the layer nor the body's graph is
      // registered then: settings of graphs reach it by graphs_within().
      if (stands_for != nullptr && stands_for->body() != nullptr) {
        add_nodes(stands_for->body()->impl());
      } else if (is_new(*module)) {
        add(id, module);
      }
      return;
    }
    const auto composite = std::make_shared<torch::nn::Module>(type);
    for (const Callee& callee : node.callees()) {
      if (is_new(*callee.module()))
        composite->register_module(callee.name(), callee.module());
    }
    add(id, composite);
  }

  /// A module that several nodes share has the name of the first.
  bool is_new(const torch::nn::Module& module) {
    if (std::find(registered_.begin(), registered_.end(), &module) != registered_.end())
      return false;
    registered_.push_back(&module);
    return true;
  }

  void add(const std::string& id, const std::shared_ptr<torch::nn::Module>& module) {
    torch::nn::Module* at = &owner_;
    std::size_t begin = 0;
    for (std::size_t dot = id.find('.'); dot != std::string::npos; dot = id.find('.', begin)) {
      // A group is made at its first node, so it stands where that node does in the order of
      // parameters. node_ids.cpp refuses a node that has the name of a group.
      std::shared_ptr<torch::nn::Module>& group = groups_[id.substr(0, dot)];
      if (group == nullptr) {
        group = at->register_module(id.substr(begin, dot - begin),
                                    std::make_shared<torch::nn::Module>("Group"));
      }
      at = group.get();
      begin = dot + 1;
    }
    at->register_module(id.substr(begin), module);
  }

  torch::nn::Module& owner_;
  std::vector<const torch::nn::Module*> registered_;
  std::map<std::string, std::shared_ptr<torch::nn::Module>> groups_;
};

}  // namespace

std::unique_ptr<Executor> make_dynamic_executor() {
  return std::make_unique<DynamicExecutor>();
}

Graph::Graph(std::unique_ptr<Impl> impl) : Model("Graph"), impl_(std::move(impl)) {
  // Nested graphs are complete by now, so their flags are final. They are collected once, because
  // forwards look at them.
  impl_->executor = make_dynamic_executor();
  impl_->keeps_state = !impl_->states.empty();
  Registration(*this).add_nodes(*impl_);
  for (const Place& place : impl_->places) {
    if (place.node == nullptr)
      continue;
    impl_->has_branches = impl_->has_branches || place.group.has_value();
    for (const Callee& callee : place.node->callees()) {
      if (callee.graph() != nullptr && callee.graph()->impl().has_branches)
        impl_->has_branches = true;
      impl_->keeps_state = impl_->keeps_state || callee.keeps_state();
      impl_->reports = impl_->reports || callee.reports();
      impl_->adds_losses = impl_->adds_losses || callee.adds_losses();
    }
  }
}

Graph::~Graph() = default;

bool Graph::keeps_state() const {
  return impl_->keeps_state;
}

const Trunk* Graph::trunk() {
  const std::lock_guard lock(impl_->trunk_mutex);
  if (!impl_->trunk) {
    impl_->trunk = trunk_of(*this).value_or(Trunk());
    if (impl_->trunk->graph != nullptr)
      impl_->trunk->graph->set_execution(execution());
  }
  return impl_->trunk->graph != nullptr ? &*impl_->trunk : nullptr;
}

namespace {

/// Of a graph within, by the places of the graphs around it.
GraphState::Data& state_within(GraphState::Data& state, const std::vector<std::size_t>& within) {
  GraphState::Data* inner = &state;
  for (const std::size_t place : within)
    inner = &inner->nodes[place].callees[0].graph->data();
  return *inner;
}

/// Values that are logged are kept to the end of the forward, by the graphs that they are in.
void keep_logged(const Graph::Impl& graph, GraphState::Data& state, bool on) {
  state.keeps_tags = on;
  for (const Graph::Impl::LoggedValue& one : graph.logged) {
    GraphState::Data& inner = state_within(state, one.within);
    inner.keeps_tags = on;
    if (!on)
      inner.tags[one.tag_slot].reset();
  }
}

}  // namespace

void Graph::forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) {
  if (context.takes_deferred_output()) {
    if (const Trunk* const cut = trunk()) {
      context.set_takes_deferred_output(false);
      Outputs features(1);
      cut->graph->forward(inputs, features, context);
      context.defer_output(cut->deferred(std::move(features.front()), context));
      return;
    }
  }
  // A stream's state is in the context and never in the graph, so one graph serves several streams:
  // shards, and batches that are evaluated at once.
  SpareState state(*this);
  if (!context.state().empty())
    state->load_state(context.state());
  const bool shows = context.is_logging() && !impl_->logged.empty();
  // Tagged values are kept only where they are logged: they live to the end of the forward, and a
  // plan must return them.
  if (shows)
    keep_logged(*impl_, state->data(), true);
  if (impl_->reports)
    begin_reports(*impl_, state->data(), context.is_logging(), context.takes_losses());
  const ForwardScope scope{context.stop(), context.truncates_bptt(), context.calls_layers()};
  std::vector<at::Tensor> results;
  if (impl_->input_order.empty()) {
    results = run_within(inputs, *state, scope);
  } else {
    std::vector<at::Tensor> ordered;
    // Handles, no copies. A port that no step uses is left out.
    for (const std::size_t input : impl_->input_order)
      ordered.push_back(inputs[input]);
    results = run_within(ordered, *state, scope);
  }
  if (state->keeps_state())
    context.state() = state->state();
  if (shows) {
    for (const Impl::LoggedValue& one : impl_->logged)
      context.log(one.name, state_within(state->data(), one.within).tags[one.tag_slot], one.by);
    keep_logged(*impl_, state->data(), false);
  }
  if (impl_->reports) {
    hand_over_reports(*impl_, state->data(), [&](LayerReports::Report&& report) {
      if (report.is_loss) {
        context.add_loss(report.name, std::move(report.value));
      } else {
        context.log(report.name, report.value);
      }
    });
  }
  if (!impl_->output_widths.empty()) {
    // Views of the flow's one end, in the order of the loss's outputs.
    outputs = at::split_with_sizes(results.front(), impl_->output_widths, -1);
  } else {
    outputs = std::move(results);
  }
}

void Graph::serve_as_model(std::size_t input_count, std::vector<std::size_t> input_order,
                           std::vector<std::int64_t> output_widths) {
  // The graph's own order is stored as an empty list: the usual forward then copies no handles.
  std::vector<std::size_t> all(input_count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  impl_->input_order = input_order == all ? std::vector<std::size_t>() : std::move(input_order);
  impl_->output_widths = std::move(output_widths);
  impl_->is_model = true;
}

namespace {

/// The first parameter that is a number; undefined where there is none. Looks no further than
/// necessary: run() asks each time, as a module may have been moved.
at::Tensor first_weight(const torch::nn::Module& module) {
  for (const at::Tensor& parameter : module.parameters(/*recurse=*/false)) {
    if (c10::isFloatingType(parameter.scalar_type()))
      return parameter;
  }
  for (const auto& child : module.children()) {
    if (const at::Tensor found = first_weight(*child); found.defined())
      return found;
  }
  return {};
}

}  // namespace

std::vector<at::Tensor> Graph::run(const Inputs& inputs, GraphState& state,
                                   std::stop_token stop) const {
  c10::SmallVector<at::Tensor, 4> placed(inputs.begin(), inputs.end());
  if (const at::Tensor weight = first_weight(*this); weight.defined()) {
    for (at::Tensor& input : placed) {
      if (!input.defined())
        continue;
      const bool is_number = c10::isFloatingType(input.scalar_type());
      input = input.to(weight.device(), is_number ? weight.scalar_type() : input.scalar_type());
    }
  }
  return run_within({placed.data(), placed.size()}, state, {std::move(stop)});
}

std::vector<at::Tensor> Graph::run_within(const Inputs& inputs, GraphState& state,
                                          const ForwardScope& scope) const {
  // Rule 4 of gradient_order.h begins here: nodes get contiguous values only.
  const auto contiguous = checked_inputs(*impl_, inputs);
  const Inputs given{contiguous.data(), contiguous.size()};
  TREADLE_EXPECTS(state.data().graph == this, "a GraphState belongs to the graph it was made for");
  std::vector<at::Tensor> outputs;
  try {
    // Losses of layers are results that a plan does not have.
    const bool adds_losses = impl_->adds_losses && state.data().takes_losses;
    if (state.data().hook) {
      ForwardScope told = scope;
      told.hook = &state.data().hook;
      run_graph(*impl_, given, state.data(), told, outputs);
    } else if (adds_losses) {
      run_graph(*impl_, given, state.data(), scope, outputs);
    } else {
      impl_->executor->run(*this, given, state.data(), scope, outputs);
    }
  } catch (const Failure& failure) {
    // Only the outermost graph turns a failure into an error that people see; nested ones add their
    // place and pass it on.
    failure.raise();
  }
  return outputs;
}

at::Tensor Graph::forward(const at::Tensor& input) const {
  SpareState state(*this);
  return std::move(run({&input, 1}, *state).front());
}

Execution Graph::execution() const {
  return impl_->executor->execution();
}

const std::string& Graph::execution_choice() const {
  return impl_->execution_choice;
}

void Graph::set_branches(Branches branches) {
  for (const Graph* graph : graphs_within(*this))
    graph->impl_->branches = branches;
  impl_->trunk.reset();
}

const FlowBuilder* Graph::built_from() const {
  return impl_->built_from.get();
}

void Graph::set_built_from(std::shared_ptr<const FlowBuilder> flow) {
  impl_->built_from = std::move(flow);
}

void Graph::set_repeated() {
  // Of this graph only: the caller walks all modules that are repeated.
  for (BranchGroup& group : impl_->groups_of_branches)
    group.is_repeated = true;
}

const std::vector<NodeInfo>& Graph::nodes() const {
  return impl_->nodes;
}
std::size_t Graph::input_count() const {
  return impl_->inputs.size();
}
const std::vector<std::string>& Graph::input_names() const {
  return impl_->input_names;
}
const std::vector<std::size_t>& Graph::output_nodes() const {
  return impl_->outputs;
}

std::vector<std::optional<TensorSpec>> Graph::results() const {
  std::vector<std::optional<TensorSpec>> results;
  for (const std::size_t output : impl_->outputs)
    results.push_back(impl_->nodes[output].result);
  return results;
}

std::optional<std::size_t> Graph::find_tag(std::string_view tag) const {
  const auto found = impl_->tags.find(tag);
  return found == impl_->tags.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Graph::tags() const {
  std::vector<std::string> names;
  for (const auto& [tag, place] : impl_->tags)
    names.push_back(tag);
  return names;
}

std::vector<std::string> Graph::tag_group(std::string_view name) const {
  for (const auto& [group, tags] : impl_->groups) {
    if (group == name)
      return tags;
  }
  return {};
}

std::shared_ptr<Graph> Graph::sub(std::string_view tag) const {
  const auto place = find_tag(tag);
  if (!place || impl_->places[*place].node == nullptr)
    return nullptr;
  return impl_->places[*place].node->main().graph();
}

namespace {

/// A node that can be logged: in a graph, or in one within it.
struct FoundNode {
  std::string name;  ///< "hive_0.cells_1"
  std::vector<std::size_t> within;
  Graph* graph = nullptr;
  std::size_t place = 0;
};

/// The graph that a node calls once.
Graph* graph_of(Graph& graph, std::size_t place) {
  const bool is_graph = graph.nodes()[place].kind == NodeKind::kGraph;
  return is_graph ? graph.impl().places[place].node->main().graph().get() : nullptr;
}

/// All nodes with such an id, `*` for any text; behind a dot those of the graph that a node is.
void find_nodes(Graph& graph, const std::string& pattern, const FoundNode& around,
                std::vector<FoundNode>& found) {
  const auto matches = [](const std::string& id, const std::string& what) {
    return fnmatch(what.c_str(), id.c_str(), 0) == 0;
  };
  for (std::size_t place = 0; place < graph.nodes().size(); ++place) {
    const std::string& id = graph.nodes()[place].id;
    if (graph.impl().places[place].node == nullptr)
      continue;
    const std::string name = around.name.empty() ? id : around.name + "." + id;
    if (matches(id, pattern)) {
      found.push_back({name, around.within, &graph, place});
      continue;
    }
    Graph* const inner = graph_of(graph, place);
    const std::size_t dot = pattern.find('.');
    if (inner == nullptr || dot == std::string::npos || !matches(id, pattern.substr(0, dot)))
      continue;
    FoundNode node{name, around.within, inner, 0};
    node.within.push_back(place);
    find_nodes(*inner, pattern.substr(dot + 1), node, found);
  }
}

/// For suggestions, with those within written behind a dot.
void add_names(Graph& graph, const std::string& around, std::vector<std::string>& names) {
  for (std::size_t place = 0; place < graph.nodes().size(); ++place) {
    const std::string name = around + graph.nodes()[place].id;
    names.push_back(name);
    if (Graph* const inner = graph_of(graph, place))
      add_names(*inner, name + ".", names);
  }
}

}  // namespace

void Graph::set_logged_tags(const std::vector<LoggedTag>& tags) {
  std::vector<Impl::LoggedValue> logged;
  const auto is_taken = [&](const std::string& name) {
    return std::any_of(logged.begin(), logged.end(),
                       [&](const Impl::LoggedValue& one) { return one.name == name; });
  };
  const auto add = [&](const FoundNode& node, std::optional<Reduction> by) {
    // Where sizes are known, a value of several elements without a reduction is refused now. Else
    // ForwardContext::log() refuses it in the first step.
    Impl& impl = *node.graph->impl_;
    std::string name = node.name;
    const std::optional<TensorSpec>& result = impl.nodes[node.place].result;
    const auto is_one = [](std::int64_t size) { return size == 1; };
    if (!by && result && !std::all_of(result->sizes.begin(), result->sizes.end(), is_one)) {
      throw UsageError(quote_text(name) + " is " + result->text() +
                       "; say how its elements become one number, mean, sum, max, min or norm: "
                       "{\"tag\": " +
                       quote_text(name) + ", \"reduction\": \"mean\"}");
    }
    std::optional<std::size_t>& slot = impl.places[node.place].tag_slot;
    if (!slot)
      slot = impl.tag_slots++;
    const bool is_same = std::any_of(logged.begin(), logged.end(), [&](const auto& one) {
      return one.within == node.within && one.tag_slot == *slot && one.by == by;
    });
    if (by && is_taken(name))  // by another reduction before
      name += "." + std::string(name_of(*by));
    if (is_same || is_taken(name))
      throw UsageError(quote_text(node.name) + " is to be logged twice; leave one of them out");
    logged.push_back({name, *slot, by, node.within});
  };
  for (const LoggedTag& one : tags) {
    const std::vector<std::string> group = tag_group(one.tag);
    for (const std::string& tag : group)
      add({tag, {}, this, *find_tag(tag)}, one.by);
    if (!group.empty())
      continue;
    if (const auto place = find_tag(one.tag)) {
      add({one.tag, {}, this, *place}, one.by);
      continue;
    }
    std::vector<FoundNode> found;
    find_nodes(*this, one.tag, {}, found);
    for (const FoundNode& node : found)
      add(node, one.by);
    if (found.empty()) {
      std::vector<std::string> names = part_names();
      add_names(*this, "", names);
      throw UsageError("the graph has no tag and no node " + quote_text(one.tag) +
                       did_you_mean(one.tag, names));
    }
  }
  impl_->logged = std::move(logged);
  impl_->trunk.reset();
  // States that were made before have no room for further slots.
  const std::lock_guard lock(impl_->spare_mutex);
  impl_->spare.clear();
}

std::vector<std::string> Graph::logged_names() const {
  std::vector<std::string> names;
  for (const Impl::LoggedValue& one : impl_->logged)
    names.push_back(one.name);
  for (std::vector<std::string> more : {graph::logged_names(*impl_), loss_names(*impl_)})
    names.insert(names.end(), more.begin(), more.end());
  return names;
}

std::vector<std::string> Graph::part_names() const {
  std::vector<std::string> names = tags();
  for (const auto& [group, tags] : impl_->groups)
    names.push_back(group);
  return names;
}

std::vector<std::string> Graph::parameters_of_part(std::string_view name) const {
  std::vector<std::string> tags = tag_group(name);
  if (tags.empty())
    tags.emplace_back(name);
  // By identity and not by a prefix of names: a module that several nodes share has the name of the
  // first one only.
  std::vector<at::Tensor> meant;
  for (const std::string& tag : tags) {
    const std::vector<at::Tensor> more = parameters_of(tag);
    meant.insert(meant.end(), more.begin(), more.end());
  }
  std::vector<std::string> names;
  for (const auto& item : named_parameters()) {
    const auto is_it = [&](const at::Tensor& parameter) { return parameter.is_same(item.value()); };
    if (std::any_of(meant.begin(), meant.end(), is_it))
      names.push_back(item.key());
  }
  return names;
}

NamesParameterRoles::Roles Graph::parameter_roles() const {
  Roles roles;
  // Graphs within a model are layers of it.
  if (!impl_->is_model)
    return roles;
  for (const at::Tensor& parameter : output_layer_parameters(*this))
    roles.emplace_back(parameter, ParameterRole::kOutput);
  return roles;
}

std::vector<at::Tensor> Graph::parameters_of(std::string_view tag) const {
  const auto place = find_tag(tag);
  if (!place || impl_->places[*place].node == nullptr)
    return {};
  return impl_->places[*place].node->parameters();
}

void Graph::freeze(const std::vector<std::string>& tags) {
  set_trained(tags, false);
}
void Graph::unfreeze(const std::vector<std::string>& tags) {
  set_trained(tags, true);
}

void Graph::set_trained(const std::vector<std::string>& tags, bool trained) {
  for (const std::string& tag : tags) {
    const auto place = find_tag(tag);
    if (!place)
      throw UsageError("the graph has no tag \"" + tag + "\"" + did_you_mean(tag, this->tags()));
    for (at::Tensor& parameter : parameters_of(tag))
      // Plans watch this flag (Program::watch()) and are remade.
      parameter.set_requires_grad(trained);
    impl_->nodes[*place].frozen = !trained;
  }
}

void Graph::zero_frozen_grads() {
  for (at::Tensor& parameter : parameters()) {
    if (!parameter.requires_grad())
      // Undefined, not zero: libtorch's optimizers skip the first, while momentum or decay would
      // still move a parameter whose gradient is zero.
      parameter.mutable_grad().reset();
  }
}

std::shared_ptr<Layer> as_layer(std::shared_ptr<Graph> graph) {
  return std::make_shared<GraphLayer>(std::move(graph));
}

}  // namespace treadle::graph
