#include "flow/wiring/tags.h"

#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::graph {
namespace {

/// How many streams are open after a step without mistakes.
std::size_t open_after(const FlowStep& step, std::size_t before) {
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

template <typename Value>
std::vector<std::string> keys_of(const std::map<std::string, Value>& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map)
    keys.push_back(key);
  return keys;
}

}  // namespace

Tags::Tags(Netlist& net) : net_(net) {
  std::size_t open = 1;
  for (const FlowStep& step : net.flow.steps()) {
    declared_.insert(step.tags.begin(), step.tags.end());
    for (const auto& [output, tag] : step.output_tags)
      declared_.insert(tag);
    if (step.verb == Verb::kInput)
      declared_.insert(step.words.begin(), step.words.end());
    for (std::size_t i = 0; step.verb == Verb::kTagGroup && i < open; ++i)
      declared_.insert(member_of(step.words[0], i));
    open = open_after(step, open);
  }
}

std::optional<Vertex> Tags::find(const std::string& tag) {
  if (const auto found = values_.find(tag); found != values_.end())
    return found->second;
  net_.complain(is_declared(tag) ? "the tag " + quote_text(tag) +
                                       " comes only later; \"using\" can reach it, as a state"
                                 : unknown(tag));
  return std::nullopt;
}

Vertex Tags::value_or_state(const std::string& tag) {
  if (const auto found = values_.find(tag); found != values_.end())
    return found->second;
  // Whether the tag comes later is checked in close_states().
  if (const auto found = states_.find(tag); found != states_.end())
    return found->second.vertex;
  const Vertex vertex = net_.add({.id = net_.ids.next("state_read"),
                                  .type = "state_read",
                                  .kind = NodeKind::kState,
                                  .state_tag = tag});
  states_.emplace(tag, State{vertex, net_.step, false});
  return vertex;
}

void Tags::put(const std::string& tag, Vertex vertex) {
  WantedNode& node = net_.wired.description[vertex];
  if (!(node.kind == NodeKind::kInput ? is_port_name(tag) : is_name(tag))) {
    net_.complain("the tag " + quote_text(tag) + " must be of letters, digits, _ and -");
    return;
  }
  if (!values_.emplace(tag, vertex).second) {
    net_.complain("the tag " + quote_text(tag) + " is used twice");
    return;
  }
  node.tags.push_back(tag);
  // An earlier step has used this tag: it is a state, and this vertex computes its next value.
  if (const auto state = states_.find(tag); state != states_.end()) {
    net_.connect(vertex, state->second.vertex, std::string(kDefaultInput), NodeInput::Kind::kState);
    state->second.is_closed = true;
  }
}

void Tags::close_states() {
  for (const auto& [tag, state] : states_) {
    if (state.is_closed)
      continue;
    // The mistake stands at the step that used the tag first.
    net_.step = state.first_used;
    net_.complain("uses " + quote_text(tag) + ", but nothing is tagged so" + suggestion(tag));
  }
  net_.step = nullptr;
  for (const InitialState& initial : net_.flow.initial_states()) {
    if (states_.contains(initial.tag))
      continue;
    net_.complain("an initial value is given for " + quote_text(initial.tag) +
                  ", which is no state: no step uses it before it is there" +
                  did_you_mean(initial.tag, keys_of(states_)));
  }
}

std::vector<Vertex> Tags::outputs() {
  std::vector<Vertex> outputs;
  for (const std::string& tag : net_.flow.output_tags()) {
    if (const auto found = values_.find(tag); found != values_.end()) {
      outputs.push_back(found->second);
    } else {
      net_.complain("the outputs name " + quote_text(tag) + ", but nothing is tagged so" +
                    suggestion(tag));
    }
  }
  return outputs;
}

std::string Tags::unknown(const std::string& tag) const {
  return "nothing is tagged " + quote_text(tag) + suggestion(tag);
}

std::string Tags::suggestion(const std::string& tag) const {
  return did_you_mean(tag, keys_of(values_));
}

std::string Tags::member_of(const std::string& group, std::size_t index) {
  return group + "_" + std::to_string(index);
}

}  // namespace treadle::graph
