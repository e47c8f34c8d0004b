#include <algorithm>
#include <map>
#include <utility>

#include <boost/range/iterator_range.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/abilities/begins_forward.h>
#include <treadle/core/model/abilities/takes_absent.h>
#include <treadle/core/model/abilities/takes_indices.h>

#include "flow/assemble.h"
#include "flow/selector.h"
#include "flow/wire.h"
#include "forward/failure.h"
#include "nodes/nodes.h"
#include "run/graph_data.h"
#include "run/graphs_within.h"

// From nodes and edges to a graph: orders places, makes layers, infers shapes, and prepares
// execution.
//
// Preparation, in this order: freeing (the last use of each value), sharing (which inputs need an
// accumulation point, see run/gradient_order.h), branches (places of one level that may run
// concurrently). Tags, outputs and states count as users, because whoever takes them may
// differentiate them.
//
// Problems are collected. A place whose inputs have a problem is skipped without another message.
//
// Sizes flow forward. Places are made in execution order, and each layer is made for the sizes of
// its inputs, which earlier places have determined. Two cases need more:
// - A state is read before it is computed. Its size is that of its initial value, or it is absent;
//   the readers are inferred once more when the written size is known (check_states()).
// - Without a LayerSpec nothing is inferred. All results stay unknown, layers are made for an empty
//   spec, which those that need sizes refuse.
//
// Shared weights. Modules that several places use are the same object in several callees, so sums
// of their gradients meet outside any one place. Branches inside a graph that is repeated or shares
// weights must then add up as one by one (Graph::set_repeated(),
// BranchGroup::must_run_one_by_one()).

namespace treadle::graph {
namespace {

/// How the callees of a composite are called: their modules are registered so.
std::vector<std::string> callee_names(NodeKind kind, LoopKind loop, std::size_t count) {
  if (kind == NodeKind::kLoop)
    return {"body", loop == LoopKind::kAdaptive ? "halt" : "condition"};
  if (kind == NodeKind::kMap)
    return {"body"};
  if (kind == NodeKind::kSwitch || kind == NodeKind::kMixture) {
    std::vector<std::string> names{"router"};
    for (std::size_t i = 1; i < count; ++i)
      names.push_back((kind == NodeKind::kSwitch ? "branch_" : "expert_") + std::to_string(i - 1));
    return names;
  }
  return {""};
}

/// How many flows and graphs stand in each other; once it is more than kMostLevels, some number
/// that is.
std::size_t levels_of(const FlowBuilder& flow, std::size_t above,
                      std::map<const FlowBuilder*, std::size_t>& known) {
  // Also ends the recursion for flows that are deeper than the stack allows. `known` makes it
  // linear: a flow may be part of another many times.
  if (above > kMostLevels)
    return 1;
  if (const auto found = known.find(&flow); found != known.end())
    return found->second;
  std::size_t levels = 1;
  for (const FlowStep& step : flow.steps()) {
    for (const Part& part : step.parts) {
      if (part.flow())
        levels = std::max(levels, 1 + levels_of(*part.flow(), above + 1, known));
      if (part.graph())
        levels = std::max(levels, 1 + part.graph()->impl().levels);
    }
  }
  known.emplace(&flow, levels);
  return levels;
}

bool is_too_deep(const FlowBuilder& flow, std::size_t levels) {
  std::map<const FlowBuilder*, std::size_t> known;
  return levels - 1 + levels_of(flow, levels, known) > kMostLevels;
}

std::string too_deep_text() {
  return "flows stand in each other more than " + std::to_string(kMostLevels) + " levels deep";
}

class Assembly {
 public:
  Assembly(const Wired& wired, const FlowBuilder& flow, const LayerSpec* spec,
           std::vector<Problem>& problems, std::size_t levels)
      : wired_(wired),
        flow_(flow),
        spec_(spec),
        problems_(problems),
        levels_(levels),
        impl_(std::make_unique<Graph::Impl>()) {}

