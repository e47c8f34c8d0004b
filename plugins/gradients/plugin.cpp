#include <treadle/plugin.h>

#include "strategies.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::gradients;
  registrar.add<BackPropagation>("backprop");
  registrar.add<OneStep>("one_step");
  registrar.add<Accumulation>("accumulate");
}
