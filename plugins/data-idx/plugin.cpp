#include <treadle/plugin.h>

#include "idx_data.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::idx::IdxData>("idx");
}
