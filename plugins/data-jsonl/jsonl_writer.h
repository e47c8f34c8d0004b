#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/config.h>
#include <treadle/core/data/table_writer.h>

namespace treadle::jsonl {

/// The writer `jsonl`: one object per line. Numbers are the shortest that read back as the same
/// value; NaN and infinity are null.
class JsonlWriter final : public TableWriter {
 public:
  explicit JsonlWriter(const Config& config) : path_(config.get<std::string>("path")) {}

 private:
  void do_open(const std::vector<Column>& columns) override;
  void do_write(const std::vector<Values>& chunk, std::size_t rows) override;
  void do_close() override;

  std::filesystem::path path_;
  std::optional<AtomicFileWriter> file_;
  std::vector<std::string> keys_;  // the text before each value: {"size":
  std::string text_;               // lines to write
};

}  // namespace treadle::jsonl
