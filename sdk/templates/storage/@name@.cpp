#include <treadle/sdk.h>

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>

namespace {

using Json = nlohmann::json;

/// Holds the lock of a file for as long as it lives. The kernel lets go of it when its process dies.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_ < 0)
      throw treadle::StorageError(path +
                                  ": cannot be opened: " + std::generic_category().message(errno));
    while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FileLock() { ::close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

/// Which start of this machine it is, and the seconds since then: the same for all its processes,
/// whatever the wall clock says.
struct Moment {
  std::string boot;
  double seconds;

  static Moment now() {
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    timespec time{};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return {boot, static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)};
  }
};

/// Studies in one JSON file: {"iris": {"description", "ended", "results", "jobs": {"0": {"worker",
/// "boot", "until", "sequence", "result"}}}}. Each call locks, reads the file, and replaces it when
/// it changes something. For studies of some hundred jobs: each call reads all of it.
class @Name@ final : public treadle::StudyStorage {
 public:
  // Touches nothing: a document may be checked without being run.
  explicit @Name@(const treadle::Config& config) : path_(config.get<std::string>("location")) {}

 private:
  /// Calls `work` with what there is, and keeps what it made of it.
  void locked(const std::function<void(Json& studies)>& work) const {
    const FileLock lock(path_.string() + ".lock");
    Json studies = Json::object();
    if (std::filesystem::exists(path_)) {
      studies = Json::parse(std::ifstream(path_), nullptr, false);
      if (!studies.is_object())
        throw treadle::StorageError(path_.string() + ": is no file of studies; choose another");
    }
    const Json before = studies;
    work(studies);
    if (studies != before)
      treadle::write_file_atomically(path_, studies.dump());
  }

  static bool has(const Json& job, const std::string& worker) {
    return job.is_object() && !job.contains("result") && job.at("worker") == worker;
  }
  static Json lease(const std::string& worker, const Moment& now, double seconds) {
    return {{"worker", worker}, {"boot", now.boot}, {"until", now.seconds + seconds}};
  }

  /// Decides by a job, null where nobody has it, whether to change it, and changes it.
  bool change(const std::string& study, std::int64_t job,
              const std::function<bool(Json& kept, Json& of_study)>& decide) const {
    bool changed = false;
    locked([&](Json& studies) {
      Json& of_study = studies.at(study);
      const std::string key = std::to_string(job);
      Json kept = of_study["jobs"].value(key, Json());
      changed = decide(kept, of_study);
      if (changed)
        of_study["jobs"][key] = kept;
    });
    return changed;
  }

  std::vector<std::string> do_studies() override {
    std::vector<std::string> names;
    locked([&](Json& studies) {
      for (const auto& [name, study] : studies.items())
        names.push_back(name);
    });
    return names;
  }

  Json do_create(const std::string& study, const Json& description) override {
    Json first;
    locked([&](Json& studies) {
      if (!studies.contains(study))
        studies[study] = {{"description", description},
                          {"ended", nullptr},
                          {"results", 0},
                          {"jobs", Json::object()}};
      first = studies[study]["description"];
    });
    return first;
  }

  std::optional<Json> do_description(const std::string& study) override {
    std::optional<Json> description;
    locked([&](Json& studies) {
      if (studies.contains(study))
        description = studies[study]["description"];
    });
    return description;
  }

  bool do_claim(const std::string& study, std::int64_t job, const std::string& worker,
                double seconds) override {
    return change(study, job, [&](Json& kept, Json&) {
      const Moment now = Moment::now();  // with the lock: waiting for it may have taken a while
      const bool is_free = kept.is_null() || has(kept, worker) ||
                           (!kept.contains("result") &&
                            (kept.at("boot") != now.boot || kept.at("until") <= now.seconds));
      if (is_free)
        kept = lease(worker, now, seconds);
      return is_free;
    });
  }

  bool do_renew(const std::string& study, std::int64_t job, const std::string& worker,
                double seconds) override {
    return change(study, job, [&](Json& kept, Json&) {
      if (!has(kept, worker))
        return false;
      kept = lease(worker, Moment::now(), seconds);
      return true;
    });
  }

  void do_release(const std::string& study, std::int64_t job, const std::string& worker) override {
    change(study, job, [&](Json& kept, Json&) {
      if (!has(kept, worker))
        return false;
      kept = nullptr;
      return true;
    });
  }

  bool do_finish(const std::string& study, std::int64_t job, const std::string& worker,
                 const Json& result) override {
    return change(study, job, [&](Json& kept, Json& of_study) {
      if (!has(kept, worker))
        return false;
      of_study["results"] = of_study["results"].get<std::int64_t>() + 1;
      kept = {{"worker", worker}, {"sequence", of_study["results"]}, {"result", result}};
      return true;
    });
  }

  std::vector<treadle::StoredResult> do_results(const std::string& study,
                                                std::int64_t after) override {
    std::vector<treadle::StoredResult> results;
    locked([&](Json& studies) {
      for (const auto& [job, kept] : studies.at(study)["jobs"].items()) {
        if (kept.is_object() && kept.contains("result") && kept["sequence"] > after)
          results.push_back({kept["sequence"], std::stoll(job), kept["worker"], kept["result"]});
      }
    });
    std::sort(results.begin(), results.end(),
              [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    return results;
  }

  Json do_end(const std::string& study, const Json& how) override {
    Json stands;
    locked([&](Json& studies) {
      Json& ended = studies.at(study)["ended"];
      if (ended.is_null() || how.is_null())
        ended = how;
      stands = ended;
    });
    return stands;
  }

  Json do_ended(const std::string& study) override {
    Json ended;
    locked([&](Json& studies) { ended = studies.at(study)["ended"]; });
    return ended;
  }

  std::filesystem::path path_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
