#include "flow_model_provider.h"

#include <treadle/base/error.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/flow_model.h>
#include <treadle/graph/graph.h>

#include "verbs.h"

namespace treadle::model_graphs {
namespace {

/// Each is a tag, or an object that says how, too.
std::vector<graph::LoggedTag> logged_tags(const Config& config) {
  std::vector<graph::LoggedTag> tags;
  if (!config.has("log"))
    return tags;
  for (const nlohmann::json& entry : config.json().at("log")) {
    if (entry.is_string()) {
      tags.push_back({entry.get<std::string>(), std::nullopt});
      continue;
    }
    const Config named(entry);
    const auto reduction = named.find<std::string>("reduction");
    tags.push_back(
        {named.get<std::string>("tag"), reduction ? reduction_named(*reduction) : std::nullopt});
  }
  return tags;
}

}  // namespace

FlowModelProvider::FlowModelProvider(const Config& config, const ComponentContext& context)
    : config_(config),
      flow_(graph::read_whole_flow(config, registry_of(context))),
      execution_(graph::execution_named(config.get<std::string>("execution"))),
      branches_(graph::branches_named(config.get<std::string>("branches"))),
      logged_(logged_tags(config)) {}

std::shared_ptr<Model> FlowModelProvider::do_create(const ModelSpec& spec) const {
  std::shared_ptr<graph::Graph> model = graph::build_model(flow_, spec);
  model->set_branches(branches_);
  model->set_execution(execution_);
  try {
    model->set_logged_tags(logged_);
  } catch (const UsageError& error) {
    config_.fail("log", error.what());
  }
  return model;
}

}  // namespace treadle::model_graphs
