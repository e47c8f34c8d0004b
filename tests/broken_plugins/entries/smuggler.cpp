// Registers what its manifest does not list.
#include <treadle/plugin.h>

#include "sound/listener.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<Listener>("listener");
  registrar.add<Listener>("stowaway");
}
