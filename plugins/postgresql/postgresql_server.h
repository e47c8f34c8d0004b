#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/system/patience.h>

#include "postgresql_connection.h"

namespace treadle::postgresql {

/// A value as PostgreSQL's text has it.
std::string sql_text(std::int64_t value);
std::string sql_text(double value);

/// A connection to a PostgreSQL server that comes back after the server was restarted.
///
/// A statement goes there by itself, with its values beside it, and is a transaction of its own. So
/// a process that is stopped or dies between two of them holds no lock. A statement that was lost
/// with its connection is sent again: whether it was done the first time nobody knows, so what is
/// sent here must be the same when it is done twice.
///
/// Every failure is a StorageError that names the server, never a password, and says what to do.
/// Not thread-safe.
class PostgresqlServer {
 public:
  using Row = std::vector<std::optional<std::string>>;

  /// `location` is a connection string. Connects at the first statement, and again when the
  /// connection was lost, for `patience` at most.
  PostgresqlServer(std::string location, Patience::Duration patience);

  /// Runs a statement with `values` for $1, $2, …; its rows.
  std::vector<Row> run(const char* sql, const std::vector<std::string>& values = {});
  /// Runs several statements without values, as one transaction.
  void run_script(const std::string& sql);

  /// PostgreSQL "studies" at db.example.org.
  const std::string& name() const { return connection_.name(); }

 private:
  template <typename Send>
  PostgresqlConnection::Result answer(Send&& send);

  PostgresqlConnection connection_;
  Patience::Duration patience_;
};

}  // namespace treadle::postgresql
