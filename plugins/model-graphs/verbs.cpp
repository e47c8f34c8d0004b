#include "verbs.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/ready_parts.h>

namespace treadle::model_graphs {

const PluginRegistry& registry_of(const ComponentContext& context) {
  TREADLE_EXPECTS(context.registry != nullptr, "what has a flow is made by a registry");
  return *context.registry;
}

namespace {

using graph::FlowBuilder;
using graph::Part;

Part read_body(const Config& config, const ComponentContext& context) {
  return graph::read_flow(config, "body", registry_of(context));
}

/// An array of flows.
std::vector<Part> read_flows(const Config& config, const std::string& key,
                             const ComponentContext& context) {
  std::vector<Part> parts;
  const nlohmann::json& flows = config.json().at(key);
  const std::string pointer = child_pointer(config.pointer(), key);
  for (std::size_t i = 0; i < flows.size(); ++i)
    parts.push_back(
        graph::read_steps(config, flows[i], child_pointer(pointer, i), registry_of(context)));
  return parts;
}

std::optional<Part> find_part(const Config& config, std::string_view key,
                              const ComponentContext& context) {
  if (!config.has(key))
    return std::nullopt;
  return graph::read_part(config, key, registry_of(context));
}

struct NamedHalt {
  std::string_view name;
  graph::HaltBy halt_by;
};
constexpr std::array kHalts{
    NamedHalt{"one", graph::HaltBy::kOneElement}, NamedHalt{"first", graph::HaltBy::kFirst},
    NamedHalt{"any", graph::HaltBy::kAny}, NamedHalt{"all", graph::HaltBy::kAll}};

graph::HaltBy halt_by(std::string_view name) {
  const auto found = std::find_if(kHalts.begin(), kHalts.end(),
                                  [&](const NamedHalt& halt) { return halt.name == name; });
  TREADLE_EXPECTS(found != kHalts.end(), "the schema lists the same names");
  return found->halt_by;
}

}  // namespace

std::shared_ptr<Layer> Verb::do_create(const LayerSpec& spec) const {
  FlowBuilder flow;
  add_to(flow);
  return graph::as_layer(flow.build(spec));
}

void* Verb::do_ask(std::string_view interface_id) {
  return interface_id == FlowVerb::kInterface ? static_cast<FlowVerb*>(this) : nullptr;
}

Residual::Residual(const Config& config, const ComponentContext& context)
    : body_(read_body(config, context)), broadcast_(config.get<bool>("broadcast")) {}
void Residual::add_to(FlowBuilder& flow) const {
  flow.residual(body_, broadcast_);
}

Recompute::Recompute(const Config& config, const ComponentContext& context)
    : body_(graph::recompute(read_body(config, context))) {}
std::shared_ptr<Layer> Recompute::do_create(const LayerSpec& spec) const {
  return body_.make()(spec);
}

At::At(const Config& config) : tags_(config.get<std::vector<std::string>>("tags")) {}
void At::add_to(FlowBuilder& flow) const {
  flow.at(tags_);
}

Flow::Flow(const Config& config, const ComponentContext& context)
    : flow_(graph::read_whole_flow(config, registry_of(context))) {}
void Flow::add_to(FlowBuilder& flow) const {
  flow.through(flow_);
}

Built::Built(const Config& config, const ComponentContext& context)
    : built_(graph::read_built(config, "builder", registry_of(context))) {}
void Built::add_to(FlowBuilder& flow) const {
  flow.through(built_);
}

MixtureOfExperts::MixtureOfExperts(const Config& config, const ComponentContext& context)
    : router_(graph::read_part(config, "router", registry_of(context))),
      experts_(read_flows(config, "experts", context)),
      mixture_{config.get<bool>("pad"), config.get<bool>("sparse")} {}
void MixtureOfExperts::add_to(FlowBuilder& flow) const {
  flow.mixture_of_experts(router_, experts_, mixture_);
}

Input::Input(const Config& config) : names_(config.get<std::vector<std::string>>("names")) {}
void Input::add_to(FlowBuilder& flow) const {
  flow.input(names_);
}

Loop::Loop(const Config& config, const ComponentContext& context)
    : body_(read_body(config, context)),
      times_(config.find<std::int64_t>("times")),
      while_(find_part(config, "while", context)),
      until_(find_part(config, "until", context)),
      adaptive_(find_part(config, "adaptive", context)),
      at_most_(config.get_or<std::int64_t>("at_most", 0)),
      halt_by_(halt_by(config.get_or<std::string>("halt_by", "one"))) {
  const int given = (times_ ? 1 : 0) + (while_ ? 1 : 0) + (until_ ? 1 : 0) + (adaptive_ ? 1 : 0);
  if (given != 1) {
    config.fail("", R"(expected one of "times", "while", "until" and "adaptive", got )" +
                        std::to_string(given) + " of them");
  }
  if (times_ && config.has("at_most")) {
    config.fail(
        "at_most",
        R"(applies only to "while", "until" and "adaptive"; "times" is the number of rounds)");
  }
  if (!times_ && !config.has("at_most")) {
    config.fail("",
                "required key \"at_most\" is missing (the most rounds that \"while\", \"until\" "
                "and \"adaptive\" may take)");
  }
  if (!while_ && !until_ && config.has("halt_by"))
    config.fail("halt_by", R"(applies only to "while" and "until", which have a condition)");
  for (const char* key : {"ponder_cost", "epsilon"}) {
    if (!adaptive_ && config.has(key))
      config.fail(key, R"(applies only to "adaptive" loops, where each row halts by itself)");
  }
  pondering_.cost = config.get_or("ponder_cost", pondering_.cost);
  pondering_.epsilon = config.get_or("epsilon", pondering_.epsilon);
}

void Loop::add_to(FlowBuilder& flow) const {
  FlowBuilder::Loop loop = flow.loop(body_);
  if (times_) {
    loop.times(*times_);
  } else if (while_) {
    loop.while_(*while_, at_most_, halt_by_);
  } else if (adaptive_) {
    loop.adaptively(*adaptive_, at_most_, pondering_);
  } else {
    loop.until(*until_, at_most_, halt_by_);
  }
}

Map::Map(const Config& config, const ComponentContext& context)
    : body_(read_body(config, context)),
      over_(config.find<std::string>("over")),
      slices_(config.find<std::int64_t>("slices")),
      batched_(config.get<bool>("batched")) {
  if (over_ && slices_)
    config.fail("slices", "a map goes \"over\" a tag or over \"slices\" of the stream, not both");
}

void Map::add_to(FlowBuilder& flow) const {
  FlowBuilder::Map map = flow.map(body_);
  if (batched_)
    map.batched();
  if (over_) {
    map.over(*over_);
  } else if (slices_) {
    map.slices(*slices_);
  } else {
    map.each();
  }
}

Merge::Merge(const Config& config, const ComponentContext& context)
    : with_(graph::read_part(config, "with", registry_of(context))) {}
void Merge::add_to(FlowBuilder& flow) const {
  flow.merge(with_);
}

Split::Split(const Config& config, const ComponentContext& context)
    : branches_(read_flows(config, "branches", context)) {}
void Split::add_to(FlowBuilder& flow) const {
  flow.split(branches_);
}

Switch::Switch(const Config& config, const ComponentContext& context)
    : router_(graph::read_part(config, "router", registry_of(context))),
      branches_(read_flows(config, "branches", context)),
      by_(config.get<std::string>("by") == "row" ? graph::SwitchBy::kRow
                                                 : graph::SwitchBy::kBatch) {}
void Switch::add_to(FlowBuilder& flow) const {
  flow.switch_(router_, branches_, by_);
}

TagGroup::TagGroup(const Config& config) : group_(config.get<std::string>("group")) {}
void TagGroup::add_to(FlowBuilder& flow) const {
  flow.tag_group(group_);
}

}  // namespace treadle::model_graphs
