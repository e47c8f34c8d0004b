#include <treadle/plugin.h>

#include "schedules.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::schedules;
  registrar.add<Constant>("constant");
  registrar.add<StepDecay>("step");
  registrar.add<Cosine>("cosine");
  registrar.add<Linear>("linear");
}
