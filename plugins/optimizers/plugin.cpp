#include <treadle/plugin.h>

#include "adagrad.h"
#include "adam.h"
#include "lamb.h"
#include "lion.h"
#include "rmsprop.h"
#include "sgd.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::optimizers;
  registrar.add<Sgd>("sgd");
  registrar.add<Adam>("adam");
  registrar.add<AdamW>("adamw");
  registrar.add<AdamW8bit>("adamw8bit");
  registrar.add<RmsProp>("rmsprop");
  registrar.add<Adagrad>("adagrad");
  registrar.add<Lion>("lion");
  registrar.add<Lamb>("lamb");
}
