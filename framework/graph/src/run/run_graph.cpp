#include "run/run_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/ops/full.h>
#include <c10/util/SmallVector.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/begins_forward.h>
#include <treadle/tensor/task_random.h>

#include "forward/failure.h"
#include "forward/gradient_order.h"
#include "run/place_text.h"

// Dynamic execution: one forward of a graph, place by place.
//
// Everything that a forward writes is in GraphState::Data; the graph is read-only. Values are freed
// after their last use (Place::done) and, after a failure, all together, so that nothing of a
// failed forward reaches the next one. States are written back only when every place has run.
//
// One random number is drawn per graph with branches, whether they run concurrently or not: streams
// of branches derive from it, so the bits do not depend on how they run.

namespace treadle::graph {
namespace {

at::Tensor initial_value(const StateSlot& slot, const at::Tensor& first_input,
                         std::optional<c10::ScalarType> dtype) {
  std::vector<std::int64_t> sizes{first_input.size(0)};
  sizes.insert(sizes.end(), slot.shape.begin(), slot.shape.end());
  return at::full(sizes, slot.fill,
                  first_input.options().dtype(dtype.value_or(first_input.scalar_type())));
}

/// Row i of each batch is the next step of one stream. The last batch of an epoch may be smaller:
/// its rows go on, the other streams have ended.
void fit_rows(const StateSlot& slot, std::int64_t rows, at::Tensor& value) {
  if (!value.defined() || value.size(0) == rows)
    return;
  if (value.size(0) < rows) {
    throw TrainingError("the state \"" + slot.tag + "\" is that of " +
                        std::to_string(value.size(0)) + " rows, but this batch has " +
                        std::to_string(rows) +
                        "; batches after the first may have fewer rows, not more");
  }
  value = value.narrow(0, 0, rows);
}

void run_alone(const Graph::Impl& graph, std::size_t index, GraphState::Data& state,
               const ForwardScope& scope) {
  c10::SmallVector<at::Tensor, 4> inputs;
  const Place& place = graph.places[index];
  for (std::size_t i = 0; i < place.inputs.size(); ++i) {
    const at::Tensor& value = state.values[place.inputs[i]];
    inputs.push_back(place.is_shared[i] ? accumulation_point(value) : value);
  }
  state.values[index] = run_place(graph, index, {inputs.data(), inputs.size()}, state, scope);
  for (std::size_t i = 0; i < place.further.size(); ++i)
    state.values[place.further[i]] = std::move(state.nodes[index].callees[0].outputs[i]);
}

/// All of the group that begins at this place; its others do nothing.
void run_group(const Graph::Impl& graph, std::size_t index, std::uint64_t seed,
               GraphState::Data& state, const ForwardScope& scope) {
  const BranchGroup& group = graph.groups_of_branches[*graph.places[index].group];
  if (group.places.front() != index)
    return;
  const Branches branches = scope.hook != nullptr ? Branches::kSequential : graph.branches;
  run_branches(group, branches, seed, graph.parameters, state.values,
               [&](std::size_t place, const Inputs& given) {
                 return run_place(graph, place, given, state, scope);
               });
}

}  // namespace

namespace {

/// With its hook, which the nodes of graphs within have as well.
at::Tensor run_told(const Graph::Impl& graph, std::size_t index, const Inputs& given,
                    GraphState::Data& state, const ForwardScope& scope) {
  const std::string node = scope.within + graph.nodes[index].id;
  ForwardScope within = scope;
  within.within = node + ".";
  at::Tensor value =
      contiguous_with_gradient(graph.places[index].node->run(given, state.nodes[index], within));
  (*scope.hook)(node, value);
  return value;
}

}  // namespace

at::Tensor run_place(const Graph::Impl& graph, std::size_t index, const Inputs& given,
                     GraphState::Data& state, const ForwardScope& scope) {
  if (scope.stop.stop_requested())
    throw Interrupted("stopped within a forward of the model");
  try {
    if (scope.hook != nullptr)
      return run_told(graph, index, given, state, scope);
    if (state.times.empty())
      return contiguous_with_gradient(
          graph.places[index].node->run(given, state.nodes[index], scope));
    begin_time(state, index);
    at::Tensor value =
        contiguous_with_gradient(graph.places[index].node->run(given, state.nodes[index], scope));
    end_time(state, index);
    return value;
  } catch (...) {
    std::vector<std::string> sizes;
    for (const at::Tensor& tensor : given)
      sizes.push_back(sizes_text(tensor));
    rethrow_failed(node_text(graph.nodes[index]), failed_text(graph, index, sizes));
  }
}

void begin_times(GraphState::Data& state, c10::Device device) {
  using TimePoint = GraphState::Data::Clock::time_point;
  if (state.times.empty())
    return;
  std::fill(state.times.begin(), state.times.end(), std::pair<TimePoint, TimePoint>());
  state.device_times.begin(device, state.times.size());
}

void begin_time(GraphState::Data& state, std::size_t place) {
  auto& began = state.times[place].first;
  if (began == GraphState::Data::Clock::time_point())
    began = GraphState::Data::Clock::now();
  if (state.device_times.are_taken())
    state.device_times.begin_place(place);
}

void end_time(GraphState::Data& state, std::size_t place) {
  state.times[place].second = GraphState::Data::Clock::now();
  if (state.device_times.are_taken())
    state.device_times.end_place(place);
}

void begin_states(const Graph::Impl& graph, const at::Tensor& first_input, GraphState::Data& state,
                  const ForwardScope& scope) {
  for (std::size_t i = 0; i < graph.states.size(); ++i) {
    const StateSlot& slot = graph.states[i];
    at::Tensor& value = state.states[i];
    if (!value.defined() && slot.has_initial)
      value = initial_value(slot, first_input, graph.dtype);
    if (slot.has_rows && first_input.dim() > 0)
      fit_rows(slot, first_input.size(0), value);
    if (scope.truncates_bptt && value.defined())
      value = value.detach();
  }
}

void tell_beginning(const Graph::Impl& graph, const at::Tensor& first_input,
                    GraphState::Data& state, const ForwardScope& scope) {
  const std::int64_t rows = first_input.dim() == 0 ? 1 : first_input.size(0);
  for (const std::size_t place : graph.tells_beginning) {
    const auto& callees = graph.places[place].node->callees();
    for (std::size_t i = 0; i < callees.size(); ++i) {
      if (auto* told = callees[i].ability<BeginsForward>()) {
        Callee::State& own = state.nodes[place].callees[i];
        LayerContext context(scope.stop, own.memory, own.reports);
        context.set_truncated_bptt(scope.truncates_bptt);
        context.set_calls_layers(scope.calls_layers);
        told->begin_forward(rows, first_input.device(), context);
      }
    }
  }
}

Profile profile_of(const Graph::Impl& graph, const GraphState::Data& state) {
  using TimePoint = GraphState::Data::Clock::time_point;
  Profile profile;
  std::map<std::size_t, std::pair<TimePoint, TimePoint>> spans;
  std::map<std::size_t, LevelTiming> levels;
  for (std::size_t place = 0; place < graph.places.size(); ++place) {
    if (graph.places[place].node == nullptr)
      continue;
    const NodeInfo& node = graph.nodes[place];
    const auto& [begin, end] = state.times[place];
    if (begin == TimePoint()) {  // its value is another's, in a plan
      profile.nodes.push_back(
          {node.id, node.tags.empty() ? "" : node.tags.front(), {}, node.level});
      continue;
    }
    const auto duration = std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin);
    profile.nodes.push_back(
        {node.id, node.tags.empty() ? "" : node.tags.front(), duration, node.level});
    const auto [span, is_new] = spans.try_emplace(node.level, begin, end);
    span->second.first = std::min(span->second.first, begin);
    span->second.second = std::max(span->second.second, end);
    LevelTiming& level = levels[node.level];
    level.index = node.level;
    level.sum_of_nodes += duration;
    ++level.nodes;
  }
  for (auto& [index, level] : levels) {
    level.wall_clock = std::chrono::duration_cast<std::chrono::nanoseconds>(spans[index].second -
                                                                            spans[index].first);
    profile.levels.push_back(level);
  }
  return profile;
}

