#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/table/query_options.h>
#include <treadle/table/query_rows.h>
#include <treadle/table/table_source.h>

#include "postgresql_connection.h"
#include "value_types.h"

namespace treadle::postgresql {

/// The query or table that a source reads.
struct PostgresqlQuery {
  std::string connection;  ///< a connection string; empty: the environment
  table::QueryOptions options;
};

/// The rows of a query as a table, by a cursor, in binary. Numbers are exact, but for `numeric`,
/// which is rounded to a double; dates and timestamps are times; booleans are 0 and 1.
///
/// All rows between restart() and the last one belong to one transaction that reads one snapshot
/// (REPEATABLE READ, READ ONLY). A server that is restarted meanwhile is waited for up to a minute:
/// the rows that were read before are read again, and must be the same. A table without `order_by`
/// is read in the order of its primary key. Every failure is a DataError.
class PostgresqlSource final : public table::TableSource {
 public:
  /// `result` is shared by all sources of one data provider.
  PostgresqlSource(PostgresqlQuery query, std::shared_ptr<table::QueryResult> result);

 private:
  struct QueryColumn {
    std::string name;
    std::uint32_t type = 0;
    Reading reading = Reading::kText;

    bool operator==(const QueryColumn&) const = default;
  };

  table::TableColumns do_open() override;
  bool do_read(table::RowSink& sink, std::int64_t rows) override;
  Bookmark do_bookmark() const override { return {rows_.position(), 0}; }
  void do_go_to(const Bookmark& place) override;
  std::string do_shown() const override;
  std::string do_place_of(std::int64_t position) const override;
  std::string do_hash() const override;

  /// Runs `work`, again when the connection was lost.
  template <typename Work>
  void patiently(Work&& work);
  PostgresqlConnection::Result run(const std::string& sql,
                                   const std::vector<std::string>& values = {});
  /// Asks the server for the columns of the query and their types, and for the keys.
  void describe();
  std::vector<QueryColumn> columns_of(const std::string& sql);
  void find_primary_key();
  std::vector<bool> key_columns() const;
  std::string statement() const;
  /// Begins a transaction, whose cursor stands before the row `first`.
  void begin(std::int64_t first);
  void fetch();
  /// After a lost connection: begins anew, and reads again the rows before `position`, which must
  /// have the same trail.
  void go_on(std::int64_t position, const std::string& trail);
  void end();
  /// Gives a row of the batch.
  void give_row(table::RowSink& sink, int row);

  PostgresqlQuery query_;
  std::shared_ptr<table::QueryResult> result_;
  PostgresqlConnection connection_;
  std::vector<QueryColumn> columns_;
  std::vector<std::string> names_;
  std::vector<std::string> keys_;
  table::QueryRows rows_;
  PostgresqlConnection::Result batch_;
  int next_ = 0;   // of the batch
  int count_ = 0;  // of the batch
  bool is_reading_ = false;
  bool was_there_ = false;
};

}  // namespace treadle::postgresql
