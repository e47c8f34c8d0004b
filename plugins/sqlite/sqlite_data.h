#pragma once

#include <memory>

#include <treadle/base/config.h>
#include <treadle/table/table_data.h>

#include "sqlite_source.h"

namespace treadle::sqlite {

/// The data provider `sqlite`: a table or a query of an SQLite database. Parameters:
/// sqlite_data.schema.json.
class SqliteData final : public table::TableData {
 public:
  explicit SqliteData(const Config& config, const ComponentContext& context = {});

 private:
  std::unique_ptr<table::TableSource> do_source(table::SourceUse use) const override;

  SqliteQuery query_;
  std::shared_ptr<table::QueryResult> result_ = std::make_shared<table::QueryResult>();
};

}  // namespace treadle::sqlite
