#include <treadle/plugin.h>

#include "prequential.h"
#include "standard.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::PrequentialTraining, treadle::TrainingWorkflow>("prequential");
  registrar.add<treadle::StandardTraining>("standard");
}
