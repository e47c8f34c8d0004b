#include "postgresql_server.h"

#include <libpq-fe.h>

#include <utility>

#include <nlohmann/json.hpp>

namespace treadle::postgresql {

std::string sql_text(std::int64_t value) {
  return std::to_string(value);
}

std::string sql_text(double value) {
  return nlohmann::json(value).dump();  // the shortest that is read as the same number
}

PostgresqlServer::PostgresqlServer(std::string location, Patience::Duration patience)
    : connection_(std::move(location), "the location of the storage \"postgresql\""),
      patience_(patience) {}

template <typename Send>
PostgresqlConnection::Result PostgresqlServer::answer(Send&& send) {
  Patience patience(patience_, kLongestServerWait);
  for (;;) {
    try {
      connection_.connect(patience);
      return connection_.ask(send, &patience);
    } catch (const PostgresqlConnection::Unavailable& now) {
      connection_.wait_or_fail(patience, now);
    }
  }
}

std::vector<PostgresqlServer::Row> PostgresqlServer::run(const char* sql,
                                                         const std::vector<std::string>& values) {
  std::vector<const char*> texts;
  for (const std::string& value : values)
    texts.push_back(value.c_str());
  const PostgresqlConnection::Result result = answer([&](PGconn* connection) {
    return PQsendQueryParams(connection, sql, static_cast<int>(texts.size()), nullptr, texts.data(),
                             nullptr, nullptr, 0);
  });
  std::vector<Row> rows(static_cast<std::size_t>(PQntuples(result.get())));
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    for (int column = 0; column < PQnfields(result.get()); ++column) {
      auto& value = rows[static_cast<std::size_t>(row)].emplace_back();
      if (PQgetisnull(result.get(), row, column) == 0)
        value.emplace(PQgetvalue(result.get(), row, column),
                      static_cast<std::size_t>(PQgetlength(result.get(), row, column)));
    }
  }
  return rows;
}

void PostgresqlServer::run_script(const std::string& sql) {
  answer([&](PGconn* connection) { return PQsendQuery(connection, sql.c_str()); });
}

}  // namespace treadle::postgresql
