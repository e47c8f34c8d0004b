#include <treadle/plugin.h>

#include "boosting.h"
#include "trees_model.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::trees;
  registrar.add<TreesProvider, treadle::ModelProvider>("gradient_boosted_trees");
  registrar.add<Boosting, treadle::TrainingWorkflow>("boosting");
}
