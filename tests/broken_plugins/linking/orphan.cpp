// Is linked to a library that is not there when it is loaded.
#include <treadle/plugin.h>

#include "sound/listener.h"

int from_nowhere();

TREADLE_PLUGIN(registrar) {
  if (from_nowhere() == 1)
    registrar.add<Listener>("listener");
}
