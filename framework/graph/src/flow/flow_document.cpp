#include <treadle/graph/flow_document.h>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/schema.h>
#include <treadle/core/model/graph_builder.h>
#include <treadle/graph/graph.h>

#include "flow/flow_step.h"

// Flows in documents, read into a FlowBuilder and written back. A step is a layer or, where its
// factory offers FlowVerb, a verb; both come from the registry, so there is no list of verbs here.
// Written flows read back to the same flow.

namespace treadle::graph {
namespace {

using nlohmann::json;

/// The slot that a step of a flow is.
const json& step_slot() {
  static const json slot = expanded_schema({{"x-treadle-type", "flow"}}).at("items");
  return slot;
}

/// A layer's name alone stands for a step that says nothing else.
Config step_at(const Config& owner, const json& step, std::string pointer) {
  if (step.is_string())
    return Config({{"use", step}}, std::move(pointer), owner.places());
  if (!step.is_object()) {
    Problem problem;
    problem.pointer = std::move(pointer);
    problem.message =
        "expected the name of a layer or an object with \"use\", got " + describe_value(step);
    throw DocumentError({std::move(problem)});
  }
  return Config(step, std::move(pointer), owner.places());
}

/// A name, or one for each output of the step's layer.
void read_tags(FlowBuilder& flow, const Config& step) {
  const auto tag = step.json().find("tag");
  if (tag == step.json().end())
    return;
  if (tag->is_string()) {
    flow.tag(tag->get<std::string>());
    return;
  }
  for (const auto& [output, name] : tag->items())
    flow.tag_output(output, name.get<std::string>());
}

void read_step(FlowBuilder& flow, const Config& step, const PluginRegistry& registry) {
  json parameters = component_parameters(step.json(), step_slot());
  const auto name = step.get<std::string>("use");
  const Config own(parameters, step.pointer(), step.places());
  std::shared_ptr<const LayerFactory> factory = registry.make<LayerFactory>(name, own);
  flow.written_at(step);
  if (const auto* verb = factory->ask<FlowVerb>()) {
    verb->add_to(flow);
  } else {
    flow.through(
        layer(std::move(factory), name.substr(name.rfind('/') + 1), std::move(parameters)));
  }
  if (const auto node = step.find<std::string>("name"))
    flow.named(*node);
  if (const auto tags = step.find<std::vector<std::string>>("using"))
    flow.using_(*tags);
  read_tags(flow, step);
  if (step.get_or("frozen", false))
    flow.frozen();
  if (!step.get_or("enabled", true))
    flow.disabled();
}

json said_of(const FlowStep& step, json written) {
  if (!step.name.empty())
    written["name"] = step.name;
  if (!step.references.empty())
    written["using"] = step.references;
  if (step.frozen)
    written["frozen"] = true;
  if (!step.enabled)
    written["enabled"] = false;
  if (!step.output_tags.empty()) {
    json& tags = written["tag"];
    if (!step.tags.empty())
      tags[std::string(kDefaultOutput)] = step.tags.front();
    for (const auto& [output, tag] : step.output_tags) {
      if (tags.contains(output)) {
        throw UsageError("the output " + quote_text(output) + " has the tags " +
                         tags[output].dump() + " and " + quote_text(tag) +
                         "; a document can give it one");
      }
      tags[output] = tag;
    }
  } else if (!step.tags.empty()) {
    written["tag"] = step.tags.front();
  }
  return written;
}

json write_slot(const Part& part) {
  if (part.flow()) {
    json written = write_flow(*part.flow());
    written["use"] = "flow";
    return written;
  }
  if (part.parameters().is_null()) {
    throw UsageError("\"" + part.type() + "\" is a module from C++, which no document can name");
  }
  json written = part.parameters();
  if (!written.contains("use"))
    written["use"] = part.type();
  return written;
}

/// What comes in beside the stream.
std::vector<std::string> ports_of(const FlowBuilder& flow) {
  std::vector<std::string> ports;
  for (const FlowStep& step : flow.steps()) {
    if (step.verb == Verb::kInput)
      ports.insert(ports.end(), step.words.begin(), step.words.end());
  }
  return ports;
}

/// A part where a document has an array of steps.
json write_steps(const Part& part) {
  json written = write_slot(part);
  if (!part.flow())
    return json::array({std::move(written)});
  if (!written.contains("outputs") && !written.contains("initial"))
    return std::move(written["flow"]);
  json steps = json::array();
  if (const std::vector<std::string> ports = ports_of(*part.flow()); !ports.empty()) {
    steps.push_back({{"use", "input"}, {"names", ports}});
    written["using"] = ports;
  }
  steps.push_back(std::move(written));
  return steps;
}

json write_all_steps(const std::vector<Part>& parts, std::size_t first) {
  json written = json::array();
  for (std::size_t i = first; i < parts.size(); ++i)
    written.push_back(write_steps(parts[i]));
  return written;
}

constexpr std::array<const char*, 4> kHaltWords{"one", "first", "any", "all"};

json write_loop(const FlowStep& step) {
  json written{{"use", "loop"}, {"body", write_steps(step.parts[0])}};
  if (step.loop == LoopKind::kTimes) {
    written["times"] = step.rounds;
    return written;
  }
  if (step.loop == LoopKind::kAdaptive) {
    written["adaptive"] = write_slot(step.parts.at(1));
    written["at_most"] = step.rounds;
    written["epsilon"] = step.pondering.epsilon;
    written["ponder_cost"] = step.pondering.cost;
    return written;
  }
  written[step.loop == LoopKind::kWhile ? "while" : "until"] = write_slot(step.parts.at(1));
  written["at_most"] = step.rounds;
  written["halt_by"] = kHaltWords.at(static_cast<std::size_t>(step.halt_by));
  return written;
}

json write_map(const FlowStep& step) {
  json written{{"use", "map"}, {"body", write_steps(step.parts[0])}};
  if (step.map == MapKind::kOver)
    written["over"] = step.over;
  if (step.map == MapKind::kSlices)
    written["slices"] = step.slices;
  if (step.batched)
    written["batched"] = true;
  return written;
}

const std::map<Verb, std::function<json(const FlowStep&)>> kWriters{
    {Verb::kStart,
     [](const FlowStep&) {
       return json{{"use", "identity"}};
     }},
    {Verb::kThrough, [](const FlowStep& step) { return write_slot(step.parts[0]); }},
    {Verb::kResidual,
     [](const FlowStep& step) {
       json written{{"use", "residual"}, {"body", write_steps(step.parts[0])}};
       if (step.broadcast)
         written["broadcast"] = true;
       return written;
     }},
    {Verb::kSplit,
     [](const FlowStep& step) {
       return json{{"use", "split"}, {"branches", write_all_steps(step.parts, 0)}};
     }},
    {Verb::kMerge,
     [](const FlowStep& step) {
       return json{{"use", "merge"}, {"with", write_slot(step.parts[0])}};
     }},
    {Verb::kTagGroup,
     [](const FlowStep& step) {
       return json{{"use", "tag_group"}, {"group", step.words[0]}};
     }},
    {Verb::kInput,
     [](const FlowStep& step) {
       return json{{"use", "input"}, {"names", step.words}};
     }},
    {Verb::kAt,
     [](const FlowStep& step) {
       return json{{"use", "at"}, {"tags", step.words}};
     }},
    {Verb::kMixtureOfExperts,
     [](const FlowStep& step) {
       json written{{"use", "mixture_of_experts"},
                    {"router", write_slot(step.parts[0])},
                    {"experts", write_all_steps(step.parts, 1)}};
       if (step.mixture.pad)
         written["pad"] = true;
       if (step.mixture.sparse)
         written["sparse"] = true;
       return written;
     }},
    {Verb::kSwitch,
     [](const FlowStep& step) {
       return json{{"use", "switch"},
                   {"router", write_slot(step.parts[0])},
                   {"branches", write_all_steps(step.parts, 1)},
                   {"by", step.switch_by == SwitchBy::kRow ? "row" : "batch"}};
     }},
    {Verb::kLoop, write_loop},
    {Verb::kMap, write_map},
};

}  // namespace

FlowBuilder read_steps(const Config& owner, const json& steps, const std::string& pointer,
                       const PluginRegistry& registry) {
  FlowBuilder flow;
  flow.read_from(Config(json::object(), pointer, owner.places()));
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    try {
      read_step(flow, step_at(owner, steps[i], child_pointer(pointer, i)), registry);
    } catch (const DocumentError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!problems.empty())
    throw DocumentError(std::move(problems));
  return flow;
}

FlowBuilder read_flow(const Config& config, std::string_view key, const PluginRegistry& registry) {
  return read_steps(config, config.json().at(std::string(key)),
                    child_pointer(config.pointer(), key), registry);
}

namespace {

/// Tags, or names with the tag of each.
void read_outputs(FlowBuilder& flow, const Config& config) {
  const json& written = config.json().at("outputs");
  if (written.is_array()) {
    flow.outputs(config.get<std::vector<std::string>>("outputs"));
    return;
  }
  std::vector<std::string> names;
  std::vector<std::string> tags;
  for (const auto& [name, tag] : written.items()) {
    names.push_back(name);
    tags.push_back(tag.get<std::string>());
  }
  flow.outputs(std::move(names), std::move(tags));
}

}  // namespace

FlowBuilder read_whole_flow(const Config& config, const PluginRegistry& registry) {
  FlowBuilder flow = read_flow(config, "flow", registry);
  if (config.has("outputs"))
    read_outputs(flow, config);
  if (config.has("initial")) {
    for (const Config& state : config.children("initial")) {
      flow.initial(state.get<std::string>("state"), state.get<std::vector<std::int64_t>>("shape"),
                   state.get_or("fill", 0.0));
    }
  }
  return flow;
}

Part read_part(const Config& config, std::string_view key, const PluginRegistry& registry) {
  NestedComponent nested = nested_component(config, key);
  std::shared_ptr<const LayerFactory> factory =
      registry.make<LayerFactory>(nested.name, nested.parameters);
  std::string type = nested.name.substr(nested.name.rfind('/') + 1);
  return layer(std::move(factory), std::move(type), nested.parameters.json());
}

Part built(std::shared_ptr<const GraphBuilder> builder, std::string type, json parameters,
           const PluginRegistry& registry) {
  const std::string origin =
      builder->origin().empty() ? "graph " + quote_text(type) : builder->origin();
  parameters["use"] = type;
  json written{{"use", "graph"}, {"builder", std::move(parameters)}};
  Part::BuildFlow build = [builder = std::move(builder), origin,
                           &registry](const LayerSpec& spec) -> std::shared_ptr<const FlowBuilder> {
    if (spec.inputs.empty())
      throw DataError("it is built for inputs of known sizes; build the flow with them");
    const json steps = builder->build(spec);
    try {
      return std::make_shared<const FlowBuilder>(read_steps(Config(), steps, "", registry));
    } catch (const Error& error) {
      throw PluginError("what " + origin + " built is wrong: " + error.what());
    }
  };
  std::string word = type.substr(type.rfind('/') + 1);
  return Part(std::move(word), std::move(build), origin, std::move(written));
}

Part built(const PluginRegistry& registry, std::string_view name, json parameters) {
  std::shared_ptr<const GraphBuilder> builder =
      registry.make<GraphBuilder>(name, Config(parameters));
  return built(std::move(builder), std::string(name), std::move(parameters), registry);
}

Part read_built(const Config& config, std::string_view key, const PluginRegistry& registry) {
  NestedComponent nested = nested_component(config, key);
  std::shared_ptr<const GraphBuilder> builder =
      registry.make<GraphBuilder>(nested.name, nested.parameters);
  return built(std::move(builder), nested.name, nested.parameters.json(), registry);
}

json write_flow(const FlowBuilder& flow) {
  json steps = json::array();
  for (const FlowStep& step : flow.steps()) {
    steps.push_back(said_of(step, kWriters.at(step.verb)(step)));
    // A document's step has one tag; others stand at steps that do nothing else.
    for (std::size_t i = 1; i < step.tags.size(); ++i)
      steps.push_back({{"use", "identity"}, {"tag", step.tags[i]}});
  }
  json written = {{"flow", std::move(steps)}};
  if (!flow.output_names().empty()) {
    for (std::size_t i = 0; i < flow.output_names().size(); ++i)
      written["outputs"][flow.output_names()[i]] = flow.output_tags()[i];
  } else if (!flow.output_tags().empty()) {
    written["outputs"] = flow.output_tags();
  }
  for (const InitialState& state : flow.initial_states())
    written["initial"].push_back(
        {{"state", state.tag}, {"shape", state.shape}, {"fill", state.fill}});
  return written;
}

}  // namespace treadle::graph
