#include "parquet_writer.h"

#include <string>

namespace treadle::parquet {

ParquetWriter::ParquetWriter(const Config& config) : path_(config.get<std::string>("path")) {}
ParquetWriter::~ParquetWriter() = default;

void ParquetWriter::do_open(const std::vector<Column>& columns) {
  file_.emplace(path_);
  encoder_.emplace(*file_, columns);
}

void ParquetWriter::do_write(const std::vector<Values>& chunk, std::size_t rows) {
  encoder_->add(chunk, rows);
}

void ParquetWriter::do_close() {
  encoder_->finish();
  file_->commit();
  encoder_.reset();
  file_.reset();
}

}  // namespace treadle::parquet
