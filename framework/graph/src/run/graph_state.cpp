#include <treadle/graph/graph_state.h>

#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/near_miss.h>

#include "run/graph_data.h"
#include "run/run_graph.h"

// The state of one stream, as a tree that mirrors nested graphs. Saved as {"states": tag -> tensor,
// "nodes": id -> callee -> {"memory", "graph"}}, without what is empty. Tensors of a state may
// carry gradients (truncated backpropagation through time): detach() cuts them.

namespace treadle::graph {
namespace {

// Parts of a saved state. Ids and tags are words without '/'.
constexpr std::string_view kStates = "states";
constexpr std::string_view kNodes = "nodes";
constexpr std::string_view kMemory = "memory";
constexpr std::string_view kGraph = "graph";

/// Calls `change` with every tensor that outlives a forward.
template <typename Change>
void change_memory(StateDict& memory, const Change& change) {
  const auto tensors = memory.tensors();
  for (const auto& [name, tensor] : tensors)
    memory.put(name, change(tensor));
  const auto parts = memory.parts();
  for (const auto& [name, part] : parts) {
    StateDict changed = part;
    change_memory(changed, change);
    memory.put(name, std::move(changed));
  }
}

template <typename Change>
void change_tensors(GraphState::Data& data, const Change& change) {
  for (at::Tensor& state : data.states) {
    if (state.defined())
      state = change(state);
  }
  for (NodeState& node : data.nodes) {
    for (Callee::State& callee : node.callees) {
      change_memory(callee.memory, change);
      if (callee.graph)
        change_tensors(callee.graph->data(), change);
    }
  }
}

/// A node's only callee has no name.
std::string saved_name(const Callee& callee) {
  return callee.name().empty() ? "self" : callee.name();
}

[[noreturn]] void refuse_tag(const Graph& graph, std::string_view tag) {
  throw UsageError("the graph has no tag \"" + std::string(tag) + "\"" +
                   did_you_mean(tag, graph.tags()));
}

at::Tensor detached(const at::Tensor& tensor) {
  return tensor.detach();
}

}  // namespace

void detach_memory(StateDict& memory) {
  change_memory(memory, detached);
}

GraphState::GraphState(const Graph& graph) : data_(std::make_unique<Data>()) {
  const Graph::Impl& impl = graph.impl();
  data_->graph = &graph;
  data_->values.resize(impl.places.size());
  data_->states.resize(impl.states.size());
  data_->tags.resize(impl.tag_slots);
  data_->nodes.resize(impl.places.size());
  for (std::size_t i = 0; i < impl.places.size(); ++i) {
    if (!impl.places[i].node)
      continue;
    for (const Callee& callee : impl.places[i].node->callees()) {
      Callee::State& state = data_->nodes[i].callees.emplace_back();
      if (callee.graph())
        state.graph = std::make_unique<GraphState>(*callee.graph());
    }
  }
}

GraphState::~GraphState() = default;
GraphState::GraphState(GraphState&&) noexcept = default;
GraphState& GraphState::operator=(GraphState&&) noexcept = default;

const Graph& GraphState::graph() const {
  return *data_->graph;
}

const at::Tensor& GraphState::tagged(std::string_view tag) const {
  const auto place = data_->graph->find_tag(tag);
  if (!place)
    refuse_tag(*data_->graph, tag);
  return data_->tags[*data_->graph->impl().places[*place].tag_slot];
}

const std::vector<at::Tensor>& GraphState::traces(std::string_view tag) const {
  const auto place = data_->graph->find_tag(tag);
  if (!place)
    refuse_tag(*data_->graph, tag);
  return data_->nodes[*place].traces;
}

const at::Tensor& GraphState::pondered(std::string_view tag) const {
  const auto place = data_->graph->find_tag(tag);
  if (!place)
    refuse_tag(*data_->graph, tag);
  return data_->nodes[*place].pondered;
}

void GraphState::on_each_node(NodeHook hook) {
  data_->hook = std::move(hook);
}

GraphState* GraphState::sub(std::string_view tag) {
  const auto place = data_->graph->find_tag(tag);
  if (!place || data_->nodes[*place].callees.size() != 1)
    return nullptr;
  return data_->nodes[*place].callees[0].graph.get();
}

void GraphState::profile(bool on, const DeviceBackend* backend) {
  data_->times.assign(on ? data_->values.size() : 0, {});
  data_->device_times.use(on ? backend : nullptr);
  if (!on)
    data_->profile.reset();
  for (NodeState& node : data_->nodes) {
    for (Callee::State& callee : node.callees) {
      if (callee.graph)
        callee.graph->profile(on, backend);
    }
  }
}

const Profile* GraphState::last_profile() const {
  return read_profile(data_->graph->impl(), *data_);
}

void GraphState::on_profile(ProfileHook hook) {
  data_->on_profile = std::move(hook);
}

void GraphState::on_log(LogHook hook) {
  data_->on_log = std::move(hook);
}

std::chrono::nanoseconds GraphState::timing(std::string_view tag) const {
  const auto place = data_->graph->find_tag(tag);
  const Profile* const profile = last_profile();
  if (!place || profile == nullptr)
    return std::chrono::nanoseconds(0);
  for (const NodeTiming& node : profile->nodes) {
    if (node.id == data_->graph->nodes()[*place].id)
      return node.duration;
  }
  return std::chrono::nanoseconds(0);
}

void GraphState::reset() {
  for (at::Tensor& state : data_->states)
    state.reset();
  for (NodeState& node : data_->nodes) {
    for (Callee::State& callee : node.callees) {
      if (!callee.memory.empty())
        callee.memory = {};
      if (callee.graph)
        callee.graph->reset();
    }
  }
}

void GraphState::detach() {
  change_tensors(*data_, detached);
}

void GraphState::to(c10::Device device) {
  change_tensors(*data_, [&](const at::Tensor& tensor) { return tensor.detach().to(device); });
}

bool GraphState::keeps_state() const {
  for (const at::Tensor& state : data_->states) {
    if (state.defined())
      return true;
  }
  for (const NodeState& node : data_->nodes) {
    for (const Callee::State& callee : node.callees) {
      if (!callee.memory.empty() || (callee.graph && callee.graph->keeps_state()))
        return true;
    }
  }
  return false;
}

StateDict GraphState::do_state() const {
  const Graph::Impl& impl = data_->graph->impl();
  StateDict state;
  StateDict states;
  for (std::size_t i = 0; i < impl.states.size(); ++i) {
    if (data_->states[i].defined())
      states.put(impl.states[i].tag, data_->states[i]);
  }
  if (!states.empty())
    state.put(kStates, std::move(states));
  StateDict nodes;
  for (std::size_t i = 0; i < impl.places.size(); ++i) {
    StateDict of_node;
    for (std::size_t c = 0; c < data_->nodes[i].callees.size(); ++c) {
      const Callee::State& callee = data_->nodes[i].callees[c];
      StateDict of_callee;
      if (!callee.memory.empty())
        of_callee.put(kMemory, callee.memory);
      if (callee.graph && callee.graph->keeps_state())
        of_callee.put(kGraph, callee.graph->state());
      if (!of_callee.empty())
        of_node.put(saved_name(impl.places[i].node->callees()[c]), std::move(of_callee));
    }
    if (!of_node.empty())
      nodes.put(impl.nodes[i].id, std::move(of_node));
  }
  if (!nodes.empty())
    state.put(kNodes, std::move(nodes));
  return state;
}

void GraphState::do_load_state(const StateDict& state) {
  reset();
  const Graph::Impl& impl = data_->graph->impl();
  if (state.has_part(kStates)) {
    const StateDict& states = state.part(kStates);
    std::size_t known = 0;
    for (std::size_t i = 0; i < impl.states.size(); ++i) {
      if (!states.has_tensor(impl.states[i].tag))
        continue;
      data_->states[i] = states.tensor(impl.states[i].tag);
      ++known;
    }
    if (known != states.tensors().size())
      throw StorageError(
          "a saved state of the model belongs to another graph: it has states that this one lacks");
  }
  if (!state.has_part(kNodes))
    return;
  const StateDict& nodes = state.part(kNodes);
  for (std::size_t i = 0; i < impl.places.size(); ++i) {
    if (!nodes.has_part(impl.nodes[i].id))
      continue;
    const StateDict& of_node = nodes.part(impl.nodes[i].id);
    for (std::size_t c = 0; c < data_->nodes[i].callees.size(); ++c) {
      const std::string name = saved_name(impl.places[i].node->callees()[c]);
      if (!of_node.has_part(name))
        continue;
      const StateDict& of_callee = of_node.part(name);
      Callee::State& loaded = data_->nodes[i].callees[c];
      if (of_callee.has_part(kMemory))
        loaded.memory = of_callee.part(kMemory);
      if (of_callee.has_part(kGraph) && loaded.graph)
        loaded.graph->load_state(of_callee.part(kGraph));
    }
  }
}

}  // namespace treadle::graph
