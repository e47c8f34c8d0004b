#include <treadle/plugin.h>

#include "postgresql_data.h"
#include "postgresql_storage.h"
#include "postgresql_writer.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::postgresql;
  registrar.add<PostgresqlData, treadle::DataProvider>("postgresql");
  registrar.add<PostgresqlStorage, treadle::StudyStorage>("postgresql");
  registrar.add<PostgresqlWriter, treadle::TableWriter>("postgresql");
}
