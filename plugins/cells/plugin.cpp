#include <treadle/plugin.h>

#include "darts.h"
#include "made.h"
#include "mixing.h"
#include "networks.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::cells;
  registrar.add<Cell, treadle::GraphBuilder>("cell");
  registrar.add<CellNetwork, treadle::GraphBuilder>("cell_network");
  registrar.add<Made<OperationWeights>, treadle::LayerFactory>("operation_weights");
  registrar.add<Made<WeightedSum>, treadle::LayerFactory>("weighted_sum");
  registrar.add<Made<Zero>, treadle::LayerFactory>("zero");
  registrar.add<DartsTraining, treadle::TrainingWorkflow>("darts");
}
