#include "flow/assembly/preparation.h"

#include <algorithm>
#include <map>

#include <treadle/core/components/module_state.h>

#include "run/graphs_within.h"

// Shared weights. Modules that several places use are the same object in several callees, so sums
// of their gradients meet outside any one place. Branches inside a graph that is repeated or shares
// weights must then add up as one by one (Graph::set_repeated(),
// BranchGroup::must_run_one_by_one()).

namespace treadle::graph {
namespace {

/// Outputs and states are never freed during a forward.
void plan_releases(Graph::Impl& graph) {
  std::vector<std::optional<std::size_t>> last_use(graph.places.size());
  for (std::size_t place = 0; place < graph.places.size(); ++place) {
    // A value without a user is freed at once.
    last_use[place] = place;
    for (const std::size_t input : graph.places[place].inputs)
      last_use[input] = place;
  }
  for (const std::size_t output : graph.outputs)
    last_use[output].reset();
  for (const StateSlot& slot : graph.states)
    last_use[slot.written].reset();
  for (std::size_t place = 0; place < graph.places.size(); ++place) {
    if (last_use[place])
      graph.places[*last_use[place]].done.push_back(place);
  }
}

/// Finds inputs whose value has several users. A place that reads one value twice is one user.
void find_shared(Graph::Impl& graph) {
  std::vector<std::size_t> users(graph.places.size());
  for (std::size_t place = 0; place < graph.places.size(); ++place) {
    if (graph.places[place].tag_slot)
      ++users[place];
    const std::vector<std::size_t>& inputs = graph.places[place].inputs;
    for (auto input = inputs.begin(); input != inputs.end(); ++input) {
      if (std::find(inputs.begin(), input, *input) == input)
        ++users[*input];
    }
  }
  for (const std::size_t output : graph.outputs)
    ++users[output];
  for (const StateSlot& slot : graph.states)
    ++users[slot.written];
  for (Place& place : graph.places) {
    for (const std::size_t input : place.inputs)
      place.is_shared.push_back(users[input] > 1);
  }
}

/// Marks nested graphs whose weights are used elsewhere as well, which they cannot see themselves:
/// gradients then meet outside.
void mark_sharers_of_parameters(const Graph::Impl& graph) {
  std::map<const void*, const Callee*> owners;
  for (const Place& place : graph.places) {
    if (place.node == nullptr)
      continue;
    for (const Callee& callee : place.node->callees()) {
      for (const at::Tensor& parameter : distinct_parameters(*callee.module())) {
        const auto [owner, is_new] = owners.emplace(parameter.unsafeGetTensorImpl(), &callee);
        if (is_new)
          continue;
        mark_repeated(*owner->second);
        mark_repeated(callee);
      }
    }
  }
}

void plan_branches(Graph::Impl& graph) {
  graph.groups_of_branches = find_branch_groups(graph);
  if (graph.groups_of_branches.empty())
    return;
  graph.parameters.resize(graph.places.size());
  for (std::size_t i = 0; i < graph.groups_of_branches.size(); ++i) {
    for (const std::size_t place : graph.groups_of_branches[i].places) {
      graph.places[place].group = i;
      graph.parameters[place] = graph.places[place].node->parameters();
    }
  }
}

}  // namespace

void prepare(Graph::Impl& graph) {
  plan_releases(graph);
  find_shared(graph);
  mark_sharers_of_parameters(graph);
  plan_branches(graph);
}

void mark_repeated(const Callee& callee) {
  for (Graph* within : graphs_within(*callee.module()))
    within->set_repeated();
}

}  // namespace treadle::graph
