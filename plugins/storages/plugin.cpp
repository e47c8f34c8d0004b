#include <treadle/plugin.h>

#include "journal.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::storages::Journal>("journal");
}
