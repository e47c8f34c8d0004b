#include "sqlite_database.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include <treadle/search/storage/local_disk.h>

namespace treadle::sqlite {

using storages::expect_local_disk;
namespace {

struct Remedy {
  int code;  ///< a primary one
  const char* text;
};
constexpr std::array kRemedies{
    Remedy{SQLITE_FULL, "make room on the disk: what was kept before is still there"},
    Remedy{SQLITE_IOERR, "look at the disk; what was kept before is there where it can be read"},
    Remedy{SQLITE_READONLY,
           "make the database and its folder writable, or choose another location"},
    Remedy{SQLITE_PERM, "make the database and its folder writable, or choose another location"},
    Remedy{SQLITE_CANTOPEN, "make the folder, make it writable, or choose another location"},
    Remedy{SQLITE_NOTADB, "the file is something else: choose another location"},
    Remedy{SQLITE_CORRUPT,
           "the database is damaged: what can be saved of it, `sqlite3 DATABASE .recover` prints"}};

constexpr int kLargestValue = 1 << 26;  // bytes, in a database that is read

[[noreturn]] void fail(sqlite3* database, const std::filesystem::path& path, int code) {
  const int primary = code & 0xFF;
  if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED)
    throw SqliteBusy();
  std::string text =
      path.string() + ": SQLite: " +
      plain_text(database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database));
  // "disk I/O error" alone says little.
  if (primary == SQLITE_IOERR)
    text += std::string(" (") + std::to_string(code) + ", errno " +
            std::to_string(database == nullptr ? 0 : sqlite3_system_errno(database)) + ")";
  const int offset = database == nullptr ? -1 : sqlite3_error_offset(database);
  if (offset >= 0)
    text += " (at byte " + std::to_string(offset) + " of the statement)";
  const auto remedy = std::find_if(kRemedies.begin(), kRemedies.end(),
                                   [&](const Remedy& one) { return one.code == primary; });
  if (remedy != kRemedies.end())
    text += std::string("; ") + remedy->text;
  throw StorageError(text);
}

}  // namespace

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

SqliteStatement::SqliteStatement(sqlite3* database, const std::filesystem::path& path,
                                 std::string_view sql)
    : database_(database), path_(path) {
  sqlite3_stmt* statement = nullptr;
  check(
      sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr));
  statement_.reset(statement);
}

void SqliteStatement::check(int code) const {
  if (code != SQLITE_OK)
    fail(database_, path_, code);
}

SqliteStatement& SqliteStatement::bind(std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), ++bound_, value));
  return *this;
}

SqliteStatement& SqliteStatement::bind(double value) {
  check(sqlite3_bind_double(statement_.get(), ++bound_, value));
  return *this;
}

SqliteStatement& SqliteStatement::bind(std::string_view value) {
  check(sqlite3_bind_text64(statement_.get(), ++bound_, value.data(), value.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

SqliteStatement& SqliteStatement::bind(std::nullptr_t) {
  check(sqlite3_bind_null(statement_.get(), ++bound_));
  return *this;
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE)
    fail(database_, path_, code);
  return code == SQLITE_ROW;
}

void SqliteStatement::reset() {
  sqlite3_reset(statement_.get());  // its code is that of the last step()
}

std::int64_t SqliteStatement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double SqliteStatement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::optional<std::string> SqliteStatement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr)
    return std::nullopt;
  return std::string(text,
                     static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

void SqliteDatabase::Close::operator()(sqlite3* database) const noexcept {
  sqlite3_close_v2(database);
}

SqliteDatabase::SqliteDatabase(std::filesystem::path path, Access access) : path_(std::move(path)) {
  const bool reads = access == Access::kRead;
  if (reads && !std::filesystem::is_regular_file(path_))
    throw StorageError(path_.string() + ": no such file; look at \"path\"");
  if (!reads)
    expect_local_disk(path_);
  sqlite3* database = nullptr;
  // Without a mutex: its users promise one call at a time.
  const int code =
      sqlite3_open_v2(path_.c_str(), &database,
                      (reads ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
                          SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                      nullptr);
  database_.reset(database);
  if (code != SQLITE_OK)
    fail(database, path_, code);
  if (reads) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLargestValue);
  }
  // No sqlite3_busy_timeout(): SQLite would not wait wherever it may be busy, and then for too long
  // at once. Whoever called tries the whole transaction again.
}

void SqliteDatabase::rollback() noexcept {
  // SQLite has already done it where the disk was full.
  if (sqlite3_get_autocommit(database_.get()) == 0)
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

std::int64_t SqliteDatabase::changes() const {
  return sqlite3_changes64(database_.get());
}

}  // namespace treadle::sqlite
