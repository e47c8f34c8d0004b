#include <treadle/plugin.h>

#include "journal.h"
#include "sqlite.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::storages;
  registrar.add<Journal>("journal");
  registrar.add<Sqlite>("sqlite");
}
