#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <treadle/base/config.h>
#include <treadle/table/table_data.h>

#include "parquet_source.h"

namespace treadle::parquet {

/// The data provider `parquet`: a table in a Parquet file. Parameters: parquet.schema.json; the
/// files that can be read: README.md.
class ParquetData final : public table::TableData {
 public:
  explicit ParquetData(const Config& config)
      : TableData(config), path_(config.get<std::string>("path")) {}

 private:
  std::unique_ptr<table::TableSource> do_source(table::SourceUse /*use*/) const override {
    return std::make_unique<ParquetSource>(path_);
  }

  std::filesystem::path path_;
};

}  // namespace treadle::parquet