  std::shared_ptr<Graph> assemble() {
    const std::size_t before = problems_.size();
    std::vector<std::string> cycle;
    order_ = execution_order(wired_.description, cycle);
    if (!cycle.empty()) {
      complain(nullptr, "the graph has a cycle: " + joined(cycle, " -> "));
      return nullptr;
    }
    place_of_.resize(order_.size());
    for (std::size_t place = 0; place < order_.size(); ++place)
      place_of_[order_[place]] = place;

    impl_->places.resize(order_.size());
    impl_->nodes.resize(order_.size());
    if (spec_ != nullptr)
      impl_->dtype = spec_->dtype;
    describe_inputs();
    for (std::size_t place = 0; place < order_.size(); ++place)
      make_place(place);
    describe_outputs();
    // Without problems every place is complete: it has its node and, with sizes, its result.
    if (problems_.size() > before)
      return nullptr;
    check_states();
    if (problems_.size() > before)
      return nullptr;
    // From the finished places: nothing below may add or remove one.
    plan_releases();
    find_shared();
    plan_branches();
    return std::make_shared<Graph>(std::move(impl_));
  }

 private:
  const WantedNode& wanted(std::size_t place) const { return wired_.description[order_[place]]; }

  void complain(const FlowStep* step, std::string message) {
    problems_.push_back(problem_of(flow_, step, std::move(message)));
  }

  static std::string joined(const std::vector<std::string>& words, const std::string& between) {
    std::string text;
    for (const std::string& word : words)
      text += (text.empty() ? "" : between) + word;
    return text;
  }

  void describe_inputs() {
    impl_->input_names = wired_.input_names;
    // The first input is the stream; the order of the others is that of the flow's input() steps.
    for (const Vertex input : wired_.inputs)
      impl_->inputs.push_back(place_of_[input]);
    if (spec_ == nullptr)
      return;
    if (spec_->inputs.size() != wired_.inputs.size()) {
      complain(nullptr, "the flow takes " + std::to_string(wired_.inputs.size()) +
                            (wired_.inputs.size() == 1 ? " input" : " inputs") +
                            (wired_.input_names.empty()
                                 ? ""
                                 : " (the stream, " + joined(wired_.input_names, ", ") + ")") +
                            ", but is given " + std::to_string(spec_->inputs.size()));
      return;
    }
    for (std::size_t i = 0; i < wired_.inputs.size(); ++i)
      impl_->nodes[impl_->inputs[i]].result = spec_->inputs[i];
  }

  /// Inputs in the order in which a callee gets them: the stream, then references.
  std::vector<NodeInput> inputs_of(std::size_t place) {
    std::vector<NodeInput> inputs;
    const Vertex vertex = order_[place];
    for (const auto& edge :
         boost::make_iterator_range(boost::in_edges(vertex, wired_.description))) {
      const WantedEdge& wanted_edge = wired_.description[edge];
      inputs.push_back(
          {place_of_[boost::source(edge, wired_.description)], wanted_edge.port, wanted_edge.kind});
    }
    return inputs;
  }

  /// What is known of the inputs; nothing when one is not known.
  std::optional<std::vector<TensorSpec>> specs_of(const std::vector<NodeInput>& inputs) const {
    std::vector<TensorSpec> specs;
    for (const NodeInput& input : inputs) {
      const auto& result = impl_->nodes[input.node].result;
      if (!result)
        return std::nullopt;
      specs.push_back(*result);
    }
    return specs;
  }

