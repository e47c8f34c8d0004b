#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace treadle::graph {

/// Of letters, digits, _ and -.
bool is_name(const std::string& text);
/// Names with dots between them: "text", "text.lengths".
bool is_port_name(const std::string& text);

/// The ids of the nodes and inputs of one flow. They are part of the saved format, as they name
/// parameters: generated ids count the nodes of their type in the order of the flow, and skip names
/// given by people.
class NodeIds {
 public:
  /// `wanted`: all names given in the flow, also those of later steps.
  explicit NodeIds(std::set<std::string> wanted) : wanted_(std::move(wanted)) {}

  bool contains(const std::string& id) const { return ids_.contains(id); }

  /// "dense_0": the next one of this type.
  std::string next(const std::string& type);
  /// Makes a name that a step gives an id. A message where it is no port name, is taken, or would
  /// be a node as well as a group of nodes: "encoder" beside "encoder.0".
  std::optional<std::string> claim(const std::string& name);
  /// An input names no parameters, so its name may be that of a group.
  void add_input(const std::string& name) { ids_.insert(name); }

 private:
  std::optional<std::string> name_within(const std::string& group) const;
  std::optional<std::string> clashing_name(const std::string& name) const;

  const std::set<std::string> wanted_;
  std::set<std::string> ids_;
  std::set<std::string> nodes_;  // those of them that are no inputs
  std::map<std::string, std::size_t> counters_;
};

}  // namespace treadle::graph
