// Built against other libtorch headers and with checked containers. Would crash if it were run.
#include <treadle/plugin.h>

#include "sound/listener.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<Listener>("listener");
}
