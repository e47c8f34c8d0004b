#include <treadle/plugin.h>

#include "adam.h"
#include "sgd.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::optimizers;
  registrar.add<Sgd>("sgd");
  registrar.add<Adam>("adam");
  registrar.add<AdamW>("adamw");
}
