#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <boost/range/iterator_range.hpp>

#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/graph/ready_parts.h>

#include "flow/wire.h"

// From the steps of a flow to nodes and edges. One function per verb, looked up in kVerbs; each
// works on the open streams and leaves the streams that the next verb continues. A mistake is noted
// with its step and wiring goes on as well as it can, so that all mistakes are reported at once.
//
// Ids are part of the saved format (they name parameters): they count nodes per type in the order
// of the flow and skip names that people gave.
//
// Two orders in the description decide behaviour, and so are kept by all verbs:
// - Vertices are added in the order of the flow. execution_order() keeps it among independent
//   nodes, and with it the order of parameters, gradients and saved files.
// - Edges into a vertex are added in the order of the callee's inputs: the stream, or all streams
//   of a merge, then the references. assemble.cpp reads the inputs from them.
//
// A state is two vertices: a "state_read" node where a tag is used before its step, and the node
// that gets the tag later. The edge between them (NodeInput::Kind::kState) leads from one forward
// to the next and orders nothing.
//
// Steps are referred to by pointer (WantedNode::step), so the flow must outlive the description.

namespace treadle::graph {
namespace {

constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

bool is_name(const std::string& text) {
  return !text.empty() && text.find_first_not_of(kNameLetters) == std::string::npos;
}

/// "text", "text.lengths"
bool is_port_name(const std::string& text) {
  const std::size_t dot = text.find('.');
  return is_name(text.substr(0, dot)) &&
         (dot == std::string::npos || is_port_name(text.substr(dot + 1)));
}

class Wiring {
 public:
  explicit Wiring(const FlowBuilder& flow) : flow_(flow) {}

  Wired wire() {
    // Tags and names of all steps first, since a step may use a tag that comes later, and generated
    // ids must avoid names that come later.
    declare_tags();
    const Vertex first = add_input(std::string(kDefaultInput));
    streams_ = {first};
    current_ = first;
    for (const FlowStep& step : flow_.steps()) {
      step_ = &step;
      targets_.clear();
      if (!step.enabled) {
        leave_out();
        put_tags();
        continue;
      }
      kVerbs.at(step.verb)(*this);
      // References before tags: a step that uses the tag it puts gets the value of the forward
      // before. That is how a recurrent cell is written.
      give_references();
      put_tags();
      put_output_tags();
    }
    step_ = nullptr;
    close_states();
    find_outputs();
    return std::move(wired_);
  }

 private:
  using Work = void (*)(Wiring&);
  static const std::map<Verb, Work> kVerbs;

  // At the present step; at the flow where there is none.
  void complain(std::string message) {
    wired_.problems.push_back(problem_of(flow_, step_, std::move(message)));
  }

  // The number that an id gets counts the nodes of its type; what people name is theirs.
  std::string new_id(const std::string& type) {
    std::string id;
    do {
      id = type + "_" + std::to_string(counters_[type]++);
    } while (ids_.count(id) > 0 || wanted_names_.count(id) > 0 || name_within(id));
    // nodes_ are the ids that name parameters; inputs have none and are only in ids_.
    ids_.insert(id);
    nodes_.insert(id);
    return id;
  }

  std::string named_id(const std::string& name, const std::string& type) {
    if (name.empty())
      return new_id(type);
    if (!is_port_name(name)) {
      complain("the name " + quote_text(name) +
               " must be of letters, digits, _, - and, between them, dots");
      return new_id(type);
    }
    // After a mistake in a name a generated id stands in, so that wiring goes on.
    if (!ids_.insert(name).second) {
      complain("two nodes are named " + quote_text(name));
      return new_id(type);
    }
    if (const auto other = clashing_name(name)) {
      complain("a node is named " + quote_text(name) + " and another " + quote_text(*other) +
               "; what stands before a dot is a group of nodes, not a node");
      return new_id(type);
    }
    nodes_.insert(name);
    return name;
  }

  /// A node "encoder.0", where `name` is "encoder".
  std::optional<std::string> name_within(const std::string& name) const {
    const auto next = nodes_.lower_bound(name + ".");
    return next != nodes_.end() && next->starts_with(name + ".") ? std::optional(*next)
                                                                 : std::nullopt;
  }

  /// A node cannot be a group as well: parameters would have names of both.
  std::optional<std::string> clashing_name(const std::string& name) const {
    for (std::size_t dot = name.find('.'); dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      if (nodes_.count(name.substr(0, dot)) > 0)
        return name.substr(0, dot);
    }
    return name_within(name);
  }

