// Nothing is wrong with this one.
#include <treadle/plugin.h>
#include "working_listener.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<Listener>("listener");
}
