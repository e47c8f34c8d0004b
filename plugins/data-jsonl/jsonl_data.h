#pragma once

#include <memory>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/table/source_files.h>
#include <treadle/table/table_data.h>

#include "jsonl_source.h"

namespace treadle::jsonl {

/// The data provider `jsonl`: a table in JSON Lines. Parameters: jsonl.schema.json; how files are
/// read: README.md.
class JsonlData final : public table::TableData {
 public:
  explicit JsonlData(const Config& config, const ComponentContext& context = {})
      : TableData(config, context), paths_(table::paths_of(config, "path")) {}

 private:
  std::unique_ptr<table::TableSource> do_source(table::SourceUse) const override {
    return std::make_unique<JsonlSource>(paths_);
  }

  std::vector<std::string> paths_;  // or patterns
};

}  // namespace treadle::jsonl