  Vertex add(WantedNode node) {
    node.step = step_;
    // Not in one call: GCC 12 with sanitizers warns of Boost's code for it.
    const Vertex vertex = boost::add_vertex(wired_.description);
    wired_.description[vertex] = std::move(node);
    return vertex;
  }

  Vertex add_part(const Part& part, const std::string& name) {
    const bool is_graph = part.flow() || part.graph() || part.build_flow();
    const NodeKind kind = is_graph ? NodeKind::kGraph : NodeKind::kLayer;
    return add(
        {.id = named_id(name, part.type()), .type = part.type(), .kind = kind, .parts = {part}});
  }

  Vertex add_input(const std::string& name) {
    ids_.insert(name);
    const Vertex vertex = add({.id = name, .type = "input", .kind = NodeKind::kInput});
    wired_.inputs.push_back(vertex);
    return vertex;
  }

  void connect(Vertex from, Vertex to, std::string port,
               NodeInput::Kind kind = NodeInput::Kind::kStream) {
    boost::add_edge(from, to, WantedEdge{std::move(port), kind}, wired_.description);
  }

  void connect_stream(Vertex from, Vertex to) { connect(from, to, std::string(kDefaultInput)); }

  /// The one open stream; complains when there are several, and takes the first.
  Vertex stream() {
    if (streams_.size() > 1) {
      complain("needs one stream, but " + std::to_string(streams_.size()) +
               " are open; merge them first");
    }
    return streams_.front();
  }

  // One open stream. current_ is what a tag of this step names.
  void go_on_from(Vertex vertex) {
    streams_ = {vertex};
    current_ = vertex;
  }

  void expect_parts(std::size_t fixed, const std::string& noun) {
    const std::size_t count = step_->parts.size() - fixed;
    if (count < 2)
      complain("needs at least two " + noun + ", got " + std::to_string(count));
  }

  std::string name_of_part(std::size_t index) const {
    return step_->name.empty() ? "" : step_->name + "_" + std::to_string(index);
  }

  /// The node of a step that is not enabled is an identity with the id that the step's would have.
  void leave_out() {
    const Verb verb = step_->verb;
    if (verb == Verb::kStart || verb == Verb::kSplit || verb == Verb::kMerge ||
        verb == Verb::kTagGroup || verb == Verb::kInput || verb == Verb::kAt) {
      complain("cannot be disabled: only a step with one stream before and after it can");
      kVerbs.at(verb)(*this);
      return;
    }
    if (!step_->output_tags.empty()) {
      complain("is disabled, so it has no output " + quote_text(step_->output_tags.front().first));
    }
    for (const std::string& tag : step_->references) {
      if (tag_uses_.count(tag) == 0)
        complain("nothing is tagged " + quote_text(tag) + did_you_mean(tag, known_tags()));
    }
    static const std::map<Verb, std::string> composites{
        {Verb::kMixtureOfExperts, weighted_sum().type()},
        {Verb::kSwitch, "switch"},
        {Verb::kLoop, "loop"},
        {Verb::kMap, "map"}};
    const auto composite = composites.find(verb);
    const std::string type =
        composite == composites.end() ? step_->parts[0].type() : composite->second;
    const Vertex from = stream();
    const Part part = identity();
    const Vertex node = add({.id = named_id(step_->name, type),
                             .type = part.type(),
                             .kind = NodeKind::kLayer,
                             .parts = {part}});
    connect_stream(from, node);
    go_on_from(node);
  }

  void start() {
    if (!step_->references.empty()) {
      complain("using " + quote_text(step_->references.front()) +
               " stands before any step that could take it");
    }
  }

  void through() {
    const Vertex from = stream();
    const Vertex node = add_part(step_->parts[0], step_->name);
    connect_stream(from, node);
    targets_ = {node};
    go_on_from(node);
  }

  void residual() {
    const Vertex from = stream();
    const Vertex node = add_part(step_->parts[0], step_->name);
    connect_stream(from, node);
    targets_ = {node};
    // The step's name, references and output tags are those of the part; its tag is that of the
    // sum, which becomes the stream.
    const Vertex sum = add_part(graph::add(step_->broadcast), "");
    connect(from, sum, "input_0");
    connect(node, sum, "input_1");
    go_on_from(sum);
  }

  void split() {
    expect_parts(0, "branches");
    const Vertex from = stream();
    std::vector<Vertex> branches;
    for (std::size_t i = 0; i < step_->parts.size(); ++i) {
      const Vertex node = add_part(step_->parts[i], name_of_part(i));
      connect_stream(from, node);
      branches.push_back(node);
    }
    // Every branch gets the step's references.
    targets_ = branches;
    if (branches.empty())
      return;
    // current_ stays: a tag needs one stream, and put_tags() refuses it here.
    streams_ = branches;
  }