  void make_place(std::size_t place) {
    const WantedNode& node = wanted(place);
    NodeInfo& info = impl_->nodes[place];
    info.id = node.id;
    info.type = node.type;
    info.kind = node.kind;
    info.tags = node.tags;
    info.frozen = node.step != nullptr && node.step->frozen;
    for (const std::string& tag : node.tags)
      impl_->tags.emplace(tag, place);
    // All tags of a place share one slot.
    if (!node.tags.empty())
      impl_->places[place].tag_slot = impl_->tag_slots++;
    info.inputs = inputs_of(place);
    for (const NodeInput& input : info.inputs) {
      // The level is the length of the longest way to a node, so nodes of one level cannot need
      // each other. A state's edge comes from the forward before and does not count.
      if (input.kind != NodeInput::Kind::kState)
        info.level = std::max(info.level, impl_->nodes[input.node].level + 1);
    }
    info.control = control_of(node);
    if (node.kind == NodeKind::kLayer && node.parts.front().parameters().is_object())
      info.attributes = node.parts.front().parameters().dump();
    if (node.kind == NodeKind::kInput || node.kind == NodeKind::kOutput)
      return;
    if (node.kind == NodeKind::kState) {
      make_state(place);
      return;
    }
    // From here on a return leaves the place without a node: a problem was noted, here or at an
    // input.
    const auto specs = specs_of(info.inputs);
    std::vector<Callee> callees = make_callees(place, specs);
    if (callees.empty())
      return;
    if (!order_references(place, callees.front()) || !fits_switch(place, callees))
      return;
    const auto further = further_outputs(place, callees.front());
    if (!further)
      return;
    for (const Callee& callee : callees) {
      if (info.kind != NodeKind::kLayer)
        info.inside.push_back({callee.name(), callee.type(), callee.graph().get()});
    }
    const bool begins = std::any_of(callees.begin(), callees.end(), [](const Callee& callee) {
      return callee.ability<BeginsForward>() != nullptr;
    });
    if (begins)
      impl_->tells_beginning.push_back(place);
    if (info.frozen)
      // The parameters themselves: a module that is shared with another place is frozen there as
      // well.
      freeze(callees);
    for (const Callee& callee : callees) {
      if (callee.graph())
        impl_->levels = std::max(impl_->levels, 1 + callee.graph()->impl().levels);
    }
    impl_->places[place].node = make_node(node, std::move(callees), *further);
    for (const at::Tensor& parameter : impl_->places[place].node->parameters())
      info.parameters += parameter.numel();
    if (info.frozen && info.parameters == 0 && node.step->enabled) {
      complain(node.step, "\"frozen\" has no effect: " + quote_text(info.type) +
                              " has no parameters; leave it out");
    }
    if (impl_->places[place].node->repeats_its_parts()) {
      for (const Callee& callee : impl_->places[place].node->callees())
        tell_repeated(callee);
    }
    // After order_references(): a callee gets its inputs in this order.
    for (const NodeInput& input : info.inputs)
      impl_->places[place].inputs.push_back(input.node);
    find_result(place);
  }

  static std::string control_of(const WantedNode& node) {
    if (node.step == nullptr)
      return "";
    const FlowStep& step = *node.step;
    const std::string rounds =
        std::to_string(step.rounds) + (step.rounds == 1 ? " round" : " rounds");
    if (node.kind == NodeKind::kLoop) {
      if (step.loop == LoopKind::kTimes)
        return rounds;
      if (step.loop == LoopKind::kAdaptive)
        return "each row halts by itself, at most " + rounds;
      return (step.loop == LoopKind::kWhile ? "while condition <= 0, at most "
                                            : "until condition > 0, at most ") +
             rounds;
    }
    if (node.kind == NodeKind::kMap) {
      const std::string pieces = step.map == MapKind::kSlices
                                     ? std::to_string(step.slices) + " slices"
                                     : std::string("each row");
      return pieces + (step.batched ? ", batched" : "");
    }
    if (node.kind == NodeKind::kSwitch)
      return step.switch_by == SwitchBy::kRow ? "by row" : "by batch";
    if (node.kind == NodeKind::kMixture)
      return "sparse";
    return "";
  }

  static void freeze(const std::vector<Callee>& callees) {
    for (const Callee& callee : callees) {
      for (at::Tensor& parameter : callee.module()->parameters())
        parameter.set_requires_grad(false);
    }
  }

  static void tell_repeated(const Callee& callee) {
    // All graphs within, at any depth, also those in layers (GraphLayer, recompute).
    for (Graph* graph : graphs_within(*callee.module()))
      graph->set_repeated();
  }

  static std::unique_ptr<Node> make_loop(std::vector<Callee> callees, const FlowStep& step) {
    if (step.loop == LoopKind::kAdaptive)
      return make_adaptive_loop_node(std::move(callees), step.rounds, step.pondering);
    return make_loop_node(std::move(callees), step.loop, step.rounds, step.halt_by);
  }

