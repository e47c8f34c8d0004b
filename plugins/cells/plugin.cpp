#include <treadle/core/model/factory_of.h>
#include <treadle/plugin.h>

#include "darts.h"
#include "mixing.h"
#include "networks.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::cells;
  registrar.add<Cell, treadle::GraphBuilder>("cell");
  registrar.add<CellNetwork, treadle::GraphBuilder>("cell_network");
  registrar.add<treadle::FactoryOf<OperationWeights>, treadle::LayerFactory>("operation_weights");
  registrar.add<treadle::FactoryOf<WeightedSum>, treadle::LayerFactory>("weighted_sum");
  registrar.add<treadle::FactoryOf<Zero>, treadle::LayerFactory>("zero");
  registrar.add<DartsTraining, treadle::TrainingWorkflow>("darts");
}
