#include <treadle/plugin.h>

#include "npy_data.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::arrays::NpyData>("npy");
}
