#include "flow/assembly/ports.h"

#include <algorithm>

#include <boost/range/iterator_range.hpp>

#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::graph {

bool order_references(Draft& draft, std::size_t place, const Callee& callee) {
  // A builder has got them in the order of "using", and has no names for them.
  if (draft.wanted(place).parts.front().build_flow() ||
      (callee.graph() == nullptr && callee.ability<NamesReferences>() == nullptr))
    return true;
  const std::vector<std::string> names = callee.reference_names();
  NodeInfo& info = draft.graph->nodes[place];
  const auto is_reference = [](const NodeInput& input) {
    return input.kind == NodeInput::Kind::kReference;
  };
  // References stand behind all streams (wire.cpp), so everything from the first one on is
  // reordered.
  const auto first = std::find_if(info.inputs.begin(), info.inputs.end(), is_reference);
  std::vector<NodeInput> given(first, info.inputs.end());
  info.inputs.erase(first, info.inputs.end());
  for (const std::string& name : names) {
    const auto found = std::find_if(given.begin(), given.end(), [&](const NodeInput& input) {
      return input.port == "ref_" + name;
    });
    if (found == given.end()) {
      draft.complain_at(place, quote_text(info.id) + " requires " + quote_text(name) +
                                   ", which \"using\" does not give it");
      return false;
    }
    info.inputs.push_back(*found);
    given.erase(found);
  }
  if (given.empty())
    return true;
  const std::string extra = given.front().port.substr(4);
  draft.complain_at(place, quote_text(info.id) + " is given " + quote_text(extra) +
                               ", but expects " +
                               (names.empty() ? "no references" : "only " + joined(names, ", ")) +
                               did_you_mean(extra, names));
  return false;
}

std::optional<std::vector<std::string>> further_outputs(Draft& draft, std::size_t place,
                                                        const Callee& callee) {
  std::vector<std::string> further;
  const std::vector<std::string> names = callee.output_names();
  const Description& description = draft.wired.description;
  for (const auto& edge :
       boost::make_iterator_range(boost::out_edges(draft.order[place], description))) {
    const Vertex target = boost::target(edge, description);
    const WantedNode& output = description[target];
    if (output.kind != NodeKind::kOutput)
      continue;
    const std::string& name = description[edge].port;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const WantedNode& node = draft.wanted(place);
      draft.complain(output.step, quote_text(node.id) + " (" + node.type + ") has no output " +
                                      quote_text(name) +
                                      (names.empty() ? "; its one output is \"output\""
                                                     : ", but output, " + joined(names, ", ")) +
                                      did_you_mean(name, names));
      return std::nullopt;
    }
    further.push_back(name);
    draft.graph->places[place].further.push_back(draft.place_of[target]);
  }
  return further;
}

}  // namespace treadle::graph
