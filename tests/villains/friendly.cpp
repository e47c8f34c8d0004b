// Nothing is wrong with this one.
#include "listener.h"
#include <treadle/plugin.h>

TREADLE_PLUGIN(registrar) { registrar.add<Listener>("listener"); }
