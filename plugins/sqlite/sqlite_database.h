#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace treadle::sqlite {

/// Another connection holds the lock: worth another try. Never leaves the plugin.
class SqliteBusy final {};

/// One statement with its values, and the row it stands on.
class SqliteStatement {
 public:
  SqliteStatement(sqlite3* database, const std::filesystem::path& path, std::string_view sql);

  // Values in the order of the question marks.
  SqliteStatement& bind(std::int64_t value);
  SqliteStatement& bind(double value);
  SqliteStatement& bind(std::string_view value);
  SqliteStatement& bind(std::nullptr_t);

  /// Goes to the next row. False behind the last one, by when everything has been done.
  bool step();
  /// Back to before the first row; values stay bound.
  void reset();

  // Of the row, columns from 0.
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::optional<std::string> text(int column) const;

  /// For loops over many values.
  sqlite3_stmt* handle() const { return statement_.get(); }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };

  void check(int code) const;

  sqlite3* database_;
  const std::filesystem::path& path_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

/// A connection to an SQLite database. Every failure is a StorageError that names the path and what
/// to do, or SqliteBusy. Not thread-safe.
class SqliteDatabase {
 public:
  enum class Access : std::uint8_t { kCreate, kRead };

  /// Opens or creates it, on a local disk. With kRead it must exist, on any disk, and is not
  /// written to; it may be a stranger's.
  explicit SqliteDatabase(std::filesystem::path path, Access access = Access::kCreate);

  template <typename... Values>
  SqliteStatement query(std::string_view sql, const Values&... values) {
    SqliteStatement statement(database_.get(), path_, sql);
    (statement.bind(values), ...);
    return statement;
  }
  /// Runs a statement to its end; how many rows it changed.
  template <typename... Values>
  std::int64_t run(std::string_view sql, const Values&... values) {
    SqliteStatement statement = query(sql, values...);
    while (statement.step()) {
    }
    return changes();
  }

  /// Takes back what a transaction has done; nothing outside of one.
  void rollback() noexcept;

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const noexcept;
  };

  std::int64_t changes() const;

  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace treadle::sqlite
