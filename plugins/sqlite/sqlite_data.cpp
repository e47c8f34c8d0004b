#include "sqlite_data.h"

#include <string>

namespace treadle::sqlite {

SqliteData::SqliteData(const Config& config, const ComponentContext& context)
    : TableData(config, context),
      query_{config.get<std::string>("path"), table::QueryOptions(config)} {}

std::unique_ptr<table::TableSource> SqliteData::do_source(table::SourceUse) const {
  return std::make_unique<SqliteSource>(query_, result_);
}

}  // namespace treadle::sqlite
