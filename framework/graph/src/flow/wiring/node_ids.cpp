#include "flow/wiring/node_ids.h"

#include <string_view>

#include <treadle/base/json_words.h>

namespace treadle::graph {

bool is_name(const std::string& text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !text.empty() && text.find_first_not_of(kLetters) == std::string::npos;
}

bool is_port_name(const std::string& text) {
  const std::size_t dot = text.find('.');
  return is_name(text.substr(0, dot)) &&
         (dot == std::string::npos || is_port_name(text.substr(dot + 1)));
}

std::string NodeIds::next(const std::string& type) {
  std::string id;
  do {
    id = type + "_" + std::to_string(counters_[type]++);
  } while (ids_.contains(id) || wanted_.contains(id) || name_within(id));
  ids_.insert(id);
  nodes_.insert(id);
  return id;
}

std::optional<std::string> NodeIds::claim(const std::string& name) {
  if (!is_port_name(name)) {
    return "the name " + quote_text(name) +
           " must be of letters, digits, _, - and, between them, dots";
  }
  if (!ids_.insert(name).second)
    return "two nodes are named " + quote_text(name);
  if (const auto other = clashing_name(name)) {
    return "a node is named " + quote_text(name) + " and another " + quote_text(*other) +
           "; "
           "what stands before a dot is a group of nodes, not a node";
  }
  nodes_.insert(name);
  return std::nullopt;
}

/// "encoder.0", where `group` is "encoder".
std::optional<std::string> NodeIds::name_within(const std::string& group) const {
  const auto next = nodes_.lower_bound(group + ".");
  return next != nodes_.end() && next->starts_with(group + ".") ? std::optional(*next)
                                                                : std::nullopt;
}

/// A node cannot be a group as well: parameters would have names of both.
std::optional<std::string> NodeIds::clashing_name(const std::string& name) const {
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    if (nodes_.contains(name.substr(0, dot)))
      return name.substr(0, dot);
  }
  return name_within(name);
}

}  // namespace treadle::graph
