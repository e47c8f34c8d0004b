#include "flow/assembly/shapes.h"

#include <algorithm>

#include <treadle/base/json_words.h>
#include <treadle/core/model/abilities/takes_absent.h>

namespace treadle::graph {
namespace {

bool takes_absence_of(Draft& draft, std::size_t place, const std::vector<TensorSpec>& specs) {
  // A graph within has been checked with absent inputs itself.
  const Callee& callee = draft.graph->places[place].node->main();
  if (callee.graph() || callee.ability<TakesAbsent>() != nullptr)
    return true;
  const auto absent =
      std::find_if(specs.begin(), specs.end(), [](const TensorSpec& s) { return s.is_absent(); });
  if (absent == specs.end())
    return true;
  const NodeInfo& info = draft.graph->nodes[place];
  const NodeInput& input = info.inputs[static_cast<std::size_t>(absent - specs.begin())];
  draft.complain_at(place, quote_text(info.id) + " uses the state " +
                               quote_text(draft.wanted(input.node).state_tag) +
                               ", which is absent in the first forward; give it an initial value, "
                               "or a layer that takes absence in front");
  return false;
}

/// Gives readers of states the sizes of the next forward.
void take_written_sizes(Draft& draft) {
  Graph::Impl& graph = *draft.graph;
  for (StateSlot& slot : graph.states) {
    const TensorSpec written = *graph.nodes[slot.written].result;
    if (slot.has_initial && written != *graph.nodes[slot.read].result) {
      draft.complain(nullptr, "the state " + quote_text(slot.tag) + " is " +
                                  graph.nodes[slot.read].result->text() + " at first, but " +
                                  quote_text(graph.nodes[slot.written].id) + " makes it " +
                                  written.text());
      continue;
    }
    // A state of rows follows the batch: begin_states() cuts it where a batch is smaller.
    slot.has_rows = !written.sizes.empty() && written.sizes.front() == TensorSpec::kVaries;
    graph.nodes[slot.read].result = written;
  }
}

/// Infers the results of a reader once more. Equal sizes end the search, as nothing behind this
/// place can differ then: so one pass over the direct readers is enough.
void expect_same_results(Draft& draft, std::size_t place) {
  const Graph::Impl& graph = *draft.graph;
  std::vector<std::size_t> outputs = graph.places[place].further;
  outputs.insert(outputs.begin(), place);
  std::vector<TensorSpec> first;
  for (const std::size_t output : outputs)
    first.push_back(*graph.nodes[output].result);
  infer_results(draft, place);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NodeInfo& output = graph.nodes[outputs[i]];
    if (*output.result == first[i])
      continue;
    draft.complain_at(place, quote_text(output.id) + " gives " + first[i].text() +
                                 " in the first forward and " + output.result->text() +
                                 " in the next, when its state is there");
  }
}

}  // namespace

void infer_results(Draft& draft, std::size_t place) {
  if (draft.spec == nullptr)
    return;
  const auto specs = draft.specs_of_inputs(place);
  if (!specs || !takes_absence_of(draft, place, *specs))
    return;
  Graph::Impl& graph = *draft.graph;
  draft.attempt(place, [&] {
    const std::vector<TensorSpec> results = graph.places[place].node->results(*specs);
    graph.nodes[place].result = results.front();
    for (std::size_t i = 1; i < results.size(); ++i)
      graph.nodes[graph.places[place].further[i - 1]].result = results[i];
  });
}

void check_states(Draft& draft) {
  if (draft.spec == nullptr)
    return;
  take_written_sizes(draft);
  for (std::size_t place = 0; place < draft.graph->places.size(); ++place) {
    const std::vector<NodeInput>& inputs = draft.graph->nodes[place].inputs;
    const bool reads_state = std::any_of(inputs.begin(), inputs.end(), [&](const NodeInput& input) {
      return draft.graph->nodes[input.node].kind == NodeKind::kState;
    });
    if (reads_state && draft.graph->places[place].node != nullptr)
      expect_same_results(draft, place);
  }
}

}  // namespace treadle::graph
