#pragma once

#include <memory>
#include <string>

#include <treadle/base/config.h>
#include <treadle/table/table_data.h>

#include "postgresql_source.h"

namespace treadle::postgresql {

/// The connection string under `key`, of a component that documents describe: empty where there is
/// none. Fails where it has a password, which would be copied into the folder of each run.
std::string connection_of(const Config& config, std::string_view key);

/// The data provider `postgresql`: a table or a query of a PostgreSQL database. Parameters:
/// postgresql_data.schema.json.
class PostgresqlData final : public table::TableData {
 public:
  explicit PostgresqlData(const Config& config, const ComponentContext& context = {});

 private:
  std::unique_ptr<table::TableSource> do_source(table::SourceUse use) const override;

  PostgresqlQuery query_;
  std::shared_ptr<table::QueryResult> result_ = std::make_shared<table::QueryResult>();
};

}  // namespace treadle::postgresql
