// Does not register what its manifest lists.
#include <treadle/plugin.h>

#include "sound/listener.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<Listener>("listener");
}
