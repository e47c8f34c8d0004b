#include <treadle/plugin.h>

#include "standard.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::StandardTraining>("standard");
}
