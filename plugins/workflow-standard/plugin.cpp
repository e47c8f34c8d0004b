#include <treadle/plugin.h>

#include "standard_workflow.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::StandardWorkflow>("standard");
}
