#include "postgresql_writer.h"

#include <libpq-fe.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/table/query_options.h>

#include "postgresql_data.h"

namespace treadle::postgresql {
namespace {

constexpr std::size_t kCopyBuffer = 1U << 18U;

const char* sql_type(TableWriter::Column::Type type) {
  switch (type) {
    case TableWriter::Column::Type::kInteger:
      return "bigint";
    case TableWriter::Column::Type::kFloat:
      return "real";
    case TableWriter::Column::Type::kDouble:
      return "double precision";
    case TableWriter::Column::Type::kText:
      break;
  }
  return "text";
}

// Big-endian, as COPY's binary format is: "COPY", Binary Format, in PostgreSQL's manual.
template <std::unsigned_integral Integer>
void append(std::string& to, Integer value) {
  for (int shift = static_cast<int>(8 * sizeof value) - 8; shift >= 0; shift -= 8)
    to += static_cast<char>(value >> static_cast<unsigned>(shift));
}

void append_value(std::string& to, const TableWriter::Values& values, std::size_t row) {
  std::visit(
      [&](const auto& list) {
        using Value = typename std::decay_t<decltype(list)>::value_type;
        const Value& value = list[row];
        if constexpr (std::is_same_v<Value, std::string>) {
          append(to, static_cast<std::uint32_t>(value.size()));
          to += value;
        } else {
          append(to, std::uint32_t{sizeof value});
          if constexpr (sizeof(Value) == sizeof(std::uint32_t))
            append(to, std::bit_cast<std::uint32_t>(value));
          else
            append(to, std::bit_cast<std::uint64_t>(value));
        }
      },
      values);
}

}  // namespace

PostgresqlWriter::PostgresqlWriter(const Config& config)
    : table_(config.get<std::string>("table")),
      if_exists_(config.get<std::string>("if_exists")),
      connection_(connection_of(config, "connection"),
                  "\"connection\" of the writer \"postgresql\"") {}

template <typename Work>
void PostgresqlWriter::at_server(Work&& work) {
  try {
    work();
  } catch (const PostgresqlConnection::Unavailable& lost) {
    connection_.close();
    connection_.fail(lost.words, "; nothing was written; try again");
  }
}

void PostgresqlWriter::run(const std::string& sql) {
  connection_.ask([&](PGconn* connection) { return PQsendQuery(connection, sql.c_str()); });
}

bool PostgresqlWriter::exists() {
  const std::string name = table::quoted_table(table_);
  const char* const values[] = {name.c_str()};
  const auto result = connection_.ask([&](PGconn* connection) {
    return PQsendQueryParams(connection, "SELECT to_regclass($1)", 1, nullptr, values, nullptr,
                             nullptr, 0);
  });
  return PQgetisnull(result.get(), 0, 0) == 0;
}

void PostgresqlWriter::do_open(const std::vector<Column>& columns) {
  Patience patience(kServerPatience, kLongestServerWait);
  for (;;) {
    try {
      connection_.connect(patience);
      break;
    } catch (const PostgresqlConnection::Unavailable& now) {
      connection_.wait_or_fail(patience, now);
    }
  }
  at_server([&] {
    run("BEGIN");
    run("SET LOCAL lock_timeout = '30s'");
    const bool is_there = exists();
    if (is_there && if_exists_ == "error") {
      throw StorageError(connection_.name() + ": has a table " + quote_text(table_) +
                         " already; name another one, or set \"if_exists\" to \"replace\" or "
                         "\"append\"");
    }
    // A name of this connection's own, until the other table is dropped.
    written_ = is_there && if_exists_ == "replace"
                   ? table_ + "_treadle_" + std::to_string(PQbackendPID(connection_.handle()))
                   : table_;
    std::string declared;
    std::string names;
    for (const Column& column : columns) {
      const std::string name = table::quoted_identifier(column.name);
      names += (names.empty() ? "" : ", ") + name;
      declared += (declared.empty() ? "" : ", ") + name + " " + sql_type(column.type) + " NOT NULL";
    }
    if (written_ != table_ || !is_there)
      run("CREATE TABLE " + table::quoted_table(written_) + " (" + declared + ")");
    run("COPY " + table::quoted_table(written_) + " (" + names + ") FROM STDIN (FORMAT binary)");
  });
  buffer_.assign("PGCOPY\n\377\r\n\0", 11);
  buffer_.append(8, '\0');  // no flags, no extension
}

void PostgresqlWriter::send() {
  at_server([&] {
    if (PQputCopyData(connection_.handle(), buffer_.data(), static_cast<int>(buffer_.size())) != 1)
      throw PostgresqlConnection::Unavailable{PQerrorMessage(connection_.handle())};
  });
  buffer_.clear();
}

void PostgresqlWriter::do_write(const std::vector<Values>& chunk, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) {
    append(buffer_, static_cast<std::uint16_t>(chunk.size()));
    for (const Values& values : chunk)
      append_value(buffer_, values, row);
    if (buffer_.size() >= kCopyBuffer)
      send();
  }
}

void PostgresqlWriter::do_close() {
  append(buffer_, std::uint16_t{0xFFFF});
  send();
  at_server([&] {
    connection_.ask([](PGconn* connection) { return PQputCopyEnd(connection, nullptr); });
    if (written_ != table_) {
      const std::string bare = table_.substr(table_.find('.') + 1);
      run("DROP TABLE " + table::quoted_table(table_));
      run("ALTER TABLE " + table::quoted_table(written_) + " RENAME TO " +
          table::quoted_identifier(bare));
    }
  });
  try {
    run("COMMIT");
  } catch (const PostgresqlConnection::Unavailable& lost) {
    connection_.close();
    connection_.fail(lost.words,
                     "; look whether the table was written before the connection was "
                     "lost");
  }
  connection_.close();
}

}  // namespace treadle::postgresql
