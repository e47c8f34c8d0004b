#include "flow/wiring/wire.h"

#include <map>
#include <optional>
#include <utility>

#include <treadle/base/json_words.h>

#include "flow/wiring/netlist.h"
#include "flow/wiring/tags.h"
#include "flow/wiring/verbs.h"

// From the steps of a flow to nodes and edges: each verb works on the open streams (verbs), then
// come the step's references and tags. A mistake is noted with its step and wiring goes on as well
// as it can, so that all mistakes are reported at once.

namespace treadle::graph {
namespace {

/// The node whose further outputs a step can tag. Loops, maps and switches run their parts several
/// times or not at all, so they have one output; a verb that calls several parts has no such node.
std::optional<Vertex> node_of_outputs(Verb verb, const std::vector<Vertex>& targets) {
  const bool has_one_part =
      verb == Verb::kThrough || verb == Verb::kMerge || verb == Verb::kResidual;
  return has_one_part && targets.size() == 1 ? std::optional(targets.front()) : std::nullopt;
}

class Wiring {
 public:
  explicit Wiring(const FlowBuilder& flow) : net_(flow), tags_(net_) {}

  Wired wire() {
    const Vertex first = net_.add_input(std::string(kDefaultInput));
    streams_ = {{first}, first};
    for (const FlowStep& step : net_.flow.steps()) {
      net_.step = &step;
      if (!step.enabled) {
        pass_by(net_, tags_, streams_);
        put_tags(step);
        continue;
      }
      const std::vector<Vertex> targets = wire_verb(net_, tags_, streams_);
      // References before tags: a step that uses the tag it puts gets the value of the forward
      // before. That is how a recurrent cell is written.
      give_references(step, targets);
      put_tags(step);
      put_output_tags(step, node_of_outputs(step.verb, targets));
    }
    net_.step = nullptr;
    tags_.close_states();
    find_outputs();
    return std::move(net_.wired);
  }

 private:
  void give_references(const FlowStep& step, const std::vector<Vertex>& targets) {
    if (step.references.empty() || step.verb == Verb::kStart)
      return;
    if (targets.empty()) {
      net_.complain("takes no references, but is given " + quote_text(step.references.front()));
      return;
    }
    for (const std::string& tag : step.references) {
      const Vertex from = tags_.value_or_state(tag);
      for (const Vertex target : targets)
        net_.connect(from, target, "ref_" + tag, NodeInput::Kind::kReference);
    }
  }

  void put_tags(const FlowStep& step) {
    if (step.tags.empty())
      return;
    if (streams_.open.size() > 1) {
      net_.complain("the tag " + quote_text(step.tags.front()) + " needs one stream, but " +
                    std::to_string(streams_.open.size()) + " are open; a tag group names them all");
      return;
    }
    for (const std::string& tag : step.tags)
      tags_.put(tag, streams_.current);
  }

  void put_output_tags(const FlowStep& step, std::optional<Vertex> owner) {
    if (step.output_tags.empty())
      return;
    if (!owner) {
      net_.complain("has one output, so nothing is called " +
                    quote_text(step.output_tags.front().first) +
                    "; \"tag\" names that output alone");
      return;
    }
    std::map<std::string, Vertex> outputs;
    for (const auto& [output, tag] : step.output_tags) {
      auto known = outputs.find(output);
      if (known == outputs.end()) {
        // A vertex without work of its own: its value is written by the owner. Its id is not in
        // net_.ids, as it names no parameters.
        const std::string id = net_.wired.description[*owner].id + "." + output;
        const Vertex vertex = net_.add({.id = id, .type = "output", .kind = NodeKind::kOutput});
        net_.connect(*owner, vertex, output);
        known = outputs.emplace(output, vertex).first;
      }
      tags_.put(tag, known->second);
    }
  }

  void find_outputs() {
    net_.wired.outputs = tags_.outputs();
    if (!net_.flow.output_tags().empty())
      return;
    if (streams_.open.size() > 1) {
      net_.complain(std::to_string(streams_.open.size()) +
                    " streams are open at the end of the flow; merge them");
    }
    // Also after a mistake: assembly expects at least one output.
    net_.wired.outputs.push_back(streams_.open.front());
  }

  Netlist net_;
  Tags tags_;
  Streams streams_;
};

}  // namespace

Wired wire(const FlowBuilder& flow) {
  return Wiring(flow).wire();
}

Problem problem_of(const FlowBuilder& flow, const FlowStep* step, std::string message) {
  Problem problem;
  const Config& place = step == nullptr ? flow.place() : step->place;
  problem.pointer = place.pointer();
  if (place.places())
    problem.place = place.places()->place_of(problem.pointer);
  // In a document the place is all it takes.
  if (step != nullptr && problem.pointer.empty()) {
    problem.message = std::string(spoken(step->verb)) + " in step " +
                      std::to_string(step - flow.steps().data() + 1) + ": ";
  }
  problem.message += message;
  return problem;
}

}  // namespace treadle::graph
