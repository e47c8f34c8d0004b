#include <treadle/plugin.h>

#include "prometheus.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::observers::Prometheus>("prometheus");
}
