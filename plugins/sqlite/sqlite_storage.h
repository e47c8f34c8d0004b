#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <treadle/search/study_storage.h>

#include <treadle/base/system/patience.h>
#include "sqlite_database.h"

namespace treadle::sqlite {

/// `sqlite`: studies in tables of an SQLite database in WAL mode, for the processes of one machine.
///
/// Each call is one transaction, synced to disk before it returns. Those that write begin with
/// BEGIN IMMEDIATE: a transaction that first reads and then wants to write could otherwise find
/// that another one wrote in between, which no waiting mends ("database is locked"). So there is
/// one writer at a time, and it never fails half-way; others wait for `patience`.
///
/// Leases are moments of CLOCK_BOOTTIME with the id of the boot, read while the lock is held.
class SqliteStorage final : public StudyStorage {
 public:
  explicit SqliteStorage(const Config& config);
  SqliteStorage(std::filesystem::path path, Patience::Duration patience);

 private:
  std::vector<std::string> do_studies() override;
  nlohmann::json do_create(const std::string& study, const nlohmann::json& description) override;
  std::optional<nlohmann::json> do_description(const std::string& study) override;
  bool do_claim(const std::string& study, std::int64_t job, const std::string& worker,
                double seconds) override;
  bool do_renew(const std::string& study, std::int64_t job, const std::string& worker,
                double seconds) override;
  void do_release(const std::string& study, std::int64_t job, const std::string& worker) override;
  bool do_finish(const std::string& study, std::int64_t job, const std::string& worker,
                 const nlohmann::json& result) override;
  std::vector<StoredResult> do_results(const std::string& study, std::int64_t after) override;
  nlohmann::json do_end(const std::string& study, const nlohmann::json& how) override;
  nlohmann::json do_ended(const std::string& study) override;

  /// Runs `work` in a transaction that `begin` begins, again for as long as others have the lock.
  template <typename Work>
  auto transaction(const char* begin, Work&& work);
  template <typename Work>
  auto reading(Work&& work);
  template <typename Work>
  auto writing(Work&& work);

  /// The database, opened and made at the first call. Throws where its tables are of another
  /// version.
  SqliteDatabase& database();
  void prepare(SqliteDatabase& database) const;
  /// Throws where it was deleted, or replaced by another file, since it was opened: what is written
  /// then is seen by nobody.
  void expect_same_file() const;
  std::int64_t id_of(const std::string& study);
  nlohmann::json ended(std::int64_t id);

  std::filesystem::path path_;
  Patience::Duration patience_;
  std::optional<SqliteDatabase> database_;
  std::uint64_t file_ = 0;  // the number of its inode
};

}  // namespace treadle::sqlite
