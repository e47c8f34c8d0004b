#include "flow/wiring/verbs.h"

#include <cmath>
#include <utility>

#include <treadle/base/json_words.h>
#include <treadle/graph/ready_parts.h>

namespace treadle::graph {
namespace {

/// The wiring of one step: a function for each verb.
class VerbWiring {
 public:
  VerbWiring(Netlist& net, Tags& tags, Streams& streams)
      : net_(net), tags_(tags), streams_(streams), step_(*net.step) {}

  std::vector<Vertex> wire() {
    add_verb();
    return std::move(targets_);
  }

  void pass_by() {
    const Verb verb = step_.verb;
    if (verb == Verb::kStart || verb == Verb::kSplit || verb == Verb::kMerge ||
        verb == Verb::kTagGroup || verb == Verb::kInput || verb == Verb::kAt) {
      net_.complain("cannot be disabled: only a step with one stream before and after it can");
      add_verb();
      return;
    }
    if (!step_.output_tags.empty()) {
      net_.complain("is disabled, so it has no output " +
                    quote_text(step_.output_tags.front().first));
    }
    for (const std::string& tag : step_.references) {
      if (!tags_.is_declared(tag))
        net_.complain(tags_.unknown(tag));
    }
    const Vertex from = stream();
    const Part part = identity();
    const Vertex node = net_.add({.id = net_.id_of(step_.name, type_of_node()),
                                  .type = part.type(),
                                  .kind = NodeKind::kLayer,
                                  .parts = {part}});
    net_.connect_stream(from, node);
    go_on_from(node);
  }

 private:
  void add_verb() {
    switch (step_.verb) {
      case Verb::kStart:
        return start();
      case Verb::kThrough:
        return through();
      case Verb::kResidual:
        return residual();
      case Verb::kSplit:
        return split();
      case Verb::kMerge:
        return merge();
      case Verb::kTagGroup:
        return tag_group();
      case Verb::kInput:
        return input();
      case Verb::kAt:
        return at();
      case Verb::kMixtureOfExperts:
        return mixture_of_experts();
      case Verb::kSwitch:
        return switch_();
      case Verb::kLoop:
        return loop();
      case Verb::kMap:
        return map();
    }
  }

  /// After which the step's node is called.
  std::string type_of_node() const {
    switch (step_.verb) {
      case Verb::kMixtureOfExperts:
        return weighted_sum().type();
      case Verb::kSwitch:
        return "switch";
      case Verb::kLoop:
        return "loop";
      case Verb::kMap:
        return "map";
      default:
        return step_.parts[0].type();
    }
  }

  /// The one open stream; the first, with a problem added, where there are several.
  Vertex stream() {
    if (streams_.open.size() > 1) {
      net_.complain("needs one stream, but " + std::to_string(streams_.open.size()) +
                    " are open; merge them first");
    }
    return streams_.open.front();
  }

  void go_on_from(Vertex vertex) { streams_ = {{vertex}, vertex}; }

  /// One part between the stream and what follows.
  Vertex add_through() {
    const Vertex from = stream();
    const Vertex node = net_.add_part(step_.parts[0], step_.name);
    net_.connect_stream(from, node);
    targets_ = {node};
    return node;
  }

  /// The parts from `first` on, each after the stream `from`.
  std::vector<Vertex> add_branches(Vertex from, std::size_t first) {
    std::vector<Vertex> branches;
    for (std::size_t i = first; i < step_.parts.size(); ++i) {
      const std::string name =
          step_.name.empty() ? "" : step_.name + "_" + std::to_string(i - first);
      branches.push_back(net_.add_part(step_.parts[i], name));
      net_.connect_stream(from, branches.back());
    }
    return branches;
  }

  /// A merge of these values: "input_0", "input_1", …
  Vertex add_merge(const Part& part, const std::string& name, const std::vector<Vertex>& values) {
    const Vertex node = net_.add_part(part, name);
    for (std::size_t i = 0; i < values.size(); ++i)
      net_.connect(values[i], node, "input_" + std::to_string(i));
    return node;
  }

  /// One vertex for all parts of the step: they run under the node's control and are no nodes of
  /// this graph.
  void add_composite(NodeKind kind, const std::string& type, Vertex from) {
    const Vertex node = net_.add(
        {.id = net_.id_of(step_.name, type), .type = type, .kind = kind, .parts = step_.parts});
    net_.connect_stream(from, node);
    targets_ = {node};
    go_on_from(node);
  }

  void expect_parts(std::size_t fixed, const std::string& noun) {
    const std::size_t count = step_.parts.size() - fixed;
    if (count < 2)
      net_.complain("needs at least two " + noun + ", got " + std::to_string(count));
  }

  void start() {
    if (!step_.references.empty()) {
      net_.complain("using " + quote_text(step_.references.front()) +
                    " stands before any step that could take it");
    }
  }

  void through() { go_on_from(add_through()); }

  /// The step's name, references and output tags are those of the part; its tag is that of the sum,
  /// which becomes the stream.
  void residual() {
    const Vertex from = streams_.open.front();
    const Vertex node = add_through();
    go_on_from(add_merge(graph::add(step_.broadcast), "", {from, node}));
  }

