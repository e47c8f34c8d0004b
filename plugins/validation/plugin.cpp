#include <treadle/plugin.h>

#include "hold_out.h"
#include "k_fold.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::validation::HoldOut>("hold_out");
  registrar.add<treadle::validation::KFold>("k_fold");
}
