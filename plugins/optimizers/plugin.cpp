#include <treadle/plugin.h>

#include "adafactor.h"
#include "adagrad.h"
#include "adam.h"
#include "lamb.h"
#include "lion.h"
#include "muon.h"
#include "rmsprop.h"
#include "schedule_free.h"
#include "sgd.h"
#include "soap.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::optimizers;
  using treadle::Optimizer;
  registrar.add<Sgd>("sgd");
  registrar.add<Adam>("adam");
  registrar.add<AdamW>("adamw");
  registrar.add<AdamW8bit>("adamw8bit");
  registrar.add<RmsProp>("rmsprop");
  registrar.add<Adagrad>("adagrad");
  registrar.add<Lion>("lion");
  registrar.add<Lamb>("lamb");
  registrar.add<Muon, Optimizer>("muon");
  registrar.add<Soap, Optimizer>("soap");
  registrar.add<ScheduleFreeAdamW, Optimizer>("schedule_free_adamw");
  registrar.add<Adafactor, Optimizer>("adafactor");
}
