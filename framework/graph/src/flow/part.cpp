#include <treadle/graph/part.h>

#include <algorithm>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/flow_nodes.h>
#include <treadle/graph/graph.h>

#include "flow/flow_step.h"

// Parts are of four kinds: a module or layer that exists (module_, and make_ returns it), a built
// graph, a flow that is assembled where it is used, and a layer or flow that is made when the sizes
// of its inputs are known (make_, build_flow_).

namespace treadle::graph {
namespace {

/// "torch::nn::LinearImpl" is spoken of as Linear.
std::string spoken_type(const torch::nn::Module& module) {
  std::string name = module.name();
  if (const std::size_t colons = name.rfind("::"); colons != std::string::npos)
    name.erase(0, colons + 2);
  constexpr std::string_view kImplementation = "Impl";
  if (name.size() > kImplementation.size() && name.ends_with(kImplementation))
    name.resize(name.size() - kImplementation.size());
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; }, '_');
  return name;
}

/// The part that a flow consists of when it says nothing else.
const Part* only_part(const FlowBuilder& flow) {
  if (flow.steps().size() != 1 || !flow.initial_states().empty() || !flow.output_tags().empty())
    return nullptr;
  const FlowStep& step = flow.steps().front();
  const bool is_plain = step.verb == Verb::kThrough && step.name.empty() && step.tags.empty() &&
                        step.output_tags.empty() && step.references.empty() && !step.frozen &&
                        step.enabled;
  return is_plain ? &step.parts.front() : nullptr;
}

}  // namespace

bool is_single_part(const FlowBuilder& flow) {
  return only_part(flow) != nullptr;
}

Part::Part(std::string type, Make make, nlohmann::json parameters)
    : type_(std::move(type)), parameters_(std::move(parameters)), make_(std::move(make)) {
  TREADLE_EXPECTS(make_ != nullptr, "a part is made by something");
}

Part::Part(std::string type, BuildFlow build, std::string origin, nlohmann::json parameters)
    : type_(std::move(type)),
      parameters_(std::move(parameters)),
      build_flow_(std::move(build)),
      origin_(std::move(origin)) {
  TREADLE_EXPECTS(build_flow_ != nullptr, "a part is built by something");
}

Part::Part(const FlowBuilder& flow) : type_("flow") {
  if (const Part* only = only_part(flow)) {
    *this = *only;
  } else {
    flow_ = std::make_shared<const FlowBuilder>(flow);
  }
}

Part::Part(std::shared_ptr<Graph> graph)
    : type_("graph"), module_(graph), graph_(std::move(graph)) {
  TREADLE_EXPECTS(graph_ != nullptr, "a part needs a graph");
}

Part::Part(std::shared_ptr<Layer> layer, const std::shared_ptr<torch::nn::Module>& module)
    : type_(spoken_type(*module)),
      make_([layer = std::move(layer)](const LayerSpec&) { return layer; }),
      module_(module) {}

Part layer(std::shared_ptr<const LayerFactory> factory, std::string type,
           nlohmann::json parameters) {
  if (const auto* verb = factory->ask<FlowVerb>()) {
    FlowBuilder flow;
    verb->add_to(flow);
    return flow;
  }
  return Part(
      std::move(type),
      [factory = std::move(factory)](const LayerSpec& spec) {
        if (spec.inputs.empty())
          throw DataError("it is made for inputs of known sizes; build the flow with them");
        return factory->create(spec);
      },
      std::move(parameters));
}

Part layer(const PluginRegistry& registry, std::string_view name, nlohmann::json parameters) {
  std::shared_ptr<const LayerFactory> factory =
      registry.make<LayerFactory>(name, Config(parameters));
  return layer(std::move(factory), std::string(name.substr(name.rfind('/') + 1)),
               std::move(parameters));
}

}  // namespace treadle::graph
