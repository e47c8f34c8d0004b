#pragma once

#include <treadle/base/config.h>
#include <treadle/core/model/model.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/graph.h>

namespace treadle::model_graphs {

/// The model that a flow says.
class FlowModelProvider final : public ModelProvider {
 public:
  FlowModelProvider(const Config& config, const ComponentContext& context);

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override;

  Config config_;
  graph::FlowBuilder flow_;
  graph::Execution execution_;
  graph::Branches branches_;
  std::vector<graph::LoggedTag> logged_;
};

}  // namespace treadle::model_graphs
