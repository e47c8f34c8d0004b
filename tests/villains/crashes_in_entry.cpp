// Dies when it is asked what it offers.
#include <csignal>

#include "listener.h"
#include <treadle/plugin.h>

TREADLE_PLUGIN(registrar) {
  registrar.add<Listener>("listener");
  std::raise(SIGILL);
}
