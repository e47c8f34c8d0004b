// Dies when it is asked what it offers.
#include <csignal>

#include <treadle/plugin.h>
#include "sound/working_listener.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<Listener>("listener");
  std::raise(SIGILL);
}
