#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <treadle/search/study_storage.h>

#include <treadle/base/system/patience.h>
#include "postgresql_server.h"

namespace treadle::postgresql {

/// `postgresql`: studies in tables of a PostgreSQL database, for any number of machines.
///
/// Leases are moments of the server's clock; no clock of a worker's machine is read for them, so
/// those may be as wrong as they like.
///
/// Each call is one statement, and READ COMMITTED is enough for it. A statement that changes a row
/// locks it; where another transaction has changed the row meanwhile, PostgreSQL waits for its end,
/// and checks the condition again on the row as it then is. So of two claims the second one sees
/// the first, and a result that comes late finds the job with another worker. Sequence numbers are
/// given with the row of the study locked to the end of the transaction: who can see one sees all
/// before it.
class PostgresqlStorage final : public StudyStorage {
 public:
  explicit PostgresqlStorage(const Config& config);
  PostgresqlStorage(std::string location, Patience::Duration patience);

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

  /// With its tables, made at the first call. Throws where they are of another version.
  PostgresqlServer& server();
  /// As the server has it: what names a study in its statements.
  std::string id_of(const std::string& study);
  nlohmann::json read(const std::optional<std::string>& text) const;

  std::string location_;
  Patience::Duration patience_;
  std::optional<PostgresqlServer> server_;
  std::map<std::string, std::string> ids_;
};

}  // namespace treadle::postgresql
