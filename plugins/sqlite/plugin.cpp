#include <treadle/plugin.h>

#include "sqlite_data.h"
#include "sqlite_storage.h"
#include "sqlite_writer.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::sqlite;
  registrar.add<SqliteData, treadle::DataProvider>("sqlite");
  registrar.add<SqliteStorage, treadle::StudyStorage>("sqlite");
  registrar.add<SqliteWriter, treadle::TableWriter>("sqlite");
}
