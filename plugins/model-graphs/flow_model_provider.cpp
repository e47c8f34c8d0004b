#include "flow_model_provider.h"

#include <treadle/base/error.h>
#include <treadle/core/plugin_registry.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/flow_model.h>
#include <treadle/graph/graph.h>

namespace treadle::model_graphs {

graph::FlowBuilder read_whole_flow(const Config& config, const ComponentContext& context) {
  TREADLE_EXPECTS(context.registry != nullptr,
                  "a flow is made by a registry, which knows its layers");
  graph::FlowBuilder flow = graph::read_flow(config, "flow", *context.registry);
  if (config.has("outputs"))
    flow.outputs(config.get<std::vector<std::string>>("outputs"));
  if (config.has("initial")) {
    for (const Config& state : config.children("initial")) {
      flow.initial(state.get<std::string>("state"), state.get<std::vector<std::int64_t>>("shape"),
                   state.get<double>("fill"));
    }
  }
  return flow;
}

FlowModelProvider::FlowModelProvider(const Config& config, const ComponentContext& context)
    : flow_(read_whole_flow(config, context)),
      execution_(config.get<std::string>("execution") == "compiled"
                     ? graph::Execution::kCompiled
                     : graph::Execution::kDynamic) {}

std::shared_ptr<Model> FlowModelProvider::do_create(const ModelSpec& spec) const {
  auto model = graph::build_model(flow_, spec);
  model->set_execution(execution_);
  return model;
}

}  // namespace treadle::model_graphs
