#include <treadle/plugin.h>

#include "journal.h"
#include "postgresql.h"
#include "sqlite.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::storages;
  registrar.add<Journal>("journal");
  registrar.add<Postgresql>("postgresql");
  registrar.add<Sqlite>("sqlite");
}
