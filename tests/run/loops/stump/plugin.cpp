#include <treadle/plugin.h>

#include "stump.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::stumps;
  registrar.add<StumpProvider, treadle::ModelProvider>("stump");
  registrar.add<StumpTraining, treadle::TrainingWorkflow>("fit_stump");
}
