#include <treadle/plugin.h>

#include "closed_form.h"
#include "prequential.h"
#include "standard.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::ClosedFormTraining, treadle::TrainingWorkflow>("closed_form");
  registrar.add<treadle::PrequentialTraining, treadle::TrainingWorkflow>("prequential");
  registrar.add<treadle::StandardTraining>("standard");
}
