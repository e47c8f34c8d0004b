#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/table_writer.h>

#include "postgresql_connection.h"

namespace treadle::postgresql {

/// The writer `postgresql`: a table of a PostgreSQL database, by COPY in binary. Parameters:
/// postgresql_writer.schema.json.
///
/// All of it is one transaction, from open() to close(): others see nothing before, and a process
/// that is killed leaves nothing. A table that is replaced is readable until then. Whole numbers
/// are bigint, floats real or double precision, with NaN and infinities.
class PostgresqlWriter final : public TableWriter {
 public:
  explicit PostgresqlWriter(const Config& config);

 private:
  void do_open(const std::vector<Column>& columns) override;
  void do_write(const std::vector<Values>& chunk, std::size_t rows) override;
  void do_close() override;

  /// Runs `work`; a server that is gone is a StorageError.
  template <typename Work>
  void at_server(Work&& work);
  void run(const std::string& sql);
  bool exists();
  void send();

  std::string table_;
  std::string if_exists_;
  PostgresqlConnection connection_;
  std::string written_;  // the table that rows go to
  std::string buffer_;   // of COPY
};

}  // namespace treadle::postgresql
