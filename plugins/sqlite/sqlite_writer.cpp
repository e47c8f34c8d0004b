#include "sqlite_writer.h"

#include <sqlite3.h>

#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/system/patience.h>
#include <treadle/search/storage/stored_text.h>
#include <treadle/table/query_options.h>

namespace treadle::sqlite {
namespace {

const char* sql_type(TableWriter::Column::Type type) {
  switch (type) {
    case TableWriter::Column::Type::kInteger:
      return "INTEGER";
    case TableWriter::Column::Type::kFloat:
    case TableWriter::Column::Type::kDouble:
      return "REAL";
    case TableWriter::Column::Type::kText:
      break;
  }
  return "TEXT";
}

void bind_value(sqlite3_stmt* statement, int place, const TableWriter::Values& values,
                std::size_t row) {
  std::visit(
      [&](const auto& list) {
        using Value = typename std::decay_t<decltype(list)>::value_type;
        const Value& value = list[row];
        if constexpr (std::is_same_v<Value, std::string>)
          sqlite3_bind_text64(statement, place, value.data(), value.size(), SQLITE_STATIC,
                              SQLITE_UTF8);
        else if constexpr (std::is_integral_v<Value>)
          sqlite3_bind_int64(statement, place, value);
        else
          sqlite3_bind_double(statement, place, static_cast<double>(value));
      },
      values);
}

}  // namespace

SqliteWriter::SqliteWriter(const Config& config)
    : path_(config.get<std::string>("path")),
      table_(config.get<std::string>("table")),
      if_exists_(config.get<std::string>("if_exists")) {}

SqliteWriter::~SqliteWriter() {
  insert_.reset();
  if (!database_)
    return;
  database_->rollback();
  database_.reset();
  std::error_code none;
  if (is_new_file_)
    std::filesystem::remove(path_, none);
}

template <typename Work>
void SqliteWriter::patiently(Work&& work) {
  Patience patience(kLockPatience, kLongestLockWait);
  for (;;) {
    try {
      return work();
    } catch (const SqliteBusy&) {
      if (!patience.wait())
        storages::refuse_locked(path_.string(), patience.limit());
    }
  }
}

void SqliteWriter::make_table(const std::vector<Column>& columns) {
  const std::string name = table::quoted_identifier(table_);
  bool exists = false;
  {
    SqliteStatement row = database_->query(
        "SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')",
        std::string_view(table_));
    exists = row.step();
  }
  if (exists && if_exists_ == "error") {
    throw StorageError(path_.string() + ": has a table " + quote_text(table_) +
                       " already; name another one, or set \"if_exists\" to \"replace\" or "
                       "\"append\"");
  }
  if (exists && if_exists_ == "replace")
    database_->run("DROP TABLE " + name);
  if (exists && if_exists_ == "append")
    return;
  std::string declared;
  for (const Column& column : columns)
    declared +=
        (declared.empty() ? "" : ", ") + table::quoted_identifier(column.name) + " " +
        sql_type(column.type) +
        (column.type == Column::Type::kInteger || column.type == Column::Type::kText ? " NOT NULL"
                                                                                     : "");
  database_->run("CREATE TABLE " + name + " (" + declared + ")");
}

void SqliteWriter::do_open(const std::vector<Column>& columns) {
  path_ = std::filesystem::absolute(path_);
  is_new_file_ = !std::filesystem::exists(path_);
  database_.emplace(path_);
  patiently([&] { database_->run("BEGIN IMMEDIATE"); });
  make_table(columns);
  std::string names;
  std::string places;
  for (const Column& column : columns) {
    names += (names.empty() ? "" : ", ") + table::quoted_identifier(column.name);
    places += places.empty() ? "?" : ", ?";
  }
  insert_.emplace(database_->query("INSERT INTO " + table::quoted_identifier(table_) + " (" +
                                   names + ") VALUES (" + places + ")"));
}

void SqliteWriter::do_write(const std::vector<Values>& chunk, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < chunk.size(); ++column)
      bind_value(insert_->handle(), static_cast<int>(column) + 1, chunk[column], row);
    // Where memory is short, rows go to the file before the end, for which readers must leave it.
    patiently([&] {
      try {
        insert_->step();
      } catch (...) {
        insert_->reset();
        throw;
      }
      insert_->reset();
    });
  }
}

void SqliteWriter::do_close() {
  insert_.reset();
  // A reader may have its lock for a moment, where there is no write-ahead log.
  patiently([&] { database_->run("COMMIT"); });
  is_new_file_ = false;
  database_.reset();
}

}  // namespace treadle::sqlite
