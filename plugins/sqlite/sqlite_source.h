#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/table/query_options.h>
#include <treadle/table/query_rows.h>
#include <treadle/table/table_source.h>

#include "sqlite_database.h"

namespace treadle::sqlite {

/// The query or table that a source reads, and its database.
struct SqliteQuery {
  std::filesystem::path path;
  table::QueryOptions options;
};

/// The rows of a query as a table. Values have the types that SQLite stored: integers, reals and
/// texts; a blob makes its row a bad one.
///
/// All rows between restart() and the last one belong to one read transaction, so writers change
/// nothing under a reading: with a write-ahead log they go on meanwhile, else they wait.
/// A table without `order_by` is read in the order of its primary key, or of its row ids.
/// Locks are waited for up to 30 s. Every failure is a DataError.
class SqliteSource final : public table::TableSource {
 public:
  /// `result` is shared by all sources of one data provider.
  SqliteSource(SqliteQuery query, std::shared_ptr<table::QueryResult> result);

 private:
  table::TableColumns do_open() override;
  bool do_read(table::RowSink& sink, std::int64_t rows) override;
  Bookmark do_bookmark() const override { return {rows_.position(), 0}; }
  void do_go_to(const Bookmark& place) override;
  std::string do_shown() const override;
  std::string do_place_of(std::int64_t position) const override;
  std::string do_hash() const override;

  /// Finds the columns of the result, and makes the statement that reads it in order.
  void prepare();
  /// Of a table without order_by; none: its row ids order it.
  void find_primary_key();
  void expect_rising_row_id(std::int64_t position);
  void bind(SqliteStatement& statement) const;
  /// Begins a transaction, and stands on the first row to be read.
  void begin();
  bool step();
  void end();
  /// Gives the row that the statement stands on.
  void give_row(table::RowSink& sink);
  template <typename Work>
  auto patiently(Work&& work);

  SqliteQuery query_;
  std::shared_ptr<table::QueryResult> result_;
  std::unique_ptr<SqliteDatabase> database_;
  std::optional<SqliteStatement> statement_;
  std::vector<std::string> names_;
  std::vector<std::string> keys_;
  table::QueryRows rows_;
  bool has_row_id_ = false;  // behind the columns
  std::optional<std::int64_t> last_row_id_;
  bool is_reading_ = false;
  bool has_row_ = false;
};

}  // namespace treadle::sqlite
