#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <treadle/base/config.h>
#include <treadle/table/table_data.h>

#include "jsonl_source.h"

namespace treadle::jsonl {

/// The data provider `jsonl`: a table in JSON Lines. Parameters: jsonl.schema.json; how files are
/// read: README.md.
class JsonlData final : public table::TableData {
 public:
  explicit JsonlData(const Config& config)
      : TableData(config), path_(config.get<std::string>("path")) {}

 private:
  std::unique_ptr<table::TableSource> do_source(table::SourceUse) const override {
    return std::make_unique<JsonlSource>(path_);
  }

  std::filesystem::path path_;
};

}  // namespace treadle::jsonl