  void split() {
    expect_parts(0, "branches");
    // Every branch gets the step's references.
    targets_ = add_branches(stream(), 0);
    // The current value stays: a tag needs one stream, and is refused here.
    if (!targets_.empty())
      streams_.open = targets_;
  }

  void merge() {
    if (streams_.open.size() < 2)
      net_.complain("needs at least two open streams; a split opens them");
    const Vertex node = add_merge(step_.parts[0], step_.name, streams_.open);
    targets_ = {node};
    go_on_from(node);
  }

  void tag_group() {
    const std::string& group = step_.words[0];
    if (streams_.open.size() < 2) {
      net_.complain("tag group " + quote_text(group) + " needs at least two open streams");
      return;
    }
    for (const auto& [name, tags] : net_.wired.groups) {
      if (name == group) {
        net_.complain("there are two tag groups " + quote_text(group));
        return;
      }
    }
    if (tags_.is_declared(group)) {
      net_.complain("tag group " + quote_text(group) + " is called as a tag is");
      return;
    }
    std::vector<std::string> members;
    for (std::size_t i = 0; i < streams_.open.size(); ++i) {
      members.push_back(Tags::member_of(group, i));
      tags_.put(members.back(), streams_.open[i]);
    }
    net_.wired.groups.emplace_back(group, std::move(members));
  }

  void input() {
    for (const std::string& name : step_.words) {
      if (!is_port_name(name)) {
        net_.complain("the input " + quote_text(name) +
                      " must be named with letters, digits, _, - and, between them, dots");
        continue;
      }
      if (net_.ids.contains(name) || tags_.is_put(name)) {
        net_.complain("an input is called " + quote_text(name) + ", and so is something before it");
        continue;
      }
      net_.wired.input_names.push_back(name);
      tags_.put(name, net_.add_input(name));
    }
  }

  void at() {
    std::vector<Vertex> found;
    // Tags that are missing are left out, and the flow continues with the others: one mistake, one
    // message.
    for (const std::string& tag : step_.words) {
      if (const auto vertex = tags_.find(tag))
        found.push_back(*vertex);
    }
    if (step_.words.empty())
      net_.complain("names no tag to go on from");
    if (!found.empty())
      streams_ = {found, found.front()};
  }

  void mixture_of_experts() {
    expect_parts(1, "experts");
    const Vertex from = stream();
    if (step_.mixture.sparse) {
      add_composite(NodeKind::kMixture, "mixture_of_experts", from);
      return;
    }
    const Vertex router = net_.add_part(step_.parts[0], "");
    net_.connect_stream(from, router);
    // The router alone gets the step's references; the name is that of the sum, and experts are
    // numbered.
    targets_ = {router};
    // Experts are nodes of this graph, not callees of one node: all of them run, and they are
    // branches that may run concurrently.
    std::vector<Vertex> values = add_branches(from, 1);
    values.insert(values.begin(), router);
    go_on_from(add_merge(weighted_sum(step_.mixture.pad), step_.name, values));
  }

  void switch_() {
    expect_parts(1, "branches");
    if (step_.parts.size() >= 2)
      add_composite(NodeKind::kSwitch, "switch", stream());
  }

  void loop() {
    if (step_.loop == LoopKind::kUnfinished) {
      net_.complain("requires one of times(), while_(), until() and adaptively()");
    } else if (step_.rounds < 1) {
      net_.complain("needs at least one round, got " + std::to_string(step_.rounds));
    }
    if (const double epsilon = step_.pondering.epsilon; !(epsilon > 0 && epsilon < 1))
      net_.complain("halts within an epsilon between 0 and 1, got " + describe_value(epsilon));
    if (const double cost = step_.pondering.cost; !(cost >= 0 && std::isfinite(cost)))
      net_.complain("needs a cost of pondering that is not negative, got " + describe_value(cost));
    add_composite(NodeKind::kLoop, "loop", stream());
  }

  void map() {
    // A map over a tag does not need one open stream: open streams are dropped, and the map's
    // result becomes the stream.
    if (step_.map == MapKind::kUnfinished)
      net_.complain("requires one of each(), over() and slices()");
    const Vertex from =
        step_.map == MapKind::kOver ? tags_.find(step_.over).value_or(streams_.current) : stream();
    if (step_.map == MapKind::kSlices && step_.slices < 1)
      net_.complain("needs at least one slice, got " + std::to_string(step_.slices));
    add_composite(NodeKind::kMap, "map", from);
  }

  Netlist& net_;
  Tags& tags_;
  Streams& streams_;
  const FlowStep& step_;
  std::vector<Vertex> targets_;
};

}  // namespace

std::vector<Vertex> wire_verb(Netlist& net, Tags& tags, Streams& streams) {
  return VerbWiring(net, tags, streams).wire();
}

void pass_by(Netlist& net, Tags& tags, Streams& streams) {
  VerbWiring(net, tags, streams).pass_by();
}

}  // namespace treadle::graph