  void merge() {
    if (streams_.size() < 2)
      complain("needs at least two open streams; a split opens them");
    const Vertex node = add_part(step_->parts[0], step_->name);
    for (std::size_t i = 0; i < streams_.size(); ++i)
      connect(streams_[i], node, "input_" + std::to_string(i));
    targets_ = {node};
    go_on_from(node);
  }

  void tag_group() {
    const std::string& group = step_->words[0];
    if (streams_.size() < 2) {
      complain("tag group " + quote_text(group) + " needs at least two open streams");
      return;
    }
    for (const auto& [name, tags] : wired_.groups) {
      if (name == group) {
        complain("there are two tag groups " + quote_text(group));
        return;
      }
    }
    if (tag_uses_.count(group) > 0) {
      complain("tag group " + quote_text(group) + " is called as a tag is");
      return;
    }
    std::vector<std::string> tags;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      tags.push_back(member_of(group, i));
      put_tag(tags.back(), streams_[i]);
    }
    wired_.groups.emplace_back(group, std::move(tags));
  }

  void input() {
    for (const std::string& name : step_->words) {
      if (!is_port_name(name)) {
        complain("the input " + quote_text(name) +
                 " must be named with letters, digits, _, - and, between them, dots");
        continue;
      }
      if (ids_.count(name) > 0 || tags_.count(name) > 0) {
        complain("an input is called " + quote_text(name) + ", and so is something before it");
        continue;
      }
      wired_.input_names.push_back(name);
      put_tag(name, add_input(name));
    }
  }

  void at() {
    std::vector<Vertex> found;
    // Tags that are missing are left out, and the flow continues with the others: one mistake, one
    // message.
    for (const std::string& tag : step_->words) {
      if (const auto vertex = find_tag(tag))
        found.push_back(*vertex);
    }
    if (step_->words.empty())
      complain("names no tag to go on from");
    if (found.empty())
      return;
    streams_ = found;
    current_ = found.front();
  }

  void mixture_of_experts() {
    expect_parts(1, "experts");
    if (step_->mixture.sparse) {
      add_composite(NodeKind::kMixture, "mixture_of_experts", stream());
      return;
    }
    const Vertex from = stream();
    const Vertex router = add_part(step_->parts[0], "");
    connect_stream(from, router);
    // The router alone gets the step's references; the name is that of the sum, and experts are
    // numbered.
    targets_ = {router};
    // Experts are nodes of this graph, not callees of one node: all of them run, and they are
    // branches that may run concurrently.
    std::vector<Vertex> experts;
    for (std::size_t i = 1; i < step_->parts.size(); ++i) {
      experts.push_back(add_part(step_->parts[i], name_of_part(i - 1)));
      connect_stream(from, experts.back());
    }
    const Vertex sum = add_part(weighted_sum(step_->mixture.pad), step_->name);
    connect(router, sum, "input_0");
    for (std::size_t i = 0; i < experts.size(); ++i)
      connect(experts[i], sum, "input_" + std::to_string(i + 1));
    go_on_from(sum);
  }

  // One vertex for all parts of the step: they run under the node's control and are no nodes of
  // this graph.
  void add_composite(NodeKind kind, const std::string& type, Vertex from) {
    const Vertex node =
        add({.id = named_id(step_->name, type), .type = type, .kind = kind, .parts = step_->parts});
    connect_stream(from, node);
    targets_ = {node};
    go_on_from(node);
  }

  void switch_() {
    expect_parts(1, "branches");
    if (step_->parts.size() < 2)
      return;
    add_composite(NodeKind::kSwitch, "switch", stream());
  }

  void loop() {
    if (step_->loop == LoopKind::kUnfinished) {
      complain("requires one of times(), while_(), until() and adaptively()");
    } else if (step_->rounds < 1) {
      complain("needs at least one round, got " + std::to_string(step_->rounds));
    }
    if (const double epsilon = step_->pondering.epsilon; !(epsilon > 0 && epsilon < 1))
      complain("halts within an epsilon between 0 and 1, got " + describe_value(epsilon));
    if (const double cost = step_->pondering.cost; !(cost >= 0 && std::isfinite(cost)))
      complain("needs a cost of pondering that is not negative, got " + describe_value(cost));
    add_composite(NodeKind::kLoop, "loop", stream());
  }

