#include <treadle/plugin.h>

#include "postgresql_storage.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::postgresql;
  registrar.add<PostgresqlStorage>("postgresql");
}
