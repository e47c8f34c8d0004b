#include "sqlite_storage.h"

#include <sys/stat.h>

#include <type_traits>
#include <utility>

#include <treadle/base/error.h>

#include <treadle/search/storage/boot_clock.h>
#include <treadle/search/storage/stored_text.h>

namespace treadle::sqlite {

using storages::BootTime;
using storages::given;
using storages::kSchemaVersion;
using storages::read_stored;
using storages::refuse_locked;
using storages::refuse_replaced;
using storages::refuse_study;
using storages::refuse_version;
using storages::stored;
namespace {

constexpr const char* kTables[] = {
    "CREATE TABLE treadle_schema (version INTEGER NOT NULL)",
    "CREATE TABLE treadle_studies ("
    " id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL,"
    " ended TEXT, results INTEGER NOT NULL DEFAULT 0)",
    // The jobs that somebody has, or has ended. Neither those nobody had, nor those given back.
    "CREATE TABLE treadle_jobs ("
    " study INTEGER NOT NULL REFERENCES treadle_studies, job INTEGER NOT NULL, worker TEXT,"
    " boot TEXT, lease_until REAL, sequence INTEGER, result TEXT,"
    " PRIMARY KEY (study, job), UNIQUE (study, sequence))"};

std::uint64_t inode_of(const std::filesystem::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

}  // namespace

SqliteStorage::SqliteStorage(const Config& config)
    : SqliteStorage(config.get<std::string>("location"), kLockPatience) {}

SqliteStorage::SqliteStorage(std::filesystem::path path, Patience::Duration patience)
    : path_(std::move(path)), patience_(patience) {}

SqliteDatabase& SqliteStorage::database() {
  if (database_) {
    expect_same_file();
    return *database_;
  }
  path_ = std::filesystem::absolute(path_);
  SqliteDatabase opened(path_);
  prepare(opened);
  file_ = inode_of(path_);
  return database_.emplace(std::move(opened));
}

void SqliteStorage::prepare(SqliteDatabase& database) const {
  const std::string mode = [&] {
    SqliteStatement row = database.query("PRAGMA journal_mode = WAL");
    row.step();
    return row.text(0).value_or("");
  }();
  if (mode != "wal")
    throw StorageError(path_.string() +
                       ": cannot keep a write-ahead log here (SQLite stays with \"" + mode +
                       "\"); choose a location on a local disk");
  // Each commit is synced, so that a result outlives a power failure once it is in.
  database.run("PRAGMA synchronous = FULL");
  database.run("PRAGMA foreign_keys = ON");

  database.run("BEGIN IMMEDIATE");
  try {
    if (!database.query("SELECT 1 FROM sqlite_master WHERE name = 'treadle_schema'").step()) {
      for (const char* table : kTables)
        database.run(table);
      database.run("INSERT INTO treadle_schema VALUES (?)", kSchemaVersion);
    }
    SqliteStatement version = database.query("SELECT version FROM treadle_schema");
    if (!version.step() || version.integer(0) != kSchemaVersion)
      refuse_version(path_.string(), version.integer(0));
  } catch (...) {
    database.rollback();
    throw;
  }
  database.run("COMMIT");
}

void SqliteStorage::expect_same_file() const {
  if (inode_of(path_) != file_)
    refuse_replaced(path_.string());
}

template <typename Work>
auto SqliteStorage::transaction(const char* begin, Work&& work) {
  Patience patience(patience_, kLongestLockWait);
  for (;;) {
    try {
      SqliteDatabase& open = database();
      try {
        open.run(begin);
        auto result = work(open);
        open.run("COMMIT");
        return result;
      } catch (...) {
        open.rollback();
        throw;
      }
    } catch (const SqliteBusy&) {
      if (!patience.wait())
        refuse_locked(path_.string(), patience_);
    }
  }
}

template <typename Work>
auto SqliteStorage::reading(Work&& work) {
  return transaction("BEGIN", std::forward<Work>(work));
}

template <typename Work>
auto SqliteStorage::writing(Work&& work) {
  return transaction("BEGIN IMMEDIATE", std::forward<Work>(work));
}

std::int64_t SqliteStorage::id_of(const std::string& study) {
  SqliteStatement found = database_->query("SELECT id FROM treadle_studies WHERE name = ?", study);
  if (!found.step())
    refuse_study(path_.string(), study);
  return found.integer(0);
}

nlohmann::json SqliteStorage::ended(std::int64_t id) {
  SqliteStatement row = database_->query("SELECT ended FROM treadle_studies WHERE id = ?", id);
  const std::optional<std::string> text = row.step() ? row.text(0) : std::nullopt;
  return text ? read_stored(*text, path_.string()) : nlohmann::json();
}

std::vector<std::string> SqliteStorage::do_studies() {
  return reading([&](SqliteDatabase& database) {
    std::vector<std::string> names;
    SqliteStatement rows = database.query("SELECT name FROM treadle_studies");
    while (rows.step())
      names.push_back(given(rows.text(0), path_.string()));
    return names;
  });
}

nlohmann::json SqliteStorage::do_create(const std::string& study,
                                        const nlohmann::json& description) {
  return writing([&](SqliteDatabase& database) {
    database.run(
        "INSERT INTO treadle_studies (name, description) VALUES (?, ?) ON CONFLICT DO NOTHING",
        study, stored(description));
    SqliteStatement row =
        database.query("SELECT description FROM treadle_studies WHERE name = ?", study);
    row.step();
    return read_stored(given(row.text(0), path_.string()), path_.string());
  });
}

std::optional<nlohmann::json> SqliteStorage::do_description(const std::string& study) {
  return reading([&](SqliteDatabase& database) {
    SqliteStatement row =
        database.query("SELECT description FROM treadle_studies WHERE name = ?", study);
    return row.step()
               ? std::optional(read_stored(given(row.text(0), path_.string()), path_.string()))
               : std::nullopt;
  });
}

bool SqliteStorage::do_claim(const std::string& study, std::int64_t job, const std::string& worker,
                             double seconds) {
  return writing([&](SqliteDatabase& database) {
    const BootTime now = BootTime::now();
    return database.run(
               "INSERT INTO treadle_jobs (study, job, worker, boot, lease_until)"
               " VALUES (?1, ?2, ?3, ?4, ?5)"
               " ON CONFLICT (study, job) DO UPDATE"
               " SET worker = ?3, boot = ?4, lease_until = ?5"
               " WHERE sequence IS NULL"
               " AND (worker = ?3 OR boot <> ?4 OR lease_until <= ?6)",
               id_of(study), job, worker, now.boot, now.seconds + seconds, now.seconds) > 0;
  });
}

bool SqliteStorage::do_renew(const std::string& study, std::int64_t job, const std::string& worker,
                             double seconds) {
  return writing([&](SqliteDatabase& database) {
    const BootTime now = BootTime::now();
    return database.run(
               "UPDATE treadle_jobs SET boot = ?, lease_until = ?"
               " WHERE study = ? AND job = ? AND worker = ? AND sequence IS NULL",
               now.boot, now.seconds + seconds, id_of(study), job, worker) > 0;
  });
}

void SqliteStorage::do_release(const std::string& study, std::int64_t job,
                               const std::string& worker) {
  writing([&](SqliteDatabase& database) {
    return database.run(
        "DELETE FROM treadle_jobs WHERE study = ? AND job = ? AND worker = ? AND sequence IS NULL",
        id_of(study), job, worker);
  });
}

bool SqliteStorage::do_finish(const std::string& study, std::int64_t job, const std::string& worker,
                              const nlohmann::json& result) {
  const std::string text = stored(result);
  return writing([&](SqliteDatabase& database) {
    const std::int64_t id = id_of(study);
    const bool is_kept =
        database.run(
            "UPDATE treadle_jobs SET result = ?, boot = NULL, lease_until = NULL, sequence ="
            " 1 + (SELECT results FROM treadle_studies WHERE id = study)"
            " WHERE study = ? AND job = ? AND worker = ? AND sequence IS NULL",
            text, id, job, worker) > 0;
    if (is_kept)
      database.run("UPDATE treadle_studies SET results = results + 1 WHERE id = ?", id);
    return is_kept;
  });
}

std::vector<StoredResult> SqliteStorage::do_results(const std::string& study, std::int64_t after) {
  return reading([&](SqliteDatabase& database) {
    std::vector<StoredResult> results;
    SqliteStatement rows = database.query(
        "SELECT sequence, job, worker, result FROM treadle_jobs"
        " WHERE study = ? AND sequence > ? ORDER BY sequence",
        id_of(study), after);
    while (rows.step())
      results.push_back({rows.integer(0), rows.integer(1), given(rows.text(2), path_.string()),
                         read_stored(given(rows.text(3), path_.string()), path_.string())});
    return results;
  });
}

nlohmann::json SqliteStorage::do_end(const std::string& study, const nlohmann::json& how) {
  return writing([&](SqliteDatabase& database) {
    const std::int64_t id = id_of(study);
    if (how.is_null())
      database.run("UPDATE treadle_studies SET ended = NULL WHERE id = ?", id);
    else
      database.run("UPDATE treadle_studies SET ended = coalesce(ended, ?) WHERE id = ?",
                   stored(how), id);
    return ended(id);
  });
}

nlohmann::json SqliteStorage::do_ended(const std::string& study) {
  return reading([&](SqliteDatabase&) { return ended(id_of(study)); });
}

}  // namespace treadle::sqlite
