#pragma once

#include "run/graph_data.h"

namespace treadle::graph {

/// Runs every place in order. Throws a Failure, or what passes rethrow_failed(). Values stay in
/// `state` only where they are tagged.
void run_graph(const Graph::Impl& graph, const Inputs& inputs, GraphState::Data& state,
               const ForwardScope& scope, std::vector<at::Tensor>& outputs);

/// The value of one place.
at::Tensor run_place(const Graph::Impl& graph, std::size_t index, const Inputs& given,
                     GraphState::Data& state, const ForwardScope& scope);

/// What a forward begins with: initial values of states that are not there yet, and as many rows as
/// the input has; detached, where gradients end at every step of time.
void begin_states(const Graph::Impl& graph, const at::Tensor& first_input, GraphState::Data& state,
                  const ForwardScope& scope);
/// Tells the layers that want to know.
void tell_beginning(const Graph::Impl& graph, const at::Tensor& first_input,
                    GraphState::Data& state, const ForwardScope& scope);
/// Of what state.times says.
Profile profile_of(const Graph::Impl& graph, const GraphState::Data& state);
/// Of the last forward; null where none was timed. Waits for the device whose clock is used.
const Profile* read_profile(const Graph::Impl& graph, GraphState::Data& state);

// Where a state is profiled: before a forward whose inputs are on `device`, around each place,
// which may have several parts, and behind it.
void begin_times(GraphState::Data& state, c10::Device device);
void begin_time(GraphState::Data& state, std::size_t place);
void end_time(GraphState::Data& state, std::size_t place);
void keep_profile(const Graph::Impl& graph, GraphState::Data& state);

}  // namespace treadle::graph