  void map() {
    // A map over a tag does not need one open stream: open streams are dropped, and the map's
    // result becomes the stream.
    Vertex from = current_;
    if (step_->map == MapKind::kUnfinished) {
      complain("requires one of each(), over() and slices()");
      from = stream();
    } else if (step_->map == MapKind::kOver) {
      if (const auto vertex = find_tag(step_->over))
        from = *vertex;
    } else {
      from = stream();
    }
    if (step_->map == MapKind::kSlices && step_->slices < 1)
      complain("needs at least one slice, got " + std::to_string(step_->slices));
    add_composite(NodeKind::kMap, "map", from);
  }

  // --- tags and references

  /// Every tag that some step puts, so that a reference to a later one is told from a typing error:
  /// also the inputs and the members of groups.
  void declare_tags() {
    std::size_t open = 1;
    for (const FlowStep& step : flow_.steps()) {
      for (const std::string& tag : step.tags)
        tag_uses_.insert(tag);
      for (const auto& [output, tag] : step.output_tags)
        tag_uses_.insert(tag);
      if (step.verb == Verb::kInput)
        tag_uses_.insert(step.words.begin(), step.words.end());
      if (step.verb == Verb::kTagGroup) {
        for (std::size_t i = 0; i < open; ++i)
          tag_uses_.insert(member_of(step.words[0], i));
      }
      if (!step.name.empty())
        wanted_names_.insert(step.name);
      open = open_after(step, open);
    }
  }

  static std::string member_of(const std::string& group, std::size_t index) {
    return group + "_" + std::to_string(index);
  }

  /// How many streams are open after a step without mistakes.
  static std::size_t open_after(const FlowStep& step, std::size_t before) {
    switch (step.verb) {
      case Verb::kSplit:
        return step.parts.size();
      case Verb::kAt:
        return step.words.size();
      case Verb::kStart:
      case Verb::kInput:
      case Verb::kTagGroup:
        return before;
      default:
        return 1;
    }
  }

  std::vector<std::string> known_tags() const {
    std::vector<std::string> names;
    for (const auto& [tag, vertex] : tags_)
      names.push_back(tag);
    return names;
  }

  std::optional<Vertex> find_tag(const std::string& tag) {
    const auto found = tags_.find(tag);
    if (found != tags_.end())
      return found->second;
    complain(tag_uses_.count(tag) > 0
                 ? "the tag " + quote_text(tag) +
                       " comes only later; \"using\" can reach it, as a state"
                 : "nothing is tagged " + quote_text(tag) + did_you_mean(tag, known_tags()));
    return std::nullopt;
  }

  void put_tag(const std::string& tag, Vertex vertex) {
    const bool is_input = wired_.description[vertex].kind == NodeKind::kInput;
    if (!(is_input ? is_port_name(tag) : is_name(tag))) {
      complain("the tag " + quote_text(tag) + " must be of letters, digits, _ and -");
      return;
    }
    if (!tags_.emplace(tag, vertex).second) {
      complain("the tag " + quote_text(tag) + " is used twice");
      return;
    }
    wired_.description[vertex].tags.push_back(tag);
    // An earlier step has used this tag: it is a state, and this vertex computes its next value.
    if (const auto state = states_.find(tag); state != states_.end()) {
      connect(vertex, state->second.vertex, std::string(kDefaultInput), NodeInput::Kind::kState);
      state->second.is_closed = true;
    }
  }

  void put_tags() {
    if (step_->tags.empty())
      return;
    if (streams_.size() > 1) {
      complain("the tag " + quote_text(step_->tags.front()) + " needs one stream, but " +
               std::to_string(streams_.size()) + " are open; a tag group names them all");
      return;
    }
    for (const std::string& tag : step_->tags)
      put_tag(tag, current_);
  }

  /// The node whose outputs the step can tag; nothing for a verb that calls several parts.
  std::optional<Vertex> node_of_outputs() const {
    // Loops, maps and switches run their parts several times or not at all, so they have one
    // output.
    const Verb verb = step_->verb;
    const bool has_one_part =
        verb == Verb::kThrough || verb == Verb::kMerge || verb == Verb::kResidual;
    return has_one_part && targets_.size() == 1 ? std::optional(targets_.front()) : std::nullopt;
  }

  void put_output_tags() {
    if (step_->output_tags.empty())
      return;
    const auto owner = node_of_outputs();
    if (!owner) {
      complain("has one output, so nothing is called " +
               quote_text(step_->output_tags.front().first) + "; \"tag\" names that output alone");
      return;
    }
    std::map<std::string, Vertex> outputs;
    for (const auto& [output, tag] : step_->output_tags) {
      auto known = outputs.find(output);
      if (known == outputs.end()) {
        // A vertex without work of its own: its value is written by the owner. Its id is not in
        // ids_, as it names no parameters.
        const std::string id = wired_.description[*owner].id + "." + output;
        const Vertex vertex = add({.id = id, .type = "output", .kind = NodeKind::kOutput});
        connect(*owner, vertex, output);
        known = outputs.emplace(output, vertex).first;
      }
      put_tag(tag, known->second);
    }
  }

