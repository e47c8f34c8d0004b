#include <treadle/graph/graph.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/split_with_sizes.h>
#include <ATen/ops/zeros.h>
#include <c10/util/SmallVector.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/torch_versions.h>

#include "failure.h"
#include "graph_data.h"
#include "graph_result.h"
#include "plan_compiled.h"
#include "run_graph.h"

namespace treadle::graph {
namespace {

/// Contiguous, as all values of a graph.
c10::SmallVector<at::Tensor, 4> checked(const Graph::Impl& impl, const Inputs& inputs) {
  if (inputs.size() != impl.inputs.size()) {
    throw DataError("the graph takes " + std::to_string(impl.inputs.size()) +
                    (impl.inputs.size() == 1 ? " input" : " inputs") + ", got " +
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

/// A state for one forward, taken from those that lie ready.
class SpareState {
 public:
  explicit SpareState(const Graph& graph) : impl_(graph.impl()) {
    {
      const std::lock_guard lock(impl_.spare_mutex);
      if (!impl_.spare.empty()) {
        state_ = std::move(impl_.spare.back());
        impl_.spare.pop_back();
      }
    }
    if (state_ == nullptr) {
      state_ = std::make_unique<GraphState>(graph);
      keep_no_tags(state_->data());
    }
  }
  ~SpareState() {
    if (state_->remembers())
      state_->reset();
    if (state_->data().keeps_tags) {
      state_->data().keeps_tags = false;
      for (at::Tensor& tag : state_->data().tags)
        tag.reset();
    }
    const std::lock_guard lock(impl_.spare_mutex);
    impl_.spare.push_back(std::move(state_));
  }
  SpareState(const SpareState&) = delete;
  SpareState& operator=(const SpareState&) = delete;

  GraphState& operator*() { return *state_; }
  GraphState* operator->() { return state_.get(); }

 private:
  // What nobody can ask for would only keep memory alive.
  static void keep_no_tags(GraphState::Data& data) {
    data.keeps_tags = false;
    for (NodeState& node : data.nodes) {
      node.keeps_traces = false;
      for (Callee::State& callee : node.callees) {
        if (callee.graph)
          keep_no_tags(callee.graph->data());
      }
    }
  }

  const Graph::Impl& impl_;
  std::unique_ptr<GraphState> state_;
};

class GraphLayer final : public Layer, public Remembers {
 public:
  explicit GraphLayer(std::shared_ptr<Graph> graph)
      : graph_(register_module("graph", std::move(graph))) {}

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    ForwardContext forward{context.stop, std::move(context.memory)};
    Outputs outputs(1);
    graph_->forward(inputs, outputs, forward);
    context.memory = std::move(forward.carried);
    return std::move(outputs.front());
  }
  bool remembers() const override { return graph_->impl().remembers; }

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override {
    return graph_->results().front() ? result_of(*graph_, inputs) : tried_on_zeros(inputs);
  }

  std::shared_ptr<Graph> graph_;
};

/// Whether branches, or those of a graph within, are to run at once where it pays.
bool asks_whether_branches_pay(const Graph::Impl& graph) {
  if (!graph.has_branches)
    return false;
  if (!graph.groups_of_branches.empty() && graph.branches == Branches::kAsItPays)
    return true;
  for (const Place& place : graph.places) {
    if (place.node == nullptr)
      continue;
    for (const Callee& callee : place.node->callees()) {
      if (callee.graph() != nullptr && asks_whether_branches_pay(callee.graph()->impl()))
        return true;
    }
  }
  return false;
}

/// Whether a compiled graph runs node by node this time, to tell whether branches pay.
bool times_branches(const Graph& graph) {
  const Graph::Impl& impl = graph.impl();
  return impl.has_branches && impl.plans->is_to_be_timed() && has_other_threads() &&
         !folds_constants(graph) && asks_whether_branches_pay(impl);
}

}  // namespace

Graph::Graph(std::unique_ptr<Impl> impl) : Model("Graph"), impl_(std::move(impl)) {
  impl_->remembers = !impl_->states.empty();
  std::vector<const torch::nn::Module*> registered;
  for (std::size_t i = 0; i < impl_->places.size(); ++i) {
    const Node* node = impl_->places[i].node.get();
    if (node == nullptr)
      continue;
    const auto register_once = [&](torch::nn::Module& at, const std::string& name,
                                   const std::shared_ptr<torch::nn::Module>& module) {
      // A module that several nodes share has the name of the first.
      if (std::find(registered.begin(), registered.end(), module.get()) != registered.end())
        return;
      registered.push_back(module.get());
      at.register_module(name, module);
    };
    impl_->has_branches = impl_->has_branches || impl_->places[i].group.has_value();
    for (const Callee& callee : node->callees()) {
      if (callee.graph() != nullptr && callee.graph()->impl().has_branches)
        impl_->has_branches = true;
      impl_->remembers = impl_->remembers || callee.remembers();
    }
    const std::string& id = impl_->nodes[i].id;
    if (node->callees().size() == 1 && node->main().name().empty()) {
      register_once(*this, id, node->main().module());
      continue;
    }
    const auto composite = std::make_shared<torch::nn::Module>(impl_->nodes[i].type);
    for (const Callee& callee : node->callees())
      register_once(*composite, callee.name(), callee.module());
    register_module(id, composite);
  }
}

Graph::~Graph() = default;

void Graph::forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) {
  SpareState state(*this);
  if (!context.carried.empty())
    state->load_state(context.carried);
  const bool shows = context.observed != nullptr && !impl_->observed.empty();
  state->data().keeps_tags = shows;
  std::vector<at::Tensor> results;
  if (impl_->input_order.empty()) {
    results = run(inputs, *state, context.stop);
  } else {
    std::vector<at::Tensor> ordered;
    for (const std::size_t input : impl_->input_order)
      ordered.push_back(inputs[input]);
    results = run(ordered, *state, context.stop);
  }
  if (state->remembers())
    context.carried = state->state();
  if (shows) {
    for (const Impl::Observed& one : impl_->observed)
      context.observed->add(one.name, state->data().tags[one.tag_slot], one.by);
  }
  if (!impl_->output_widths.empty()) {
    outputs = at::split_with_sizes(results.front(), impl_->output_widths, -1);
  } else {
    outputs = std::move(results);
  }
}

void Graph::serve_as_model(std::vector<std::size_t> input_order,
                           std::vector<std::int64_t> output_widths) {
  const bool is_given = std::is_sorted(input_order.begin(), input_order.end());
  impl_->input_order = is_given ? std::vector<std::size_t>() : std::move(input_order);
  impl_->output_widths = std::move(output_widths);
}

std::vector<at::Tensor> Graph::run(const Inputs& inputs, GraphState& state,
                                   std::stop_token stop) const {
  const auto checked_inputs = checked(*impl_, inputs);
  const Inputs given{checked_inputs.data(), checked_inputs.size()};
  TREADLE_EXPECTS(state.data().graph == this, "a GraphState belongs to the graph it was made for");
  std::vector<at::Tensor> outputs;
  try {
    const bool is_compiled =
        impl_->execution == Execution::kCompiled && !torch_versions::is_autocast_enabled();
    const bool is_timed = is_compiled && times_branches(*this);
    if (is_compiled && !is_timed) {
      run_compiled(*this, given, state.data(), stop, outputs);
    } else {
      run_graph(*impl_, given, state.data(), stop, outputs);
    }
    if (is_timed)
      impl_->plans->note_timed();
  } catch (const Failure& failure) {
    failure.raise();
  }
  return outputs;
}

at::Tensor Graph::forward(const at::Tensor& input) const {
  SpareState state(*this);
  return std::move(run({&input, 1}, *state).front());
}

void Graph::set_execution(Execution execution) {
  impl_->execution = execution;
  impl_->plans = execution == Execution::kCompiled ? std::make_shared<PlanCache>() : nullptr;
}

Execution Graph::execution() const {
  return impl_->execution;
}

void Graph::prepare_for_inference() {
  impl_->is_for_inference = true;
  if (impl_->plans != nullptr)
    impl_->plans = std::make_shared<PlanCache>();
}

Plan Graph::compile(const Inputs& inputs) {
  const auto given = checked(*impl_, inputs);
  if (impl_->plans == nullptr)
    impl_->plans = std::make_shared<PlanCache>();
  SpareState state(*this);
  std::vector<at::Tensor> outputs;
  std::shared_ptr<const PlanProgram> used;
  try {
    run_compiled(*this, {given.data(), given.size()}, state->data(), {}, outputs, &used);
  } catch (const Failure& failure) {
    failure.raise();
  }
  return Plan(std::move(used));
}

Plan Graph::compile(std::int64_t rows) {
  std::vector<at::Tensor> inputs;
  for (const std::size_t place : impl_->inputs) {
    const auto& spec = impl_->nodes[place].result;
    TREADLE_EXPECTS(spec.has_value(), "a graph that was built without sizes needs inputs");
    std::vector<std::int64_t> sizes = spec->sizes;
    std::replace(sizes.begin(), sizes.end(), TensorSpec::kVaries, rows);
    inputs.push_back(at::zeros(sizes, at::TensorOptions(spec->dtype)));
  }
  return compile(inputs);
}

void Graph::set_branches(Branches branches) {
  for (const auto& module : modules()) {
    if (const auto* graph = dynamic_cast<const Graph*>(module.get()))
      graph->impl_->branches = branches;
  }
}

void Graph::set_repeated() {
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

void Graph::observe(const std::vector<ObservedTag>& tags) {
  std::vector<Impl::Observed> observed;
  const auto add = [&](const std::string& tag, std::optional<Reduction> by) {
    const auto place = find_tag(tag);
    if (!place)
      throw UsageError("the graph has no tag " + quote_text(tag) + did_you_mean(tag, part_names()));
    const std::optional<TensorSpec>& result = impl_->nodes[*place].result;
    const auto is_one = [](std::int64_t size) { return size == 1; };
    if (!by && result && !std::all_of(result->sizes.begin(), result->sizes.end(), is_one)) {
      throw UsageError(quote_text(tag) + " is " + result->text() +
                       "; say how its elements become one number, mean, sum, max, min or norm: "
                       "{\"tag\": " +
                       quote_text(tag) + ", \"by\": \"mean\"}");
    }
    const bool is_known = std::any_of(observed.begin(), observed.end(),
                                      [&](const Impl::Observed& one) { return one.name == tag; });
    if (is_known)
      throw UsageError(quote_text(tag) + " is to be observed twice; leave one of them out");
    observed.push_back({tag, *impl_->places[*place].tag_slot, by});
  };
  for (const ObservedTag& one : tags) {
    const std::vector<std::string> group = tag_group(one.tag);
    if (group.empty())
      add(one.tag, one.by);
    for (const std::string& tag : group)
      add(tag, one.by);
  }
  impl_->observed = std::move(observed);
}

std::vector<std::string> Graph::observed_names() const {
  std::vector<std::string> names;
  for (const Impl::Observed& one : impl_->observed)
    names.push_back(one.name);
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
      parameter.set_requires_grad(trained);
    impl_->nodes[*place].frozen = !trained;
  }
}

void Graph::zero_frozen_grads() {
  for (at::Tensor& parameter : parameters()) {
    if (!parameter.requires_grad())
      parameter.mutable_grad().reset();
  }
}

std::shared_ptr<Layer> as_layer(std::shared_ptr<Graph> graph) {
  return std::make_shared<GraphLayer>(std::move(graph));
}

}  // namespace treadle::graph
