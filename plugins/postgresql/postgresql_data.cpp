#include "postgresql_data.h"

#include <treadle/base/error.h>

namespace treadle::postgresql {

std::string connection_of(const Config& config, std::string_view key) {
  std::string connection = config.get_or<std::string>(key, "");
  try {
    if (PostgresqlConnection(connection, "this").has_password())
      config.fail(key,
                  "has a password, and documents are copied into the folders of their runs; put it "
                  "into ~/.pgpass, or into the environment (PGPASSWORD)");
  } catch (const StorageError& error) {
    config.fail(key, error.what());
  }
  return connection;
}

PostgresqlData::PostgresqlData(const Config& config, const ComponentContext& context)
    : TableData(config, context),
      query_{connection_of(config, "connection"), table::QueryOptions(config)} {}

std::unique_ptr<table::TableSource> PostgresqlData::do_source(table::SourceUse) const {
  return std::make_unique<PostgresqlSource>(query_, result_);
}

}  // namespace treadle::postgresql