  void give_references() {
    if (step_->references.empty() || step_->verb == Verb::kStart)
      return;
    if (targets_.empty()) {
      complain("takes no references, but is given " + quote_text(step_->references.front()));
      return;
    }
    for (const std::string& tag : step_->references) {
      const auto known = tags_.find(tag);
      // A tag that is unknown so far may come later. Whether it does is checked in close_states().
      const Vertex from = known != tags_.end() ? known->second : state_of(tag);
      for (const Vertex target : targets_)
        connect(from, target, "ref_" + tag, NodeInput::Kind::kReference);
    }
  }

  Vertex state_of(const std::string& tag) {
    const auto found = states_.find(tag);
    if (found != states_.end())
      return found->second.vertex;
    const Vertex vertex = add({.id = new_id("state_read"),
                               .type = "state_read",
                               .kind = NodeKind::kState,
                               .state_tag = tag});
    states_.emplace(tag, State{vertex, step_, false});
    return vertex;
  }

  void close_states() {
    for (const auto& [tag, state] : states_) {
      if (state.is_closed)
        continue;
      // The mistake stands at the step that used the tag first.
      step_ = state.first_used;
      complain("uses " + quote_text(tag) + ", but nothing is tagged so" +
               did_you_mean(tag, known_tags()));
      step_ = nullptr;
    }
    for (const InitialState& initial : flow_.initial_states()) {
      if (states_.count(initial.tag) == 0) {
        std::vector<std::string> names;
        for (const auto& [tag, state] : states_)
          names.push_back(tag);
        complain("an initial value is given for " + quote_text(initial.tag) +
                 ", which is no state: no step uses it before it is there" +
                 did_you_mean(initial.tag, names));
      }
    }
  }

  void find_outputs() {
    for (const std::string& tag : flow_.output_tags()) {
      if (const auto found = tags_.find(tag); found != tags_.end()) {
        wired_.outputs.push_back(found->second);
      } else {
        complain("the outputs name " + quote_text(tag) + ", but nothing is tagged so" +
                 did_you_mean(tag, known_tags()));
      }
    }
    if (!flow_.output_tags().empty())
      return;
    if (streams_.size() > 1) {
      complain(std::to_string(streams_.size()) +
               " streams are open at the end of the flow; merge them");
    }
    // Also after a mistake: assembly expects at least one output.
    wired_.outputs.push_back(streams_.front());
  }

  struct State {
    Vertex vertex;
    const FlowStep* first_used;
    bool is_closed;
  };

  const FlowBuilder& flow_;
  const FlowStep* step_ = nullptr;
  Wired wired_;
  std::vector<Vertex> streams_;
  Vertex current_ = 0;           // what the last step gave
  std::vector<Vertex> targets_;  // the nodes that this step's references go to
  std::map<std::string, Vertex> tags_;
  std::map<std::string, State> states_;
  std::set<std::string> tag_uses_;
  std::set<std::string> ids_;
  std::set<std::string> nodes_;  // those of them that are no inputs
  std::set<std::string> wanted_names_;
  std::map<std::string, std::size_t> counters_;
};

const std::map<Verb, Wiring::Work> Wiring::kVerbs{
    {Verb::kStart, [](Wiring& wiring) { wiring.start(); }},
    {Verb::kThrough, [](Wiring& wiring) { wiring.through(); }},
    {Verb::kResidual, [](Wiring& wiring) { wiring.residual(); }},
    {Verb::kSplit, [](Wiring& wiring) { wiring.split(); }},
    {Verb::kMerge, [](Wiring& wiring) { wiring.merge(); }},
    {Verb::kTagGroup, [](Wiring& wiring) { wiring.tag_group(); }},
    {Verb::kInput, [](Wiring& wiring) { wiring.input(); }},
    {Verb::kAt, [](Wiring& wiring) { wiring.at(); }},
    {Verb::kMixtureOfExperts, [](Wiring& wiring) { wiring.mixture_of_experts(); }},
    {Verb::kSwitch, [](Wiring& wiring) { wiring.switch_(); }},
    {Verb::kLoop, [](Wiring& wiring) { wiring.loop(); }},
    {Verb::kMap, [](Wiring& wiring) { wiring.map(); }},
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
