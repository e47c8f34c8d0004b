#include <treadle/graph/flow_builder.h>

#include <utility>

#include <treadle/base/error.h>

#include "flow/assembly/assemble.h"
#include "flow/flow_step.h"

// Verbs only record steps; nothing is checked before build(), so that all mistakes are reported at
// once. A builder is a value: copies share parts, not steps.

namespace treadle::graph {

// For messages about flows from C++; those from a document have the place instead.
std::string_view spoken(Verb verb) {
  switch (verb) {
    case Verb::kStart:
      return "the start";
    case Verb::kThrough:
      return "through()";
    case Verb::kResidual:
      return "residual()";
    case Verb::kSplit:
      return "split()";
    case Verb::kMerge:
      return "merge()";
    case Verb::kTagGroup:
      return "tag_group()";
    case Verb::kInput:
      return "input()";
    case Verb::kAt:
      return "at()";
    case Verb::kMixtureOfExperts:
      return "mixture_of_experts()";
    case Verb::kSwitch:
      return "switch_()";
    case Verb::kLoop:
      return "loop()";
    case Verb::kMap:
      return "map()";
  }
  return "";
}

FlowVerb::~FlowVerb() = default;

FlowBuilder::FlowBuilder() = default;
FlowBuilder::FlowBuilder(const FlowBuilder&) = default;
FlowBuilder::FlowBuilder(FlowBuilder&&) noexcept = default;
FlowBuilder& FlowBuilder::operator=(const FlowBuilder&) = default;
FlowBuilder& FlowBuilder::operator=(FlowBuilder&&) noexcept = default;
FlowBuilder::~FlowBuilder() = default;

FlowBuilder FlowBuilder::from(const Part& part) {
  FlowBuilder flow;
  flow.through(part);
  return flow;
}

// The place is that of the last written_at(): the reader of a document announces each step before
// the verb that records it.
FlowStep& FlowBuilder::add(FlowStep step) {
  step.place = place_of_step_;
  return steps_.emplace_back(std::move(step));
}

FlowBuilder& FlowBuilder::through(const Part& part) {
  add({.verb = Verb::kThrough, .parts = {part}});
  return *this;
}

FlowBuilder& FlowBuilder::residual(const Part& part, bool broadcast) {
  add({.verb = Verb::kResidual, .parts = {part}, .broadcast = broadcast});
  return *this;
}

FlowBuilder& FlowBuilder::split(std::vector<Part> branches) {
  add({.verb = Verb::kSplit, .parts = std::move(branches)});
  return *this;
}

FlowBuilder& FlowBuilder::merge(const Part& part) {
  add({.verb = Verb::kMerge, .parts = {part}});
  return *this;
}

FlowBuilder& FlowBuilder::tag_group(std::string name) {
  add({.verb = Verb::kTagGroup, .words = {std::move(name)}});
  return *this;
}

FlowBuilder& FlowBuilder::input(std::vector<std::string> names) {
  add({.verb = Verb::kInput, .words = std::move(names)});
  return *this;
}

FlowBuilder& FlowBuilder::at(std::vector<std::string> tags) {
  add({.verb = Verb::kAt, .words = std::move(tags)});
  return *this;
}

FlowBuilder& FlowBuilder::mixture_of_experts(const Part& router, std::vector<Part> experts,
                                             Mixture mixture) {
  // FlowStep::parts has the router first; so do the callees of the nodes (callee_names() in
  // callees.cpp).
  experts.insert(experts.begin(), router);
  add({.verb = Verb::kMixtureOfExperts, .parts = std::move(experts), .mixture = mixture});
  return *this;
}

// The parts of a switch are callees of one node; those of mixture_of_experts() are nodes, because
// all of them run, unless it is sparse.
FlowBuilder& FlowBuilder::switch_(const Part& router, std::vector<Part> branches, SwitchBy by) {
  branches.insert(branches.begin(), router);
  add({.verb = Verb::kSwitch, .parts = std::move(branches), .switch_by = by});
  return *this;
}

// A loop is recorded at once and finished by the object that is returned. One that is dropped
// leaves a step without a length, which build() reports. The object refers to the last step, so no
// other verb may come between.
FlowBuilder::Loop FlowBuilder::loop(const Part& body) {
  add({.verb = Verb::kLoop, .parts = {body}});
  return Loop(*this);
}

FlowBuilder& FlowBuilder::Loop::times(std::int64_t n) {
  FlowStep& step = flow_.steps_.back();
  step.loop = LoopKind::kTimes;
  step.rounds = n;
  return flow_;
}

FlowBuilder& FlowBuilder::Loop::while_(const Part& condition, std::int64_t most, HaltBy by) {
  FlowStep& step = flow_.steps_.back();
  // Behind the body: FlowStep::parts is [body, condition], and [body, halt] for adaptively().
  step.parts.push_back(condition);
  step.loop = LoopKind::kWhile;
  step.rounds = most;
  step.halt_by = by;
  return flow_;
}

FlowBuilder& FlowBuilder::Loop::until(const Part& condition, std::int64_t most, HaltBy by) {
  // The same but for the moment of the decision, see LoopNode::run().
  while_(condition, most, by);
  flow_.steps_.back().loop = LoopKind::kUntil;
  return flow_;
}

FlowBuilder& FlowBuilder::Loop::adaptively(const Part& halt, std::int64_t most,
                                           Pondering pondering) {
  FlowStep& step = flow_.steps_.back();
  step.parts.push_back(halt);
  step.loop = LoopKind::kAdaptive;
  step.rounds = most;
  step.pondering = pondering;
  return flow_;
}

FlowBuilder::Map FlowBuilder::map(const Part& body) {
  add({.verb = Verb::kMap, .parts = {body}});
  return Map(*this);
}

FlowBuilder& FlowBuilder::Map::each() {
  flow_.steps_.back().map = MapKind::kEach;
  return flow_;
}

FlowBuilder& FlowBuilder::Map::over(std::string tag) {
  FlowStep& step = flow_.steps_.back();
  step.map = MapKind::kOver;
  step.over = std::move(tag);
  return flow_;
}

FlowBuilder& FlowBuilder::Map::slices(std::int64_t n) {
  FlowStep& step = flow_.steps_.back();
  step.map = MapKind::kSlices;
  step.slices = n;
  return flow_;
}

FlowBuilder::Map& FlowBuilder::Map::batched() {
  flow_.steps_.back().batched = true;
  return *this;
}

FlowStep& FlowBuilder::last() {
  // Before any verb, tag() and its like are about the graph's first input. A step of its own holds
  // them, so that their order among the steps is kept.
  return steps_.empty() ? add({.verb = Verb::kStart}) : steps_.back();
}

FlowBuilder& FlowBuilder::tag(std::string name) {
  last().tags.push_back(std::move(name));
  return *this;
}

FlowBuilder& FlowBuilder::tag_output(std::string output, std::string name) {
  // "output" is the node's first output, which has no place of its own.
  if (output == kDefaultOutput)
    return tag(std::move(name));
  last().output_tags.emplace_back(std::move(output), std::move(name));
  return *this;
}

FlowBuilder& FlowBuilder::using_(std::vector<std::string> tags) {
  std::vector<std::string>& references = last().references;
  // Added, not replaced: several using_() of one step give all their tags.
  references.insert(references.end(), tags.begin(), tags.end());
  return *this;
}

FlowBuilder& FlowBuilder::initial(std::string tag, std::vector<std::int64_t> shape, double fill) {
  // Belongs to the flow and not to a step: the state is read at one step and written at another.
  initial_.push_back({std::move(tag), std::move(shape), fill});
  return *this;
}

FlowBuilder& FlowBuilder::named(std::string name) {
  last().name = std::move(name);
  return *this;
}

FlowBuilder& FlowBuilder::frozen() {
  last().frozen = true;
  return *this;
}

FlowBuilder& FlowBuilder::disabled() {
  last().enabled = false;
  return *this;
}

FlowBuilder& FlowBuilder::outputs(std::vector<std::string> tags) {
  outputs_ = std::move(tags);
  // Names belong to the tags that are replaced.
  output_names_.clear();
  return *this;
}

FlowBuilder& FlowBuilder::outputs(std::vector<std::string> names, std::vector<std::string> tags) {
  TREADLE_EXPECTS(names.size() == tags.size(), "every output has a name and a tag");
  outputs_ = std::move(tags);
  output_names_ = std::move(names);
  return *this;
}

FlowBuilder& FlowBuilder::begin_with_inputs(std::vector<std::string> names) {
  // In front, where every step can use them. Their place is the flow's: no step of the document
  // names them as inputs.
  FlowStep step{.verb = Verb::kInput, .words = std::move(names)};
  step.place = place_;
  steps_.insert(steps_.begin(), std::move(step));
  return *this;
}

FlowBuilder& FlowBuilder::read_from(const Config& flow) {
  // The whole flow's place, for mistakes that belong to no step (cycles, outputs, initial values).
  place_ = flow;
  return *this;
}

FlowBuilder& FlowBuilder::written_at(const Config& step) {
  place_of_step_ = step;
  return *this;
}

std::shared_ptr<Graph> FlowBuilder::build(const LayerSpec& spec) const {
  // Everything is checked here. The graph keeps no pointer to the builder or its steps.
  return assemble_graph(*this, &spec);
}

std::shared_ptr<Graph> FlowBuilder::build() const {
  return assemble_graph(*this, nullptr);
}

}  // namespace treadle::graph
