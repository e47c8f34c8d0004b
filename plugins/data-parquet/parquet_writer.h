#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/config.h>
#include <treadle/core/data/table_writer.h>

#include "file_encoder.h"

namespace treadle::parquet {

/// The writer `parquet`: a table becomes a Parquet file, see FileEncoder. Parameters:
/// parquet_writer.schema.json. The file is replaced by close(), atomically.
class ParquetWriter final : public TableWriter {
 public:
  explicit ParquetWriter(const Config& config);
  ~ParquetWriter() override;

 private:
  void do_open(const std::vector<Column>& columns) override;
  void do_write(const std::vector<Values>& chunk, std::size_t rows) override;
  void do_close() override;

  std::filesystem::path path_;
  std::optional<AtomicFileWriter> file_;
  std::optional<FileEncoder> encoder_;
};

}  // namespace treadle::parquet
