#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/file.h>
#include <nlohmann/json.hpp>

#include <treadle/testing/search/storage_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_storages {
namespace {

using nlohmann::json;

/// What a storage keeps, as JSON: {"a study": {"description", "ended", "ends": 2, "jobs": {"7":
/// {"worker", "until", "sequence", "result"}}}}.
class Place {
 public:
  virtual ~Place() = default;
  /// Reads what there is, has `work` change it and keeps it, with everybody else locked out.
  virtual void change(const std::function<void(json& state)>& work) = 0;
};

/// A file that is replaced with each change, and another one for the lock.
class FilePlace final : public Place {
 public:
  explicit FilePlace(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void change(const std::function<void(json& state)>& work) override {
    const Lock lock(folder_ / "lock");
    std::ifstream file(folder_ / "studies.json");
    json state = file ? json::parse(file) : json::object();
    work(state);
    std::ofstream(folder_ / "next.json") << state.dump();
    std::filesystem::rename(folder_ / "next.json", folder_ / "studies.json");
  }

 private:
  class Lock {
   public:
    explicit Lock(const std::filesystem::path& path)
        : file_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
      ::flock(file_, LOCK_EX);
    }
    ~Lock() { ::close(file_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int file_;
  };

  std::filesystem::path folder_;
};

/// The memory of this process.
class MemoryPlace final : public Place {
 public:
  explicit MemoryPlace(const std::filesystem::path& folder) : folder_(folder) {}

  void change(const std::function<void(json& state)>& work) override {
    const std::lock_guard lock(mutex_);
    json& state = all_[folder_];
    if (state.is_null())
      state = json::object();
    work(state);
  }

 private:
  static inline std::mutex mutex_;
  static inline std::map<std::filesystem::path, json> all_;
  std::filesystem::path folder_;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Whom the job has, what is asked for, and what a right storage would do.
struct Asked {
  const std::string& study;
  std::int64_t job;
  const std::string& worker;
  const json& kept;  ///< of the job; null where nobody has it
  bool answer;
};

/// What a defect changes. Each is given the right answer, or the right value, and returns its own.
struct Changes {
  std::function<bool(const Asked&)> claim = {};
  std::function<bool(const Asked&)> renew = {};
  std::function<bool(const Asked&)> finish = {};
  std::function<bool(const Asked&)> release = {};
  std::function<bool(const Asked&)> keeps = {};  ///< what finish() has said yes to
  std::function<double(double until)> renewed = {};
  std::function<bool(double until)> passed = {};
  std::function<json(const json& first, const json& given)> description = {};
  std::function<json(const json& first, const json& given)> end = {};
  std::function<json(const json& result)> result = {};
  std::function<void(std::vector<StoredResult>&, const json& jobs)> results = {};
  std::function<void(const std::filesystem::path&)> made = {};
  std::function<void()> called = {};
};

template <typename Change, typename Right, typename... Arguments>
Right changed(const Change& change, Right right, const Arguments&... arguments) {
  return change ? change(arguments...) : right;
}

class Keeping final : public StudyStorage {
 public:
  Keeping(std::unique_ptr<Place> place, Changes changes, const std::filesystem::path& folder)
      : place_(std::move(place)), changes_(std::move(changes)) {
    if (changes_.made)
      changes_.made(folder);
  }

 private:
  void change(const std::function<void(json& state)>& work) {
    if (changes_.called)
      changes_.called();
    place_->change(work);
  }

  std::vector<std::string> do_studies() override {
    std::vector<std::string> names;
    change([&](json& state) {
      for (const auto& [name, study] : state.items())
        names.push_back(name);
    });
    return names;
  }

  json do_create(const std::string& study, const json& description) override {
    json got;
    change([&](json& state) {
      if (!state.contains(study))
        state[study] = {{"description", description}, {"ends", 0}, {"jobs", json::object()}};
      const json& first = state[study]["description"];
      got = changed(changes_.description, first, first, description);
    });
    return got;
  }

  std::optional<json> do_description(const std::string& study) override {
    std::optional<json> got;
    change([&](json& state) {
      if (state.contains(study))
        got = state[study]["description"];
    });
    return got;
  }

  /// Decides about a job by what it has, then `act`s on it.
  bool decide(const std::string& study, std::int64_t job, const std::string& worker,
              const std::function<bool(const json& kept)>& right,
              const std::function<bool(const Asked&)>& wrong,
              const std::function<void(json& kept, json& of_study)>& act) {
    bool answer = false;
    change([&](json& state) {
      json& of_study = state.at(study);
      json& jobs = of_study["jobs"];
      const std::string key = std::to_string(job);
      json kept = jobs.value(key, json());
      answer = right(kept);
      answer = changed(wrong, answer, Asked{study, job, worker, kept, answer});
      if (answer)
        act(kept, of_study);
      jobs[key] = kept;
    });
    return answer;
  }

  static bool has(const json& kept, const std::string& worker) {
    return kept.is_object() && kept["worker"] == worker && !kept.contains("result");
  }

  bool do_claim(const std::string& study, std::int64_t job, const std::string& worker,
                double seconds) override {
    const auto right = [&](const json& kept) {
      if (kept.is_null() || has(kept, worker))
        return true;
      const double until = kept["until"];
      return !kept.contains("result") && changed(changes_.passed, until <= now(), until);
    };
    return decide(study, job, worker, right, changes_.claim, [&](json& kept, json&) {
      kept["worker"] = worker;
      kept["until"] = now() + seconds;
    });
  }

  bool do_renew(const std::string& study, std::int64_t job, const std::string& worker,
                double seconds) override {
    return decide(
        study, job, worker, [&](const json& kept) { return has(kept, worker); }, changes_.renew,
        [&](json& kept, json&) {
          kept["until"] = changed(changes_.renewed, now() + seconds, kept["until"].get<double>());
        });
  }

  void do_release(const std::string& study, std::int64_t job, const std::string& worker) override {
    decide(
        study, job, worker, [&](const json& kept) { return has(kept, worker); }, changes_.release,
        [&](json& kept, json&) { kept = nullptr; });
  }

  bool do_finish(const std::string& study, std::int64_t job, const std::string& worker,
                 const json& result) override {
    return decide(
        study, job, worker, [&](const json& kept) { return has(kept, worker); }, changes_.finish,
        [&](json& kept, json& of_study) {
          if (!changed(changes_.keeps, true, Asked{study, job, worker, kept, true}))
            return;
          if (kept.is_null() || !kept.contains("sequence"))
            kept["sequence"] = of_study["ends"] = of_study["ends"].get<std::int64_t>() + 1;
          kept["worker"] = worker;
          kept["result"] = changed(changes_.result, result, result);
        });
  }

  std::vector<StoredResult> do_results(const std::string& study, std::int64_t after) override {
    std::vector<StoredResult> results;
    change([&](json& state) {
      const json& jobs = state.at(study)["jobs"];
      for (const auto& [job, kept] : jobs.items()) {
        if (kept.is_object() && kept.contains("result") && kept["sequence"] > after)
          results.push_back({kept["sequence"], std::stoll(job), kept["worker"], kept["result"]});
      }
      std::sort(results.begin(), results.end(),
                [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
      if (changes_.results)
        changes_.results(results, jobs);
    });
    return results;
  }

  json do_end(const std::string& study, const json& how) override {
    json ended;
    change([&](json& state) {
      const json first = state.at(study).value("ended", json());
      ended = how.is_null() || first.is_null() ? how : first;
      ended = changed(changes_.end, ended, ended, how);
      state[study]["ended"] = ended;
    });
    return ended;
  }

  json do_ended(const std::string& study) override {
    json ended;
    change([&](json& state) { ended = state.at(study).value("ended", json()); });
    return ended;
  }

  std::unique_ptr<Place> place_;
  Changes changes_;
};

template <typename Kind = FilePlace>
StorageCase keeping(std::string name, const Changes& changes = {}) {
  return {.name = std::move(name),
          .make =
              [changes](const std::filesystem::path& folder) {
                return std::make_unique<Keeping>(std::make_unique<Kind>(folder), changes, folder);
              },
          .lease = 0.1,
          .jobs = 30,
          .large = 10'000};
}

/// So many workers are killed that one of them surely has a job.
StorageCase with_many_jobs(StorageCase one) {
  one.jobs = 300;
  one.patience = 2;
  return one;
}

constexpr const char* kStorm = "NoJobIsLostOrDoneTwiceThoughWorkersAreKilled";

std::vector<Wrong<StorageCase>> all() {
  const auto ended_already = [](const Asked& asked) {
    return asked.kept.is_object() && asked.kept.contains("result");
  };
  return {
      {keeping("WritesWhenItIsMade", {.made =
                                          [](const std::filesystem::path& folder) {
                                            std::ofstream(folder / "made") << "!";
                                          }}),
       {"MakingOneTouchesNothing"}},
      {keeping("TakesItsOwnDescription",
               {.description = [](const json&, const json& given) { return given; }}),
       {"TheFirstDescriptionOfAStudyStands", "SeveralProcessesBeginAtOnce"}},
      {keeping("RefusesWhoeverHasTheJob", {.claim =
                                               [](const Asked& asked) {
                                                 return asked.answer &&
                                                        (asked.kept.is_null() ||
                                                         asked.kept["worker"] != asked.worker);
                                               }}),
       {"AJobIsOneWorkers"}},
      {with_many_jobs(keeping("LeasesNeverPass", {.passed = [](double) { return false; }})),
       {"ALeasePasses", "ARenewedLeasePassesLater", "ALateResultIsNotKept",
        "WhatAKilledWorkerLeavesIsKeptAndItsJobPasses",
        "AWorkerThatWasFrozenLosesItsJobAndNothingElse", kStorm}},
      {keeping("RenewsNothing", {.renewed = [](double until) { return until; }}),
       {"ARenewedLeasePassesLater", "ALeaseThatPassedIsTheWorkersUntilAnotherTakesIt"}},
      {keeping("NeverShortensALease",
               {.renewed = [](double until) { return std::max(until, now() + 1000); }}),
       {"ARenewedLeasePassesLater"}},
      {keeping("TakesNothingAfterItsLease", {.finish =
                                                 [](const Asked& asked) {
                                                   return asked.answer &&
                                                          asked.kept["until"] > now();
                                                 }}),
       {"ALeaseThatPassedIsTheWorkersUntilAnotherTakesIt"}},
      {keeping("KeepsLateResults", {.finish =
                                        [ended_already](const Asked& asked) {
                                          return asked.kept.is_object() && !ended_already(asked);
                                        }}),
       {"AJobIsOneWorkers", "StudiesHaveJobsOfTheirOwn", "ALateResultIsNotKept"}},
      {keeping("ReplacesResults", {.finish =
                                       [ended_already](const Asked& asked) {
                                         return asked.answer ||
                                                (ended_already(asked) &&
                                                 asked.kept["worker"] == asked.worker);
                                       }}),
       {"AJobHasOneResult"}},
      {keeping("GivesResultsBack", {.release =
                                        [](const Asked& asked) {
                                          return asked.kept.is_object() &&
                                                 asked.kept["worker"] == asked.worker;
                                        }}),
       {"AJobHasOneResult"}},
      {keeping("GivesBackForOthers",
               {.release = [ended_already](const Asked& asked) { return !ended_already(asked); }}),
       {"AJobThatIsGivenBackIsAnyones"}},
      {keeping("HasAllResultsAlways",
               {.results =
                    [](std::vector<StoredResult>& results, const json& jobs) {
                      results.clear();
                      for (const auto& [job, kept] : jobs.items()) {
                        if (kept.is_object() && kept.contains("result"))
                          results.push_back(
                              {kept["sequence"], std::stoll(job), kept["worker"], kept["result"]});
                      }
                      std::sort(results.begin(), results.end(), [](const auto& a, const auto& b) {
                        return a.sequence < b.sequence;
                      });
                    }}),
       {"ResultsAreInTheOrderInWhichJobsEnded", kStorm}},
      {keeping("ForgetsWhoItWas", {.results =
                                       [](std::vector<StoredResult>& results, const json&) {
                                         for (StoredResult& result : results)
                                           result.worker = "somebody";
                                       }}),
       {"StudiesHaveJobsOfTheirOwn", "ALateResultIsNotKept", "ResultsAreInTheOrderInWhichJobsEnded",
        "KeepsAnyNameAndAnyJson", kStorm}},
      {keeping("TheLastEndCounts", {.end = [](const json&, const json& how) { return how; }}),
       {"OfSeveralEndsTheFirstCounts"}},
      {keeping("RoundsResults", {.result =
                                     [](const json& result) {
                                       return result.is_array() && result[0].is_number_float()
                                                  ? json(0.1)
                                                  : result;
                                     }}),
       {"KeepsAnyNameAndAnyJson"}},
      {keeping("OfOneThread", {.called =
                                   [mine = OneThread()] {
                                     if (!mine.is_mine())
                                       throw std::logic_error("two threads at once");
                                   }}),
       {"ThreadsWithAnObjectEachExcludeEachOther"}},
      {keeping<MemoryPlace>("OfOneProcess"),
       {"SeveralProcessesBeginAtOnce", "ClaimsOfSeveralProcessesExcludeEachOther",
        "WhatAKilledWorkerLeavesIsKeptAndItsJobPasses",
        "AWorkerThatWasFrozenLosesItsJobAndNothingElse", kStorm}},
      {keeping("LosesTheFirstResultOfSomeWorkers",
               {.keeps =
                    [has_lost = std::make_shared<bool>(false)](const Asked& asked) {
                      return !asked.worker.starts_with("worker-") || std::exchange(*has_lost, true);
                    }}),
       {kStorm}}};
}

INSTANTIATE_TEST_SUITE_P(Right, StorageContract, ::testing::Values(keeping("Keeping")), CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, StorageContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_storages

std::vector<Defect> storage_defects() {
  return defects_of("StorageContract", wrong_storages::all());
}

}  // namespace treadle::testing
