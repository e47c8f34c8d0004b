#include <treadle/core/study_storage.h>

#include <algorithm>

#include <treadle/base/error.h>
#include <treadle/core/plugin_call.h>

namespace treadle {

StudyStorage::~StudyStorage() = default;

std::vector<std::string> StudyStorage::studies() {
  std::vector<std::string> names = call_plugin(*this, "studies", [&] { return do_studies(); });
  std::sort(names.begin(), names.end());
  return names;
}

nlohmann::json StudyStorage::create(const std::string& study, const nlohmann::json& description) {
  return call_plugin(*this, "create", [&] { return do_create(study, description); });
}

std::optional<nlohmann::json> StudyStorage::description(const std::string& study) {
  return call_plugin(*this, "description", [&] { return do_description(study); });
}

bool StudyStorage::claim(const std::string& study, std::int64_t job, const std::string& worker,
                         double seconds) {
  TREADLE_EXPECTS(job >= 0 && seconds > 0, "a job is taken for a time");
  return call_plugin(*this, "claim", [&] { return do_claim(study, job, worker, seconds); });
}

bool StudyStorage::renew(const std::string& study, std::int64_t job, const std::string& worker,
                         double seconds) {
  TREADLE_EXPECTS(job >= 0 && seconds > 0, "a job is taken for a time");
  return call_plugin(*this, "renew", [&] { return do_renew(study, job, worker, seconds); });
}

void StudyStorage::release(const std::string& study, std::int64_t job, const std::string& worker) {
  call_plugin(*this, "release", [&] { do_release(study, job, worker); });
}

bool StudyStorage::finish(const std::string& study, std::int64_t job, const std::string& worker,
                          const nlohmann::json& result) {
  TREADLE_EXPECTS(!result.is_null(), "a job that has ended has a result");
  return call_plugin(*this, "finish", [&] { return do_finish(study, job, worker, result); });
}

std::vector<StoredResult> StudyStorage::results(const std::string& study, std::int64_t after) {
  std::vector<StoredResult> found =
      call_plugin(*this, "results", [&] { return do_results(study, after); });
  std::int64_t last = after;
  for (const StoredResult& result : found) {
    if (result.sequence <= last)
      refuse_result(*this, "results", "returned results that are not in their order");
    last = result.sequence;
  }
  return found;
}

nlohmann::json StudyStorage::end(const std::string& study, const nlohmann::json& how) {
  return call_plugin(*this, "end", [&] { return do_end(study, how); });
}

nlohmann::json StudyStorage::ended(const std::string& study) {
  return call_plugin(*this, "ended", [&] { return do_ended(study); });
}

}  // namespace treadle
