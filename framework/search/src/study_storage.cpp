#include <treadle/search/study_storage.h>

#include <algorithm>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/utf8.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {
namespace {

constexpr double kLongestLease = 1e9;  // seconds; storages add it to their clocks

bool is_name(const std::string& name) {
  return !name.empty() && name.find('\0') == name.npos && !first_bad_utf8(name);
}

void expect_name(const std::string& name) {
  TREADLE_EXPECTS(is_name(name), "studies and workers are called by UTF-8 without NUL");
}

void expect_job(const std::string& study, std::int64_t job, const std::string& worker) {
  expect_name(study);
  expect_name(worker);
  TREADLE_EXPECTS(job >= 0, "jobs are numbered from 0");
}

void expect_lease(double seconds) {
  TREADLE_EXPECTS(seconds > 0 && seconds <= kLongestLease, "a job is taken for a time");
}

}  // namespace

StudyStorage::~StudyStorage() = default;

std::vector<std::string> StudyStorage::studies() {
  std::vector<std::string> names = call_plugin(*this, "studies", [&] { return do_studies(); });
  std::sort(names.begin(), names.end());
  // Others may have written there as well.
  const auto bad = std::find_if_not(names.begin(), names.end(), is_name);
  if (bad != names.end()) {
    throw StorageError("the storage has a study called " + quote_text(*bad) +
                       ", as no study is: it was changed or damaged; go on with a copy from "
                       "before, or at another location");
  }
  return names;
}

nlohmann::json StudyStorage::create(const std::string& study, const nlohmann::json& description) {
  expect_name(study);
  return call_plugin(*this, "create", [&] { return do_create(study, description); });
}

std::optional<nlohmann::json> StudyStorage::description(const std::string& study) {
  expect_name(study);
  return call_plugin(*this, "description", [&] { return do_description(study); });
}

bool StudyStorage::claim(const std::string& study, std::int64_t job, const std::string& worker,
                         double seconds) {
  expect_job(study, job, worker);
  expect_lease(seconds);
  return call_plugin(*this, "claim", [&] { return do_claim(study, job, worker, seconds); });
}

bool StudyStorage::renew(const std::string& study, std::int64_t job, const std::string& worker,
                         double seconds) {
  expect_job(study, job, worker);
  expect_lease(seconds);
  return call_plugin(*this, "renew", [&] { return do_renew(study, job, worker, seconds); });
}

void StudyStorage::release(const std::string& study, std::int64_t job, const std::string& worker) {
  expect_job(study, job, worker);
  call_plugin(*this, "release", [&] { do_release(study, job, worker); });
}

bool StudyStorage::finish(const std::string& study, std::int64_t job, const std::string& worker,
                          const nlohmann::json& result) {
  expect_job(study, job, worker);
  TREADLE_EXPECTS(!result.is_null(), "a job that has ended has a result");
  return call_plugin(*this, "finish", [&] { return do_finish(study, job, worker, result); });
}

std::vector<StoredResult> StudyStorage::results(const std::string& study, std::int64_t after) {
  expect_name(study);
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
  expect_name(study);
  return call_plugin(*this, "end", [&] { return do_end(study, how); });
}

nlohmann::json StudyStorage::ended(const std::string& study) {
  expect_name(study);
  return call_plugin(*this, "ended", [&] { return do_ended(study); });
}

}  // namespace treadle
