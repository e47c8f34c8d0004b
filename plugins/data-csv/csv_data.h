#pragma once

#include <memory>

#include <treadle/base/config.h>
#include <treadle/table/table_data.h>

#include "csv_options.h"

namespace treadle::csv {

/// The data provider `csv`: a table in a text file. Parameters: csv.schema.json; how files are
/// read: README.md.
class CsvData final : public table::TableData {
 public:
  explicit CsvData(const Config& config, const ComponentContext& context = {})
      : TableData(config, context), options_(config) {}

 private:
  std::unique_ptr<table::TableSource> do_source(table::SourceUse use) const override;
  /// Of the options only those count that say how the file is written; another separator, and rows
  /// without a header line, are found where the first rows leave no doubt.
  TableProfile do_profile() const override;

  CsvOptions options_;
};

}  // namespace treadle::csv