  static std::shared_ptr<const Node> make_node(const WantedNode& node, std::vector<Callee> callees,
                                               std::vector<std::string> further) {
    switch (node.kind) {
      case NodeKind::kLoop:
        return make_loop(std::move(callees), *node.step);
      case NodeKind::kMap:
        return make_map_node(std::move(callees),
                             node.step->map == MapKind::kSlices ? node.step->slices : 0,
                             node.step->batched);
      case NodeKind::kSwitch:
        return make_switch_node(std::move(callees), node.step->switch_by);
      case NodeKind::kMixture:
        return make_sparse_mixture_node(std::move(callees), node.step->mixture);
      default:
        return make_call_node(std::move(callees.front()), std::move(further));
    }
  }

  void make_state(std::size_t place) {
    StateSlot slot;
    slot.tag = wanted(place).state_tag;
    slot.read = place;
    for (const InitialState& initial : flow_.initial_states()) {
      if (initial.tag != slot.tag)
        continue;
      slot.shape = initial.shape;
      slot.fill = initial.fill;
      slot.has_initial = true;
    }
    // Its one input comes later in the order; a state that nothing writes has been reported.
    NodeInfo& info = impl_->nodes[place];
    if (info.inputs.empty())
      return;
    slot.written = info.inputs.front().node;
    if (slot.has_initial && spec_ != nullptr) {
      std::vector<std::int64_t> sizes{TensorSpec::kVaries};
      sizes.insert(sizes.end(), slot.shape.begin(), slot.shape.end());
      // As begin_states() makes it: one row for each row of the batch.
      info.result = TensorSpec(std::move(sizes), spec_->dtype);
    } else if (spec_ != nullptr) {
      info.result = TensorSpec::absent();
    }
    impl_->states.push_back(std::move(slot));
  }

  /// What each callee is made for. Empty, with a problem said, when one cannot be made.
  std::vector<Callee> make_callees(std::size_t place,
                                   const std::optional<std::vector<TensorSpec>>& specs) {
    const WantedNode& node = wanted(place);
    if (spec_ != nullptr && !specs)
      return {};  // what it is fed by has a problem of its own
    const std::vector<std::string> names =
        callee_names(node.kind, node.step == nullptr ? LoopKind::kUnfinished : node.step->loop,
                     node.parts.size());
    std::vector<Callee> callees;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      LayerSpec spec;
      // `outputs` are those of the whole model, at any depth: a `head` in a nested flow is made for
      // them.
      if (spec_ != nullptr)
        spec = {inputs_of_callee(node, i, *specs), spec_->outputs, spec_->dtype,
                spec_->is_step_by_step};
      if (spec_ != nullptr && node.kind == NodeKind::kMixture && i > 0) {
        const auto weights = weights_of(place, callees.front(), *specs);
        if (!weights)
          return {};
        spec.inputs = {tokens_of(specs->front(), *weights)};
      }
      spec.module_of = [this](std::string_view id) { return module_of(id); };
      auto callee = make_callee(place, node.parts[i], names[std::min(i, names.size() - 1)], spec);
      if (!callee)
        return {};
      callees.push_back(std::move(*callee));
    }
    return callees;
  }

  /// Those of a mixture's router. Nothing, with a problem said, where it cannot take the stream.
  std::optional<TensorSpec> weights_of(std::size_t place, const Callee& router,
                                       std::span<const TensorSpec> specs) {
    try {
      return router.result(specs);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      complain(wanted(place).step, cannot_take(place, words_in_flight()));
      return std::nullopt;
    }
  }

  /// Of a node that is made already and calls one module; else of a flow around this one.
  const torch::nn::Module* module_of(std::string_view id) const {
    for (std::size_t place = 0; place < impl_->places.size(); ++place) {
      const auto& node = impl_->places[place].node;
      if (node != nullptr && impl_->nodes[place].id == id)
        return node->callees().size() == 1 ? node->callees().front().module().get() : nullptr;
    }
    return spec_ != nullptr && spec_->module_of ? spec_->module_of(id) : nullptr;
  }

