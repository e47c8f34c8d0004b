#include <treadle/plugin.h>

#include "strategies.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::gradients;
  registrar.add<BackPropagation>("backprop");
  registrar.add<TruncatedBptt>("truncated_bptt");
  registrar.add<Accumulation>("accumulate");
}
