#pragma once

#include <memory>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/table/source_files.h>
#include <treadle/table/table_data.h>

#include "parquet_source.h"

namespace treadle::parquet {

/// The data provider `parquet`: a table in Parquet files. Parameters: parquet.schema.json; the
/// files that can be read: README.md.
class ParquetData final : public table::TableData {
 public:
  explicit ParquetData(const Config& config, const ComponentContext& context = {})
      : TableData(config, context), paths_(table::paths_of(config, "path")) {}

 private:
  std::unique_ptr<table::TableSource> do_source(table::SourceUse /*use*/) const override {
    return std::make_unique<ParquetSource>(paths_);
  }

  std::vector<std::string> paths_;  // or patterns
};

}  // namespace treadle::parquet
