#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flow/wiring/netlist.h"

namespace treadle::graph {

/// The tags of a flow while it is wired: of which values they are, and which of them are states.
///
/// A state is two vertices: a "state_read" node where a tag is used before its step, and the node
/// that gets the tag later. The edge between them (NodeInput::Kind::kState) leads from one forward
/// to the next and orders nothing.
class Tags {
 public:
  /// Reads the tags of all steps, since a step may use one that comes later. Borrows `net`, to
  /// which it adds nodes, edges and problems.
  explicit Tags(Netlist& net);

  /// Whether any step puts it, be it later: also inputs and members of groups.
  bool is_declared(const std::string& tag) const { return declared_.contains(tag); }
  bool is_put(const std::string& tag) const { return values_.contains(tag); }

  /// The value of a tag; nothing, with a problem added, where no step has put it so far.
  std::optional<Vertex> find(const std::string& tag);
  /// The value of a tag, or of the forward before where no step has put it so far.
  Vertex value_or_state(const std::string& tag);
  void put(const std::string& tag, Vertex vertex);

  // At the end of the flow; each adds problems of tags that no step puts.
  void close_states();
  std::vector<Vertex> outputs();

  /// The message for a tag that no step puts: "nothing is tagged "a"; did you mean …".
  std::string unknown(const std::string& tag) const;
  /// Of stream `index`, as a tag group names it.
  static std::string member_of(const std::string& group, std::size_t index);

 private:
  struct State {
    Vertex vertex;
    const FlowStep* first_used;
    bool is_closed;
  };

  std::string suggestion(const std::string& tag) const;

  Netlist& net_;
  std::set<std::string> declared_;
  std::map<std::string, Vertex> values_;
  std::map<std::string, State> states_;
};

}  // namespace treadle::graph