const Profile* read_profile(const Graph::Impl& graph, GraphState::Data& state) {
  if (!state.profile && state.device_times.are_taken()) {
    state.device_times.read(state.times);
    state.profile = profile_of(graph, state);
  }
  return state.profile ? &*state.profile : nullptr;
}

void keep_profile(const Graph::Impl& graph, GraphState::Data& state) {
  if (state.times.empty())
    return;
  // That of a device is read when it is asked for: until then nothing waits.
  state.profile.reset();
  if (!state.device_times.are_taken())
    state.profile = profile_of(graph, state);
  if (state.on_profile) {
    if (const Profile* const profile = read_profile(graph, state))
      state.on_profile(*profile);
  }
}

void run_graph(const Graph::Impl& graph, const Inputs& inputs, GraphState::Data& state,
               const ForwardScope& scope, std::vector<at::Tensor>& outputs) {
  // Nothing of a forward that failed may reach the next one.
  struct Cleared {
    ~Cleared() {
      for (at::Tensor& value : values)
        value.reset();
    }
    std::vector<at::Tensor>& values;
  } const cleared{state.values};

  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    state.values[graph.inputs[i]] = inputs[i];
  begin_times(state, inputs[0].device());
  begin_states(graph, inputs[0], state, scope);
  for (std::size_t i = 0; i < graph.states.size(); ++i)
    state.values[graph.states[i].read] = state.states[i];
  tell_beginning(graph, inputs[0], state, scope);

  const std::uint64_t seed = graph.groups_of_branches.empty() ? 0 : draw_from_task();
  for (std::size_t index = 0; index < graph.places.size(); ++index) {
    const Place& place = graph.places[index];
    if (place.group) {
      run_group(graph, index, seed, state, scope);
    } else if (place.node != nullptr) {
      run_alone(graph, index, state, scope);
    }
    if (place.tag_slot && state.keeps_tags)
      state.tags[*place.tag_slot] = state.values[index];
    for (const std::size_t done : place.done)
      state.values[done].reset();
  }

  for (std::size_t i = 0; i < graph.states.size(); ++i)
    state.states[i] = state.values[graph.states[i].written];
  keep_profile(graph, state);
  outputs.clear();
  for (const std::size_t output : graph.outputs)
    outputs.push_back(state.values[output]);
}

}  // namespace treadle::graph
