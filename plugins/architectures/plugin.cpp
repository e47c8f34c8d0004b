#include <treadle/plugin.h>

#include "hive.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::architectures;
  registrar.add<Hive, treadle::GraphBuilder>("hive");
}