  /// Only the first callee of a composite gets references; the pieces of a map are not the whole.
  static std::vector<TensorSpec> inputs_of_callee(const WantedNode& node, std::size_t index,
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

  std::optional<Callee> make_callee(std::size_t place, const Part& part, const std::string& name,
                                    const LayerSpec& spec) {
    const WantedNode& node = wanted(place);
    // A built graph is used itself, by all places that get it. A flow is assembled anew for each
    // place; only modules in it that exist already are shared.
    if (part.graph())
      return Callee(name, part.type(), part.graph());
    if (part.flow()) {
      std::vector<Problem> within;
      auto graph =
          assemble_graph(*part.flow(), spec_ == nullptr ? nullptr : &spec, within, levels_ + 1);
      for (Problem& problem : within) {
        problem.message = "in " + quote_text(node.id) + ": " + problem.message;
        problems_.push_back(std::move(problem));
      }
      if (graph == nullptr)
        return std::nullopt;
      return Callee(name, part.type(), std::move(graph));
    }
    if (part.build_flow())
      return make_built(place, part, name, spec);
    try {
      // Plugins' code: its exceptions become problems of this step, and the other steps are still
      // checked.
      Callee callee(name, part.type(), part.make()(spec), part.module());
      expect_numbers(callee, spec.inputs);
      return callee;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      complain(node.step, cannot_take(place, words_in_flight()));
      return std::nullopt;
    }
  }

  /// Indices mean nothing to a layer that computes with numbers. A module of libtorch's says itself
  /// what it cannot take.
  static void expect_numbers(const Callee& callee, std::span<const TensorSpec> inputs) {
    if (callee.is_adapted())
      return;
    const auto* takes = callee.ability<TakesIndices>();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_absent() || !c10::isIntegralType(inputs[i].dtype, /*includeBool=*/true) ||
          (takes != nullptr && takes->takes_indices(i)))
        continue;
      if (inputs[i].dtype == c10::ScalarType::Long) {
        throw DataError(
            "it computes with numbers, but " + inputs[i].text() +
            " are indices of tokens or categories; put {\"use\": \"embedding\"} in front, "
            "or add {\"use\": \"one_hot\"} to transforms");
      }
      throw DataError("it computes with floating-point numbers, but is given " + inputs[i].text());
    }
  }

  /// What a builder builds for such inputs. Its mistakes stand at the step that named it.
  std::optional<Callee> make_built(std::size_t place, const Part& part, const std::string& name,
                                   const LayerSpec& spec) {
    const WantedNode& node = wanted(place);
    std::shared_ptr<const FlowBuilder> flow;
    try {
      flow = part.build_flow()(spec);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      complain(node.step, cannot_take(place, words_in_flight()));
      return std::nullopt;
    }
    // Builders may name each other without end. Flows in a document are measured before anything is
    // built; a builder's flow is known only now.
    if (is_too_deep(*flow, levels_ + 1)) {
      complain(node.step, "in " + quote_text(node.id) + ", built by " + part.origin() + ": " +
                              too_deep_text());
      return std::nullopt;
    }
    std::vector<Problem> within;
    auto graph = assemble_graph(*flow, &spec, within, levels_ + 1);
    for (const Problem& problem : within) {
      complain(node.step, "in " + quote_text(node.id) + ", built by " + part.origin() + ": " +
                              (problem.pointer.empty() ? "" : problem.pointer + ": ") +
                              problem.message);
    }
    if (graph == nullptr)
      return std::nullopt;
    graph->set_built_from(std::move(flow));
    return Callee(name, part.type(), std::move(graph));
  }

  /// "dense_1" (dense) cannot take [B, 4] from "dense_0": …
  std::string cannot_take(std::size_t place, const std::string& why) const {
    const NodeInfo& info = impl_->nodes[place];
    std::string given;
    for (const NodeInput& input : info.inputs) {
      const NodeInfo& producer = impl_->nodes[input.node];
      given += (given.empty() ? "" : " and ") +
               (producer.result ? producer.result->text() : "what comes") + " from " +
               quote_text(producer.id);
    }
    return quote_text(info.id) + (info.type == info.id ? "" : " (" + info.type + ")") +
           " cannot take " + given + ": " + why;
  }

