#include "postgresql_storage.h"

#include <random>
#include <utility>

#include <treadle/base/error.h>

#include <treadle/search/storage/stored_text.h>

namespace treadle::postgresql {

using storages::given;
using storages::kSchemaVersion;
using storages::read_stored;
using storages::refuse_study;
using storages::refuse_version;
using storages::stored;
namespace {

// A server is restarted in seconds, by a fail-over in half a minute.

// Two processes that make the tables at once do it one after the other; "IF NOT EXISTS" alone does
// not see what another transaction is about to make. The number is any that others do not use.
constexpr const char* kTablesScript =
    "SELECT pg_advisory_xact_lock(8390880602291790182);"
    "CREATE TABLE IF NOT EXISTS treadle_studies ("
    " id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,"
    " description text NOT NULL, ended text, results bigint NOT NULL DEFAULT 0);"
    // A job that somebody has, or had and gave back, or has ended.
    "CREATE TABLE IF NOT EXISTS treadle_jobs ("
    " study bigint NOT NULL REFERENCES treadle_studies, job bigint NOT NULL, worker text,"
    " lease_until timestamptz, sequence bigint, result text, attempt text,"
    " PRIMARY KEY (study, job), UNIQUE (study, sequence));"
    "CREATE TABLE IF NOT EXISTS treadle_schema (version bigint NOT NULL);";

// clock_timestamp() is now() at the instant at which the row is locked, not at which the
// transaction began.
constexpr const char* kClaim =
    "INSERT INTO treadle_jobs AS kept (study, job, worker, lease_until)"
    " VALUES ($1::bigint, $2::bigint, $3,"
    "  clock_timestamp() + make_interval(secs => $4::double precision))"
    " ON CONFLICT (study, job) DO UPDATE SET worker = $3,"
    "  lease_until = clock_timestamp() + make_interval(secs => $4::double precision)"
    " WHERE kept.sequence IS NULL AND (kept.worker IS NULL OR kept.worker = $3"
    "  OR kept.lease_until <= clock_timestamp())"
    " RETURNING job";

constexpr const char* kRenew =
    "UPDATE treadle_jobs SET"
    " lease_until = clock_timestamp() + make_interval(secs => $4::double precision)"
    " WHERE study = $1::bigint AND job = $2::bigint AND worker = $3 AND sequence IS NULL"
    " RETURNING job";

constexpr const char* kRelease =
    "UPDATE treadle_jobs SET worker = NULL, lease_until = NULL"
    " WHERE study = $1::bigint AND job = $2::bigint AND worker = $3 AND sequence IS NULL";

// Locks the job, then the study, whose next number it takes, and keeps the result. Each step has
// rows only where the one before it has: without the job no number is taken.
constexpr const char* kFinish =
    "WITH mine AS ("
    "  SELECT study FROM treadle_jobs"
    "  WHERE study = $1::bigint AND job = $2::bigint AND worker = $3 AND sequence IS NULL"
    "  FOR UPDATE),"
    " counted AS ("
    "  UPDATE treadle_studies SET results = results + 1 FROM mine WHERE id = mine.study"
    "  RETURNING results)"
    " UPDATE treadle_jobs SET sequence = counted.results, result = $4, attempt = $5,"
    "  lease_until = NULL"
    " FROM counted WHERE study = $1::bigint AND job = $2::bigint RETURNING sequence";

constexpr const char* kIsMine =
    "SELECT 1 FROM treadle_jobs WHERE study = $1::bigint AND job = $2::bigint AND attempt = $3";

// A name that no other attempt has.
std::string new_attempt() {
  std::random_device random;
  std::string name;
  for (int i = 0; i < 4; ++i)
    name += std::to_string(random()) + (i < 3 ? "-" : "");
  return name;
}

}  // namespace

PostgresqlStorage::PostgresqlStorage(const Config& config)
    : PostgresqlStorage(config.get<std::string>("location"), kServerPatience) {}

PostgresqlStorage::PostgresqlStorage(std::string location, Patience::Duration patience)
    : location_(std::move(location)), patience_(patience) {}

PostgresqlServer& PostgresqlStorage::server() {
  if (server_)
    return *server_;
  PostgresqlServer server(location_, patience_);
  // Without the right to make tables, those that are there can be used.
  if (!server.run("SELECT to_regclass('treadle_schema')").at(0).at(0)) {
    std::string script = kTablesScript;
    script += "INSERT INTO treadle_schema SELECT ";
    script += sql_text(kSchemaVersion);
    script += " WHERE NOT EXISTS (SELECT FROM treadle_schema);";
    server.run_script(script);
  }
  const auto versions = server.run("SELECT version FROM treadle_schema");
  const std::string got = versions.empty() ? "0" : *versions[0].at(0);
  if (got != sql_text(kSchemaVersion))
    refuse_version(server.name(), std::stoll(got));
  return server_.emplace(std::move(server));
}

std::string PostgresqlStorage::id_of(const std::string& study) {
  const auto known = ids_.find(study);
  if (known != ids_.end())
    return known->second;
  const auto rows = server().run("SELECT id FROM treadle_studies WHERE name = $1", {study});
  if (rows.empty())
    refuse_study(server_->name(), study);
  return ids_[study] = *rows[0][0];
}

nlohmann::json PostgresqlStorage::read(const std::optional<std::string>& text) const {
  return text ? read_stored(*text, server_->name()) : nlohmann::json();
}

std::vector<std::string> PostgresqlStorage::do_studies() {
  std::vector<std::string> names;
  for (const auto& row : server().run("SELECT name FROM treadle_studies"))
    names.push_back(given(row[0], server_->name()));
  return names;
}

// Descriptions never change: two statements are as good as one.
nlohmann::json PostgresqlStorage::do_create(const std::string& study,
                                            const nlohmann::json& description) {
  server().run(
      "INSERT INTO treadle_studies (name, description) VALUES ($1, $2) ON CONFLICT DO NOTHING",
      {study, stored(description)});
  const std::optional<nlohmann::json> first = do_description(study);
  if (!first)
    refuse_study(server_->name(), study);
  return *first;
}

std::optional<nlohmann::json> PostgresqlStorage::do_description(const std::string& study) {
  const auto rows =
      server().run("SELECT description FROM treadle_studies WHERE name = $1", {study});
  return rows.empty() ? std::nullopt : std::optional(read(rows[0][0]));
}

bool PostgresqlStorage::do_claim(const std::string& study, std::int64_t job,
                                 const std::string& worker, double seconds) {
  const std::string id = id_of(study);
  return !server().run(kClaim, {id, sql_text(job), worker, sql_text(seconds)}).empty();
}

bool PostgresqlStorage::do_renew(const std::string& study, std::int64_t job,
                                 const std::string& worker, double seconds) {
  const std::string id = id_of(study);
  return !server().run(kRenew, {id, sql_text(job), worker, sql_text(seconds)}).empty();
}

void PostgresqlStorage::do_release(const std::string& study, std::int64_t job,
                                   const std::string& worker) {
  const std::string id = id_of(study);
  server().run(kRelease, {id, sql_text(job), worker});
}

bool PostgresqlStorage::do_finish(const std::string& study, std::int64_t job,
                                  const std::string& worker, const nlohmann::json& result) {
  const std::string id = id_of(study);
  const std::string attempt = new_attempt();
  if (!server().run(kFinish, {id, sql_text(job), worker, stored(result), attempt}).empty())
    return true;
  // Or it was kept, and the answer was lost with the connection.
  return !server().run(kIsMine, {id, sql_text(job), attempt}).empty();
}

std::vector<StoredResult> PostgresqlStorage::do_results(const std::string& study,
                                                        std::int64_t after) {
  const std::string id = id_of(study);
  std::vector<StoredResult> results;
  for (const auto& row :
       server().run("SELECT sequence, job, worker, result FROM treadle_jobs"
                    " WHERE study = $1::bigint AND sequence > $2::bigint ORDER BY sequence",
                    {id, sql_text(after)}))
    results.push_back(
        {std::stoll(*row[0]), std::stoll(*row[1]), given(row[2], server_->name()), read(row[3])});
  return results;
}

nlohmann::json PostgresqlStorage::do_end(const std::string& study, const nlohmann::json& how) {
  const std::string id = id_of(study);
  const auto rows = how.is_null()
                        ? server().run(
                              "UPDATE treadle_studies SET ended = NULL WHERE id = $1::bigint"
                              " RETURNING ended",
                              {id})
                        : server().run(
                              "UPDATE treadle_studies SET ended = coalesce(ended, $2)"
                              " WHERE id = $1::bigint RETURNING ended",
                              {id, stored(how)});
  if (rows.empty())
    refuse_study(server_->name(), study);
  return read(rows[0][0]);
}

nlohmann::json PostgresqlStorage::do_ended(const std::string& study) {
  const std::string id = id_of(study);
  const auto rows = server().run("SELECT ended FROM treadle_studies WHERE id = $1::bigint", {id});
  if (rows.empty())
    refuse_study(server_->name(), study);
  return read(rows[0][0]);
}

}  // namespace treadle::postgresql
