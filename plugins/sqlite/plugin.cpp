#include <treadle/plugin.h>

#include "sqlite_storage.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::sqlite;
  registrar.add<SqliteStorage>("sqlite");
}
