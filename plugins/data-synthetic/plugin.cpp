#include <treadle/plugin.h>

#include "synthetic_data.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::synthetic::Moons>("moons");
  registrar.add<treadle::synthetic::Spirals>("spirals");
  registrar.add<treadle::synthetic::Friedman1>("friedman1");
  registrar.add<treadle::synthetic::Sea>("sea");
  registrar.add<treadle::synthetic::ArSeries>("ar_series");
}
