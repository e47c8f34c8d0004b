#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/graph/flow_builder.h>

/// Flows in the form of documents: an array of steps, each of them a layer with the keys of the
/// step.
///
///     [{"use": "dense", "out_features": 16, "tag": "encoded"},
///      {"use": "split", "branches": [["relu"], ["tanh"]]},
///      {"use": "merge", "with": "mean", "using": ["encoded"]}]
///
/// In a component's schema such an array is `"x-treadle-type": "flow"`.
namespace treadle::graph {

/// The flow that stands in `config` under `key`. Throws a DocumentError with every layer that
/// cannot be made.
FlowBuilder read_flow(const Config& config, std::string_view key, const PluginRegistry& registry);

/// The flow of `document`, an array of steps.
FlowBuilder read_steps(const Config& owner, const nlohmann::json& steps, const std::string& pointer,
                       const PluginRegistry& registry);

/// The layer in the slot `key`, as a part.
Part read_part(const Config& config, std::string_view key, const PluginRegistry& registry);

/// The result of the graph builder in the slot `key`, as a part. The registry outlives it.
Part read_built(const Config& config, std::string_view key, const PluginRegistry& registry);

/// The parameters of the model and the layer `flow`: the steps under "flow", and, where there are
/// any, "outputs" and "initial".
FlowBuilder read_whole_flow(const Config& config, const PluginRegistry& registry);

/// The document from which read_whole_flow() reads the same flow. A loop's body or another part
/// that has initial values or outputs of its own is written as one step `flow` in it, which names
/// of parameters then show. Throws a UsageError when a part has no name that a document could use,
/// such as a module from C++.
nlohmann::json write_flow(const FlowBuilder& flow);

}  // namespace treadle::graph
