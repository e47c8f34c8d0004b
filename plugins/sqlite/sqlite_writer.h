#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/table_writer.h>

#include "sqlite_database.h"

namespace treadle::sqlite {

/// The writer `sqlite`: a table of an SQLite database. Parameters: sqlite_writer.schema.json.
///
/// All of it is one transaction, from open() to close(): readers see nothing before, and a process
/// that is killed leaves nothing (the next one that opens the database rolls it back). Whole
/// numbers are INTEGER, floats REAL; SQLite keeps a NaN as NULL.
class SqliteWriter final : public TableWriter {
 public:
  explicit SqliteWriter(const Config& config);
  ~SqliteWriter() override;

 private:
  void do_open(const std::vector<Column>& columns) override;
  void do_write(const std::vector<Values>& chunk, std::size_t rows) override;
  void do_close() override;

  /// Runs what needs the lock of the database, again for as long as others have it.
  template <typename Work>
  void patiently(Work&& work);
  void make_table(const std::vector<Column>& columns);

  std::filesystem::path path_;
  std::string table_;
  std::string if_exists_;
  bool is_new_file_ = false;
  std::optional<SqliteDatabase> database_;
  std::optional<SqliteStatement> insert_;
};

}  // namespace treadle::sqlite
