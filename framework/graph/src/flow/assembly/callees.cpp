#include "flow/assembly/callees.h"

#include <algorithm>
#include <utility>

#include <treadle/base/json_words.h>

#include "flow/assembly/assemble.h"
#include "flow/assembly/callee_checks.h"
#include "flow/assembly/depth.h"

// Of the four kinds of parts (see part.cpp), a built graph is used itself by all places that get
// it. A flow is assembled anew for each place; only modules in it that exist already are shared.

namespace treadle::graph {
namespace {

/// The names under which the modules of a node's callees are registered.
std::vector<std::string> callee_names(const WantedNode& node) {
  if (node.kind == NodeKind::kLoop)
    return {"body", node.step->loop == LoopKind::kAdaptive ? "halt" : "condition"};
  if (node.kind == NodeKind::kMap)
    return {"body"};
  if (node.kind == NodeKind::kSwitch || node.kind == NodeKind::kMixture) {
    std::vector<std::string> names{"router"};
    for (std::size_t i = 1; i < node.parts.size(); ++i)
      names.push_back((node.kind == NodeKind::kSwitch ? "branch_" : "expert_") +
                      std::to_string(i - 1));
    return names;
  }
  return {""};
}

/// Only the first callee of a composite gets references; the pieces of a map are not the whole.
std::vector<TensorSpec> inputs_of_callee(const WantedNode& node, std::size_t index,
                                         std::vector<TensorSpec> specs) {
  if (index > 0)
    return {specs.front()};
  if (node.kind == NodeKind::kMap && !specs.front().sizes.empty()) {
    TensorSpec& pieces = specs.front();
    const FlowStep& step = *node.step;
    if (step.map == MapKind::kSlices && pieces.sizes.back() != TensorSpec::kVaries) {
      pieces.sizes = {TensorSpec::kVaries,
                      pieces.sizes.back() / std::max<std::int64_t>(step.slices, 1)};
    } else if (!step.batched) {
      pieces.sizes[0] = 1;
    }
  }
  return specs;
}

/// The module of a node that is made already and calls one module; else that of a flow around this
/// one. Null where no node is named so.
const torch::nn::Module* module_of(const Draft& draft, std::string_view id) {
  for (std::size_t place = 0; place < draft.graph->places.size(); ++place) {
    const auto& node = draft.graph->places[place].node;
    if (node != nullptr && draft.graph->nodes[place].id == id)
      return node->callees().size() == 1 ? node->callees().front().module().get() : nullptr;
  }
  return draft.spec != nullptr && draft.spec->module_of ? draft.spec->module_of(id) : nullptr;
}

/// Makes the graph of a part that is a flow. Null, with its problems added, where it has any.
std::shared_ptr<Graph> assemble_within(Draft& draft, const WantedNode& node, const Part& part,
                                       const LayerSpec& spec) {
  std::vector<Problem> within;
  auto graph = assemble_graph(*part.flow(), draft.spec == nullptr ? nullptr : &spec, within,
                              draft.levels + 1);
  for (Problem& problem : within) {
    problem.message = "in " + quote_text(node.id) + ": " + problem.message;
    draft.problems.push_back(std::move(problem));
  }
  return graph;
}

/// Makes the graph that a builder builds for such inputs. Null, with problems of the step that
/// names the builder, where that fails.
std::shared_ptr<Graph> build_within(Draft& draft, std::size_t place, const Part& part,
                                    const LayerSpec& spec) {
  std::shared_ptr<const FlowBuilder> flow;
  if (!draft.attempt(place, [&] { flow = part.build_flow()(spec); }))
    return nullptr;
  const std::string where =
      "in " + quote_text(draft.wanted(place).id) + ", built by " + part.origin() + ": ";
  // Builders may name each other without end. Flows in a document are measured before anything is
  // built; a builder's flow is known only now.
  if (const auto why = why_too_deep(*flow, draft.levels + 1)) {
    draft.complain_at(place, where + *why);
    return nullptr;
  }
  std::vector<Problem> within;
  auto graph = assemble_graph(*flow, &spec, within, draft.levels + 1);
  for (const Problem& problem : within) {
    draft.complain_at(
        place, where + (problem.pointer.empty() ? "" : problem.pointer + ": ") + problem.message);
  }
  if (graph != nullptr)
    graph->set_built_from(std::move(flow));
  return graph;
}

std::optional<Callee> make_callee(Draft& draft, std::size_t place, const Part& part,
                                  const std::string& name, const LayerSpec& spec) {
  std::optional<Callee> callee;
  if (part.graph() || part.flow() || part.build_flow()) {
    auto graph = part.graph()  ? part.graph()
                 : part.flow() ? assemble_within(draft, draft.wanted(place), part, spec)
                               : build_within(draft, place, part, spec);
    if (graph != nullptr)
      callee.emplace(name, part.type(), std::move(graph));
    return callee;
  }
  const bool is_made = draft.attempt(place, [&] {
    callee.emplace(name, part.type(), part.make()(spec), part.module());
    expect_numbers(*callee, spec.inputs);
  });
  if (!is_made)
    callee.reset();
  return callee;
}

}  // namespace

std::vector<Callee> make_callees(Draft& draft, std::size_t place) {
  const LayerSpec* around = draft.spec;
  const auto specs = draft.specs_of_inputs(place);
  if (around != nullptr && !specs)
    return {};
  const WantedNode& node = draft.wanted(place);
  const std::vector<std::string> names = callee_names(node);
  std::vector<Callee> callees;
  for (std::size_t i = 0; i < node.parts.size(); ++i) {
    LayerSpec spec;
    // `outputs` are those of the whole model, at any depth: a `head` in a nested flow is made for
    // them.
    if (around != nullptr)
      spec = {inputs_of_callee(node, i, *specs), around->outputs, around->dtype,
              around->is_step_by_step};
    if (around != nullptr && node.kind == NodeKind::kMixture && i > 0) {
      std::optional<TensorSpec> weights;
      if (!draft.attempt(place, [&] { weights = callees.front().result(*specs); }))
        return {};
      spec.inputs = {tokens_of(specs->front(), *weights)};
    }
    spec.module_of = [&draft](std::string_view id) { return module_of(draft, id); };
    auto callee =
        make_callee(draft, place, node.parts[i], names[std::min(i, names.size() - 1)], spec);
    if (!callee)
      return {};
    callees.push_back(std::move(*callee));
  }
  return callees;
}

}  // namespace treadle::graph
