#include <treadle/plugin.h>

#include "flow_model_provider.h"
#include "ready_layers.h"
#include "verbs.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::model_graphs;
  registrar.add<FlowModelProvider, treadle::ModelProvider>("flow");

  registrar.add<Also, treadle::LayerFactory>("also");
  registrar.add<At, treadle::LayerFactory>("at");
  registrar.add<Flow, treadle::LayerFactory>("flow");
  registrar.add<Gate, treadle::LayerFactory>("gate");
  registrar.add<Input, treadle::LayerFactory>("input");
  registrar.add<Loop, treadle::LayerFactory>("loop");
  registrar.add<Map, treadle::LayerFactory>("map");
  registrar.add<Merge, treadle::LayerFactory>("merge");
  registrar.add<Split, treadle::LayerFactory>("split");
  registrar.add<Switch, treadle::LayerFactory>("switch");
  registrar.add<TagGroup, treadle::LayerFactory>("tag_group");

  add_ready_layers(registrar);
}
