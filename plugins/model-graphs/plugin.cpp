#include <treadle/plugin.h>

#include "builders.h"
#include "flow_model_provider.h"
#include "ready_layers.h"
#include "verbs.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::model_graphs;
  registrar.add<FlowModelProvider, treadle::ModelProvider>("flow");

  registrar.add<Residual, treadle::LayerFactory>("residual");
  registrar.add<At, treadle::LayerFactory>("at");
  registrar.add<Flow, treadle::LayerFactory>("flow");
  registrar.add<Recompute, treadle::LayerFactory>("recompute");
  registrar.add<MixtureOfExperts, treadle::LayerFactory>("mixture_of_experts");
  registrar.add<Built, treadle::LayerFactory>("graph");
  registrar.add<Input, treadle::LayerFactory>("input");
  registrar.add<Loop, treadle::LayerFactory>("loop");
  registrar.add<Map, treadle::LayerFactory>("map");
  registrar.add<Merge, treadle::LayerFactory>("merge");
  registrar.add<Split, treadle::LayerFactory>("split");
  registrar.add<Switch, treadle::LayerFactory>("switch");
  registrar.add<TagGroup, treadle::LayerFactory>("tag_group");

  registrar.add<ResidualMlp, treadle::GraphBuilder>("residual_mlp");
  registrar.add<Grid, treadle::GraphBuilder>("grid");
  registrar.add<ConvNet, treadle::GraphBuilder>("conv_net");

  add_ready_layers(registrar);
}
