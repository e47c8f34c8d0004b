#include "journal.h"

#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>

#include <treadle/search/storage/stored_text.h>

namespace treadle::storages {
namespace {

constexpr const char* kVersion = "treadle_storage";

[[noreturn]] void refuse_line(const std::string& place) {
  throw StorageError(place +
                     ": is no line of a journal of studies: it is damaged; delete this line (a job "
                     "whose result was in it is done again), or put back a copy of the file");
}

std::int64_t job_in(const nlohmann::json& line) {
  const nlohmann::json& job = line.at("job");
  // One that is too large for the type is negative in it.
  if (!job.is_number_integer() || job.get<std::int64_t>() < 0)
    throw std::out_of_range("no number of a job");
  return job.get<std::int64_t>();
}

std::string first_line() {
  return stored({{kVersion, kSchemaVersion}});
}

}  // namespace

Journal::Journal(const Config& config)
    : Journal(config.get<std::string>("location"), kLockPatience) {}

Journal::Journal(std::filesystem::path path, Patience::Duration patience)
    : path_(std::move(path)), patience_(patience) {}

JournalFile::Lock Journal::caught_up() {
  if (!file_) {
    path_ = std::filesystem::absolute(path_);
    file_.emplace(path_, first_line());
  }
  JournalFile::Lock lock = file_->lock(Patience(patience_, kLongestLockWait));
  file_->read_new([&](std::string_view text, const std::string& place) {
    const nlohmann::json line = parse_json(text);
    if (!has_version_) {
      if (!line.is_object() || !line.contains(kVersion))
        refuse_foreign(path_.string(), first_line());
      const nlohmann::json& version = line[kVersion];
      if (version != kSchemaVersion)
        refuse_version(path_.string(),
                       version.is_number_integer() ? version.get<std::int64_t>() : 0);
      has_version_ = true;
      return;
    }
    try {
      apply(line);
    } catch (const nlohmann::json::exception&) {
      refuse_line(place);
    } catch (const std::out_of_range&) {
      refuse_line(place);
    }
  });
  if (!has_version_) {
    file_->append(first_line());
    has_version_ = true;
  }
  return lock;
}

void Journal::append(const nlohmann::json& line) {
  file_->append(stored(line));
  apply(line);
}

void Journal::apply(const nlohmann::json& line) {
  using Apply = void (*)(Study & study, const nlohmann::json& line);
  static constexpr std::pair<std::string_view, Apply> kOperations[] = {
      {"lease",
       [](Study& study, const nlohmann::json& line) {
         Job& job = study.jobs[job_in(line)];
         if (job.has_ended)
           throw std::out_of_range("a lease of a job that has a result");
         job.worker = line.at("worker").get<std::string>();
         job.lease.until = {line.at("boot").get<std::string>(), line.at("until").get<double>()};
       }},
      {"release",
       [](Study& study, const nlohmann::json& line) {
         const auto job = study.jobs.find(job_in(line));
         if (job == study.jobs.end())
           return;  // the line in which somebody took it was damaged, and deleted
         if (job->second.has_ended)
           throw std::out_of_range("a job that has a result was given back");
         study.jobs.erase(job);
       }},
      {"finish",
       [](Study& study, const nlohmann::json& line) {
         const std::int64_t number = job_in(line);
         auto worker = line.at("worker").get<std::string>();
         Job& job = study.jobs[number];
         if (std::exchange(job.has_ended, true))
           throw std::out_of_range("a second result");
         job.worker = worker;
         study.results.push_back({static_cast<std::int64_t>(study.results.size()) + 1, number,
                                  std::move(worker), line.at("result")});
       }},
      {"end", [](Study& study, const nlohmann::json& line) { study.ended = line.at("how"); }}};

  const auto operation = line.at("op").get<std::string>();
  const auto name = line.at("study").get<std::string>();
  if (operation == "create") {
    const nlohmann::json& description = line.at("description");
    const auto [study, is_new] = studies_.try_emplace(name);
    if (!is_new)
      throw std::out_of_range("a second study of this name");
    study->second.description = description;
    return;
  }
  for (const auto& [word, apply] : kOperations) {
    if (word == operation)
      return apply(studies_.at(name), line);
  }
  throw std::out_of_range("an operation that there is not");
}

Journal::Study& Journal::known(const std::string& study) {
  const auto found = studies_.find(study);
  if (found == studies_.end())
    refuse_study(path_.string(), study);
  return found->second;
}

const Journal::Job* Journal::job_of(const std::string& study, std::int64_t job) {
  const auto& jobs = known(study).jobs;
  const auto found = jobs.find(job);
  return found == jobs.end() ? nullptr : &found->second;
}

void Journal::append_lease(const std::string& study, std::int64_t job, const std::string& worker,
                           const BootTime& now, double seconds) {
  append({{"op", "lease"},
          {"study", study},
          {"job", job},
          {"worker", worker},
          {"boot", now.boot},
          {"until", now.seconds + seconds}});
}

std::vector<std::string> Journal::do_studies() {
  const auto lock = caught_up();
  std::vector<std::string> names;
  for (const auto& [name, study] : studies_)
    names.push_back(name);
  return names;
}

nlohmann::json Journal::do_create(const std::string& study, const nlohmann::json& description) {
  const auto lock = caught_up();
  if (studies_.count(study) == 0)
    append({{"op", "create"}, {"study", study}, {"description", description}});
  return known(study).description;
}

std::optional<nlohmann::json> Journal::do_description(const std::string& study) {
  const auto lock = caught_up();
  const auto found = studies_.find(study);
  return found == studies_.end() ? std::nullopt : std::optional(found->second.description);
}

bool Journal::do_claim(const std::string& study, std::int64_t job, const std::string& worker,
                       double seconds) {
  const auto lock = caught_up();
  const BootTime now = BootTime::now();
  const Job* const found = job_of(study, job);
  if (found != nullptr &&
      (found->has_ended || (found->worker != worker && !found->lease.has_passed(now))))
    return false;
  append_lease(study, job, worker, now, seconds);
  return true;
}

bool Journal::do_renew(const std::string& study, std::int64_t job, const std::string& worker,
                       double seconds) {
  const auto lock = caught_up();
  const Job* const found = job_of(study, job);
  if (found == nullptr || !found->is_of(worker))
    return false;
  append_lease(study, job, worker, BootTime::now(), seconds);
  return true;
}

void Journal::do_release(const std::string& study, std::int64_t job, const std::string& worker) {
  const auto lock = caught_up();
  const Job* const found = job_of(study, job);
  if (found != nullptr && found->is_of(worker))
    append({{"op", "release"}, {"study", study}, {"job", job}, {"worker", worker}});
}

bool Journal::do_finish(const std::string& study, std::int64_t job, const std::string& worker,
                        const nlohmann::json& result) {
  const auto lock = caught_up();
  const Job* const found = job_of(study, job);
  if (found == nullptr || !found->is_of(worker))
    return false;
  append(
      {{"op", "finish"}, {"study", study}, {"job", job}, {"worker", worker}, {"result", result}});
  return true;
}

std::vector<StoredResult> Journal::do_results(const std::string& study, std::int64_t after) {
  const auto lock = caught_up();
  const std::vector<StoredResult>& all = known(study).results;
  if (after >= static_cast<std::int64_t>(all.size()))
    return {};
  return {all.begin() + after, all.end()};
}

nlohmann::json Journal::do_end(const std::string& study, const nlohmann::json& how) {
  const auto lock = caught_up();
  const nlohmann::json& ended = known(study).ended;
  if (ended != how && (ended.is_null() || how.is_null()))
    append({{"op", "end"}, {"study", study}, {"how", how}});
  return ended;
}

nlohmann::json Journal::do_ended(const std::string& study) {
  const auto lock = caught_up();
  return known(study).ended;
}

}  // namespace treadle::storages