  /// References arrive as the callee names them. False, with a problem said, when they do not fit.
  bool order_references(std::size_t place, const Callee& callee) {
    // A builder has seen them in the order of "using", and does not know what they are called.
    if (wanted(place).parts.front().build_flow())
      return true;
    std::vector<std::string> names = callee.reference_names();
    NodeInfo& info = impl_->nodes[place];
    const bool names_them =
        callee.graph() != nullptr || callee.ability<NamesReferences>() != nullptr;
    if (!names_them)
      return true;
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
        complain(wanted(place).step, quote_text(info.id) + " requires " + quote_text(name) +
                                         ", which \"using\" does not give it");
        return false;
      }
      info.inputs.push_back(*found);
      given.erase(found);
    }
    if (!given.empty()) {
      const std::string extra = given.front().port.substr(4);
      complain(wanted(place).step,
               quote_text(info.id) + " is given " + quote_text(extra) + ", but expects " +
                   (names.empty() ? "no references" : "only " + joined(names, ", ")) +
                   did_you_mean(extra, names));
      return false;
    }
    return true;
  }

  /// The names of its outputs that have tags, whose places are noted. Nothing, with a problem said,
  /// where it has no such output.
  std::optional<std::vector<std::string>> further_outputs(std::size_t place, const Callee& callee) {
    std::vector<std::string> further;
    const std::vector<std::string> names = callee.output_names();
    for (const auto& edge :
         boost::make_iterator_range(boost::out_edges(order_[place], wired_.description))) {
      const Vertex target = boost::target(edge, wired_.description);
      const WantedNode& output = wired_.description[target];
      if (output.kind != NodeKind::kOutput)
        continue;
      const std::string& name = wired_.description[edge].port;
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        const std::string& id = wanted(place).id;
        complain(output.step, quote_text(id) + " (" + wanted(place).type + ") has no output " +
                                  quote_text(name) +
                                  (names.empty() ? "; its one output is \"output\""
                                                 : ", but output, " + joined(names, ", ")) +
                                  did_you_mean(name, names));
        return std::nullopt;
      }
      further.push_back(name);
      impl_->places[place].further.push_back(place_of_[target]);
    }
    return further;
  }

  /// Whether a switch can do with its router and its branches. False, with a problem said.
  bool fits_switch(std::size_t place, const std::vector<Callee>& callees) {
    const WantedNode& node = wanted(place);
    if (node.kind == NodeKind::kMixture)
      return fits_sparse_mixture(node, callees);
    if (node.kind != NodeKind::kSwitch)
      return true;
    const bool by_row = node.step->switch_by == SwitchBy::kRow;
    const auto branches = static_cast<std::int64_t>(callees.size()) - 1;
    const auto* router = callees.front().ability<Selector>();
    const std::int64_t last = router == nullptr ? branches - 1 : router->last();
    if (router != nullptr &&
        (last >= branches || (router->first() != last && last + 1 < branches))) {
      const std::string chosen = router->first() == last ? "branch " + std::to_string(last)
                                                         : "branches 0 to " + std::to_string(last);
      complain(node.step, quote_text(node.id) + ": the router " + quote_text(callees[0].type()) +
                              " chooses " + chosen + ", but the switch has branches 0 to " +
                              std::to_string(branches - 1));
      return false;
    }
    if (router != nullptr && router->chooses_by_row() != by_row) {
      complain(node.step, quote_text(node.id) + ": the switch goes by " +
                              (by_row ? "row" : "batch") + ", but its router " +
                              quote_text(callees[0].type()) + " chooses " +
                              (by_row ? "once for the whole batch" : "for each row") +
                              "; set both to the same");
      return false;
    }
    // Row i of a state belongs to row i of the batch; a branch of a switch by row gets other rows
    // in every forward.
    for (std::size_t i = 1; i < callees.size() && by_row; ++i) {
      if (!callees[i].keeps_state())
        continue;
      complain(node.step, quote_text(node.id) + ": branch " + std::to_string(i - 1) +
                              " has a state, but a switch by row gives it other rows in every "
                              "forward; switch by batch, or let the state stand in front of the "
                              "switch or behind it");
      return false;
    }
    return true;
  }

  /// Row i of a state belongs to row i of the batch, and an expert gets others in every forward.
  bool fits_sparse_mixture(const WantedNode& node, const std::vector<Callee>& callees) {
    for (std::size_t i = 1; i < callees.size(); ++i) {
      if (!callees[i].keeps_state())
        continue;
      complain(node.step, quote_text(node.id) + ": expert " + std::to_string(i - 1) +
                              " has a state, but a sparse mixture gives it other rows in every "
                              "forward; leave \"sparse\" out");
      return false;
    }
    return true;
  }

  void find_result(std::size_t place) {
    if (spec_ == nullptr)
      return;
    NodeInfo& info = impl_->nodes[place];
    const auto specs = specs_of(info.inputs);
    if (!specs || !takes_these(place, *specs))
      return;
    try {
      const std::vector<TensorSpec> results = impl_->places[place].node->results(*specs);
      info.result = results.front();
      for (std::size_t i = 1; i < results.size(); ++i)
        impl_->nodes[impl_->places[place].further[i - 1]].result = results[i];
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      complain(wanted(place).step, cannot_take(place, words_in_flight()));
    }
  }

  bool takes_these(std::size_t place, const std::vector<TensorSpec>& specs) {
    // A graph within has been checked with absent inputs itself.
    const Callee& callee = impl_->places[place].node->main();
    if (callee.graph() || callee.ability<TakesAbsent>() != nullptr)
      return true;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (!specs[i].is_absent())
        continue;
      const NodeInput& input = impl_->nodes[place].inputs[i];
      complain(wanted(place).step,
               quote_text(impl_->nodes[place].id) + " uses the state " +
                   quote_text(wanted(input.node).state_tag) +
                   ", which is absent in the first forward; give it an initial value, or a layer "
                   "that takes absence in front");
      return false;
    }
    return true;
  }

  /// In the first forward states are absent; in the next they are what was written. Both must fit.
  void check_states() {
    if (spec_ == nullptr)
      return;
    for (StateSlot& slot : impl_->states) {
      const TensorSpec written = *impl_->nodes[slot.written].result;
      if (slot.has_initial && written != *impl_->nodes[slot.read].result) {
        complain(nullptr, "the state " + quote_text(slot.tag) + " is " +
                              impl_->nodes[slot.read].result->text() + " at first, but " +
                              quote_text(impl_->nodes[slot.written].id) + " makes it " +
                              written.text());
        continue;
      }
      // A state of rows follows the batch: begin_states() cuts it where a batch is smaller.
      slot.has_rows = !written.sizes.empty() && written.sizes.front() == TensorSpec::kVaries;
      impl_->nodes[slot.read].result = written;
    }
    for (std::size_t place = 0; place < impl_->places.size(); ++place) {
      const NodeInfo& info = impl_->nodes[place];
      const bool reads_state =
          std::any_of(info.inputs.begin(), info.inputs.end(), [&](const NodeInput& input) {
            return impl_->nodes[input.node].kind == NodeKind::kState;
          });
      if (!reads_state || impl_->places[place].node == nullptr)
        continue;
      std::vector<std::size_t> outputs{place};
      outputs.insert(outputs.end(), impl_->places[place].further.begin(),
                     impl_->places[place].further.end());
      std::vector<TensorSpec> first;
      for (const std::size_t output : outputs)
        first.push_back(*impl_->nodes[output].result);
      // Equal sizes end the search: nothing behind this place can differ then. So one pass over the
      // direct readers is enough.
      find_result(place);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const NodeInfo& output = impl_->nodes[outputs[i]];
        if (*output.result == first[i])
          continue;
        complain(wanted(place).step, quote_text(output.id) + " gives " + first[i].text() +
                                         " in the first forward and " + output.result->text() +
                                         " in the next, when its state is there");
      }
    }
  }

  void describe_outputs() {
    for (const Vertex output : wired_.outputs)
      impl_->outputs.push_back(place_of_[output]);
    for (const auto& [group, tags] : wired_.groups)
      impl_->groups.emplace_back(group, tags);
  }

  void plan_branches() {
    // Nested graphs have their own groups already; they are only told whether they are repeated.
    tell_of_shared_parameters();
    impl_->groups_of_branches = find_branch_groups(*impl_);
    if (impl_->groups_of_branches.empty())
      return;
    impl_->parameters.resize(impl_->places.size());
    for (std::size_t i = 0; i < impl_->groups_of_branches.size(); ++i) {
      for (const std::size_t place : impl_->groups_of_branches[i].places) {
        impl_->places[place].group = i;
        impl_->parameters[place] = impl_->places[place].node->parameters();
      }
    }
  }

  /// Marks nested graphs whose weights are used elsewhere as well, which they cannot see
  /// themselves: gradients then meet outside, and branches within must add up in the order of one
  /// by one.
  void tell_of_shared_parameters() {
    std::map<const void*, const Callee*> owners;
    for (const Place& place : impl_->places) {
      if (place.node == nullptr)
        continue;
      for (const Callee& callee : place.node->callees()) {
        for (const at::Tensor& parameter : distinct_parameters(*callee.module())) {
          const auto [owner, is_new] = owners.emplace(parameter.unsafeGetTensorImpl(), &callee);
          if (is_new)
            continue;
          tell_repeated(*owner->second);
          tell_repeated(callee);
        }
      }
    }
  }

  /// Finds inputs whose value has several users. Tags, outputs and states are users, too. A place
  /// that reads one value twice is one user.
  void find_shared() {
    std::vector<std::size_t> users(impl_->places.size());
    for (std::size_t place = 0; place < impl_->places.size(); ++place) {
      if (impl_->places[place].tag_slot)
        ++users[place];
      const std::vector<std::size_t>& inputs = impl_->places[place].inputs;
      for (auto input = inputs.begin(); input != inputs.end(); ++input) {
        if (std::find(inputs.begin(), input, *input) == input)
          ++users[*input];
      }
    }
    for (const std::size_t output : impl_->outputs)
      ++users[output];
    for (const StateSlot& slot : impl_->states)
      ++users[slot.written];
    for (Place& place : impl_->places) {
      for (const std::size_t input : place.inputs)
        place.is_shared.push_back(users[input] > 1);
    }
  }

  /// Outputs and states are never freed during a forward.
  void plan_releases() {
    std::vector<std::optional<std::size_t>> last_use(impl_->places.size());
    for (std::size_t place = 0; place < impl_->places.size(); ++place) {
      // A value that nobody uses is freed at once.
      last_use[place] = place;
      for (const std::size_t input : impl_->places[place].inputs)
        last_use[input] = place;
    }
    for (const std::size_t output : impl_->outputs)
      last_use[output].reset();
    for (const StateSlot& slot : impl_->states)
      last_use[slot.written].reset();
    for (std::size_t place = 0; place < impl_->places.size(); ++place) {
      if (last_use[place])
        impl_->places[*last_use[place]].done.push_back(place);
    }
  }

  const Wired& wired_;
  const FlowBuilder& flow_;
  const LayerSpec* spec_;
  std::vector<Problem>& problems_;
  const std::size_t levels_;  // of flows that this one stands in, it included
  std::unique_ptr<Graph::Impl> impl_;
  std::vector<Vertex> order_;
  std::vector<std::size_t> place_of_;  // of vertices
};

}  // namespace

std::shared_ptr<Graph> assemble_graph(const FlowBuilder& flow, const LayerSpec* spec,
                                      std::vector<Problem>& problems, std::size_t levels) {
  Wired wired = wire(flow);
  const bool is_wired = wired.problems.empty();
  std::move(wired.problems.begin(), wired.problems.end(), std::back_inserter(problems));
  // Sizes are checked even then, as far as they go: all mistakes at once.
  auto graph = Assembly(wired, flow, spec, problems, levels).assemble();
  return is_wired ? graph : nullptr;
}

std::shared_ptr<Graph> assemble_graph(const FlowBuilder& flow, const LayerSpec* spec) {
  std::vector<Problem> problems;
  if (is_too_deep(flow, 1)) {
    problems.push_back(problem_of(flow, nullptr, too_deep_text()));
    throw DocumentError(std::move(problems));
  }
  auto graph = assemble_graph(flow, spec, problems, 1);
  if (!problems.empty()) {
    // In the order of the text: structure and sizes are looked at one after the other.
    std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
      return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    throw DocumentError(std::move(problems));
  }
  return graph;
}

}  // namespace treadle::graph
