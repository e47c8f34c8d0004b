#include <treadle/testing/search/storage_contract.h>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/search/study_storage.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/forked_process.h>
#include <treadle/testing/support/scratch_folder.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class StorageClaims : public ::testing::WithParamInterface<StorageCase> {
 protected:
  using Json = nlohmann::json;
  static constexpr double kLong = 1000;  // seconds: longer than any test
  static constexpr const char* kStudy = "study";

  std::unique_ptr<StudyStorage> make() const { return GetParam().make(folder_.path()); }

  /// With a study in it.
  std::unique_ptr<StudyStorage> with_study() const {
    auto storage = make();
    storage->create(kStudy, {{"trials", 3}});
    return storage;
  }

  static double lease() { return GetParam().lease; }
  static void wait(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  /// Until a lease that was taken before has passed.
  static void let_pass() { wait(1.2 * lease() + 0.02); }

  class Since {
   public:
    double seconds() const {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }

   private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

  static std::vector<std::int64_t> jobs_of(const std::vector<StoredResult>& results) {
    std::vector<std::int64_t> jobs;
    for (const StoredResult& result : results)
      jobs.push_back(result.job);
    return jobs;
  }

  const ScratchFolder folder_;
};

}  // namespace

LINKS_CLAIMS_OF(Storage)

CLAIM(Storage, MakingOneTouchesNothing) {
  make();

  EXPECT_EQ(folder_.files(), std::vector<std::string>());
}

CLAIM(Storage, KeepsStudiesByName) {
  const auto storage = make();
  EXPECT_EQ(storage->studies(), std::vector<std::string>());
  EXPECT_EQ(storage->description("b"), std::nullopt);

  storage->create("b", {{"seed", 1}});
  storage->create("a", {{"seed", 2}});

  const auto later = make();
  EXPECT_EQ(later->studies(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(later->description("a"), Json({{"seed", 2}}));
  EXPECT_EQ(later->description("b"), Json({{"seed", 1}}));
  EXPECT_EQ(later->description("c"), std::nullopt);
}

CLAIM(Storage, TheFirstDescriptionOfAStudyStands) {
  const auto first = make();
  const auto second = make();

  EXPECT_EQ(first->create("a", 1), Json(1));
  EXPECT_EQ(second->create("a", 2), Json(1));
  EXPECT_EQ(first->description("a"), Json(1));
  EXPECT_EQ(second->description("a"), Json(1));
}

CLAIM(Storage, AJobIsOneWorkers) {
  const auto first = with_study();
  const auto second = make();

  EXPECT_TRUE(first->claim(kStudy, 0, "A", kLong));
  EXPECT_FALSE(second->claim(kStudy, 0, "B", kLong));
  EXPECT_TRUE(first->claim(kStudy, 0, "A", kLong)) << "whoever has it may take it again";
  EXPECT_TRUE(second->claim(kStudy, 1, "B", kLong)) << "another job";
  EXPECT_FALSE(first->renew(kStudy, 1, "A", kLong));
  EXPECT_FALSE(first->finish(kStudy, 1, "A", 7));
  EXPECT_FALSE(first->finish(kStudy, 2, "A", 7)) << "a job that nobody has";
  EXPECT_EQ(jobs_of(first->results(kStudy, 0)), std::vector<std::int64_t>());
}

CLAIM(Storage, StudiesHaveJobsOfTheirOwn) {
  const auto storage = with_study();
  storage->create("other", 2);

  EXPECT_TRUE(storage->claim(kStudy, 0, "A", kLong));
  EXPECT_TRUE(storage->claim("other", 0, "B", kLong));
  EXPECT_FALSE(storage->finish("other", 0, "A", 1));
  EXPECT_TRUE(storage->finish("other", 0, "B", 2));

  EXPECT_EQ(jobs_of(storage->results(kStudy, 0)), std::vector<std::int64_t>());
  const auto others = storage->results("other", 0);
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].sequence, 1);
  EXPECT_EQ(others[0].worker, "B");
}

CLAIM(Storage, ALeasePasses) {
  const auto first = with_study();
  const auto second = make();
  ASSERT_EQ(second->studies().size(),
            1U);  // what the first call of an object takes is not measured
  const Since begin;
  ASSERT_TRUE(first->claim(kStudy, 0, "A", lease()));
  const bool is_taken = second->claim(kStudy, 0, "B", lease());
  if (begin.seconds() < lease()) {  // else this machine is too busy to say
    EXPECT_FALSE(is_taken) << "before";
  }

  let_pass();

  EXPECT_TRUE(second->claim(kStudy, 0, "B", kLong)) << "after";
  EXPECT_FALSE(first->claim(kStudy, 0, "A", kLong)) << "the other's has not passed";
}

CLAIM(Storage, ARenewedLeasePassesLater) {
  const auto first = with_study();
  const auto second = make();
  ASSERT_TRUE(first->claim(kStudy, 0, "A", lease()));
  ASSERT_TRUE(first->claim(kStudy, 1, "A", kLong));

  EXPECT_TRUE(first->renew(kStudy, 0, "A", kLong));
  EXPECT_TRUE(first->renew(kStudy, 1, "A", lease())) << "also from longer to shorter";
  let_pass();

  EXPECT_FALSE(second->claim(kStudy, 0, "B", kLong));
  EXPECT_TRUE(second->claim(kStudy, 1, "B", kLong));
}

CLAIM(Storage, ALeaseThatPassedIsTheWorkersUntilAnotherTakesIt) {
  const auto storage = with_study();
  ASSERT_TRUE(storage->claim(kStudy, 0, "A", lease()));
  ASSERT_TRUE(storage->claim(kStudy, 1, "A", lease()));
  let_pass();

  EXPECT_TRUE(storage->renew(kStudy, 0, "A", kLong));
  EXPECT_FALSE(storage->claim(kStudy, 0, "B", kLong));
  EXPECT_TRUE(storage->finish(kStudy, 1, "A", 7));
}

CLAIM(Storage, ALateResultIsNotKept) {
  const auto late = with_study();
  const auto quick = make();
  for (const std::int64_t job : {0, 1}) {
    ASSERT_TRUE(late->claim(kStudy, job, "late", lease()));
  }
  let_pass();
  for (const std::int64_t job : {0, 1}) {
    ASSERT_TRUE(quick->claim(kStudy, job, "quick", kLong));
  }

  EXPECT_FALSE(late->renew(kStudy, 0, "late", kLong));
  EXPECT_FALSE(late->finish(kStudy, 0, "late", "late")) << "before the other's";
  EXPECT_TRUE(quick->finish(kStudy, 0, "quick", "quick"));
  EXPECT_TRUE(quick->finish(kStudy, 1, "quick", "quick"));
  EXPECT_FALSE(late->finish(kStudy, 1, "late", "late")) << "behind the other's";

  for (const StoredResult& result : late->results(kStudy, 0)) {
    EXPECT_EQ(result.result, Json("quick"));
    EXPECT_EQ(result.worker, "quick");
  }
}

CLAIM(Storage, AJobHasOneResult) {
  const auto storage = with_study();
  ASSERT_TRUE(storage->claim(kStudy, 0, "A", lease()));
  EXPECT_TRUE(storage->finish(kStudy, 0, "A", {{"loss", 1}}));

  EXPECT_FALSE(storage->finish(kStudy, 0, "A", {{"loss", 2}}));
  EXPECT_FALSE(storage->claim(kStudy, 0, "A", kLong));
  EXPECT_FALSE(storage->renew(kStudy, 0, "A", kLong));
  storage->release(kStudy, 0, "A");
  let_pass();
  EXPECT_FALSE(storage->claim(kStudy, 0, "B", kLong));

  const auto results = storage->results(kStudy, 0);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].result, Json({{"loss", 1}}));
}

CLAIM(Storage, AJobThatIsGivenBackIsAnyones) {
  const auto first = with_study();
  const auto second = make();
  ASSERT_TRUE(first->claim(kStudy, 0, "A", kLong));

  second->release(kStudy, 0, "B");
  EXPECT_FALSE(second->claim(kStudy, 0, "B", kLong)) << "B never had it";
  first->release(kStudy, 0, "A");
  EXPECT_FALSE(first->renew(kStudy, 0, "A", kLong));
  EXPECT_FALSE(first->finish(kStudy, 0, "A", 1));
  EXPECT_TRUE(second->claim(kStudy, 0, "B", kLong));
  first->release(kStudy, 0, "A");
  EXPECT_FALSE(first->claim(kStudy, 0, "A", kLong));
  EXPECT_TRUE(second->finish(kStudy, 0, "B", 2));
}

CLAIM(Storage, ResultsAreInTheOrderInWhichJobsEnded) {
  const auto first = with_study();
  const auto second = make();
  for (const std::int64_t job : {0, 1, 2, 3}) {
    ASSERT_TRUE((job % 2 == 0 ? first : second)->claim(kStudy, job, job % 2 == 0 ? "A" : "B", 9));
  }

  for (const std::int64_t job : {2, 1, 3, 0}) {
    const std::string worker = job % 2 == 0 ? "A" : "B";
    EXPECT_TRUE((job % 2 == 0 ? first : second)->finish(kStudy, job, worker, job * 10));
  }

  for (StudyStorage* storage : {first.get(), second.get()}) {
    const auto all = storage->results(kStudy, 0);
    EXPECT_EQ(jobs_of(all), (std::vector<std::int64_t>{2, 1, 3, 0}));
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].sequence, static_cast<std::int64_t>(i) + 1);
      EXPECT_EQ(all[i].result, Json(all[i].job * 10));
      EXPECT_EQ(all[i].worker, all[i].job % 2 == 0 ? "A" : "B");
    }
    EXPECT_EQ(jobs_of(storage->results(kStudy, 2)), (std::vector<std::int64_t>{3, 0}));
    EXPECT_EQ(jobs_of(storage->results(kStudy, 4)), std::vector<std::int64_t>());
  }
}

CLAIM(Storage, OfSeveralEndsTheFirstCounts) {
  const auto first = with_study();
  const auto second = make();
  EXPECT_EQ(first->ended(kStudy), Json(nullptr));
  EXPECT_EQ(first->end(kStudy, nullptr), Json(nullptr));

  EXPECT_EQ(first->end(kStudy, "budget"), Json("budget"));
  EXPECT_EQ(second->ended(kStudy), Json("budget"));
  EXPECT_EQ(second->end(kStudy, "target"), Json("budget"));
  EXPECT_EQ(make()->end(kStudy, "stopped"), Json("budget")) << "opened anew";
  EXPECT_EQ(second->end(kStudy, nullptr), Json(nullptr)) << "taken back";
  EXPECT_EQ(first->ended(kStudy), Json(nullptr));
  EXPECT_EQ(first->end(kStudy, {{"reason", "target"}}), Json({{"reason", "target"}}));
  EXPECT_EQ(second->end(kStudy, "budget"), Json({{"reason", "target"}}));
}

CLAIM(Storage, KeepsAnyNameAndAnyJson) {
  const std::vector<std::string> names{"it's; DROP TABLE x -- \"\\", " ",
                                       "\xe2\x88\x9e \xf0\x9f\xa7\xb5", "a\nb\t%s$1?1",
                                       std::string(500, 'n')};
  const std::vector<Json> values{
      Json::parse(R"({"a": [1, 2.5, null, true, "x\u0000y\n\"'\\ü🧵"], "b": {"c": {}}})"),
      {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 1.0},
      {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max()},
      "",
      std::string(GetParam().large, 'x')};
  const auto storage = make();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    EXPECT_EQ(storage->create(name, values[i]), values[i]) << name;
    EXPECT_TRUE(storage->claim(name, 1'000'000'000'000, name, 1e9));
    EXPECT_TRUE(storage->finish(name, 1'000'000'000'000, name, values[i]));
    EXPECT_EQ(storage->end(name, values[i]), values[i]);
  }

  const auto later = make();
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(later->description(names[i]), values[i]);
    const auto results = later->results(names[i], 0);
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].worker, names[i]);
    EXPECT_EQ(results[0].job, 1'000'000'000'000);
    // The text too: 1.0 is not 1, and -0.0 not 0.
    EXPECT_EQ(results[0].result.dump(), values[i].dump());
  }
}

CLAIM(Storage, SeveralProcessesBeginAtOnce) {
  Bell start;
  std::vector<ForkedProcess> processes;
  for (int i = 0; i < 4; ++i) {
    processes.emplace_back([&, i] {
      start.await();
      const Json got = make()->create(kStudy, i);
      TREADLE_EXPECTS(got == make()->description(kStudy), "all have the same description");
    });
  }

  for (std::size_t i = 0; i < processes.size(); ++i)
    start.ring();

  for (ForkedProcess& process : processes)
    EXPECT_EQ(process.join(), "");
  EXPECT_EQ(make()->studies(), std::vector<std::string>{kStudy});
}

// Each takes what it gets, from an end of its own.
CLAIM(Storage, ClaimsOfSeveralProcessesExcludeEachOther) {
  constexpr std::int64_t kJobs = 60;
  with_study();
  Bell start;
  std::vector<ForkedProcess> processes;
  for (std::int64_t i = 0; i < 4; ++i) {
    processes.emplace_back([&, i] {
      const auto storage = make();
      const std::string worker = "worker " + std::to_string(i);
      start.await();
      for (std::int64_t step = 0; step < kJobs; ++step) {
        const std::int64_t job = (step + i * kJobs / 8) % kJobs;
        if (storage->claim(kStudy, job, worker, kLong) &&
            !storage->finish(kStudy, job, worker, worker))
          throw ContractViolation(worker + " does not have job " + std::to_string(job) +
                                  ", which it has claimed");
      }
    });
  }

  for (std::size_t i = 0; i < processes.size(); ++i)
    start.ring();

  for (ForkedProcess& process : processes)
    EXPECT_EQ(process.join(), "");
  auto jobs = jobs_of(make()->results(kStudy, 0));
  std::sort(jobs.begin(), jobs.end());
  ASSERT_EQ(jobs.size(), static_cast<std::size_t>(kJobs));
  for (std::int64_t job = 0; job < kJobs; ++job)
    EXPECT_EQ(jobs[static_cast<std::size_t>(job)], job);
}

CLAIM(Storage, ThreadsWithAnObjectEachExcludeEachOther) {
  constexpr std::int64_t kJobs = 30;
  with_study();
  std::vector<int> taken(4);

  const auto errors = at_once(taken.size(), [&](std::size_t thread) {
    const auto storage = make();
    const std::string worker = "thread " + std::to_string(thread);
    for (std::int64_t job = 0; job < kJobs; ++job)
      taken[thread] += storage->claim(kStudy, job, worker, kLong) ? 1 : 0;
  });

  EXPECT_EQ(errors, kNoErrors);
  EXPECT_EQ(taken[0] + taken[1] + taken[2] + taken[3], kJobs);
}

CLAIM(Storage, WhatAKilledWorkerLeavesIsKeptAndItsJobPasses) {
  Bell done;
  ForkedProcess worker([&] {
    const auto storage = with_study();
    storage->claim(kStudy, 0, "A", kLong);
    storage->finish(kStudy, 0, "A", 7);
    storage->end(kStudy, "target");
    storage->claim(kStudy, 1, "A", lease());
    done.ring();
    wait(kLong);
  });
  done.await();
  worker.kill();

  const auto storage = make();
  EXPECT_EQ(storage->description(kStudy), Json({{"trials", 3}}));
  EXPECT_EQ(jobs_of(storage->results(kStudy, 0)), std::vector<std::int64_t>{0});
  EXPECT_EQ(storage->ended(kStudy), Json("target"));
  EXPECT_FALSE(storage->claim(kStudy, 0, "B", kLong));
  let_pass();
  EXPECT_TRUE(storage->claim(kStudy, 1, "B", kLong));
}

CLAIM(Storage, AWorkerThatWasFrozenLosesItsJobAndNothingElse) {
  Bell has_it;
  Bell go_on;
  with_study();
  ForkedProcess frozen([&] {
    const auto storage = make();
    storage->claim(kStudy, 0, "frozen", lease());
    has_it.ring();
    go_on.await();
    TREADLE_EXPECTS(!storage->renew(kStudy, 0, "frozen", kLong), "its lease has passed");
    TREADLE_EXPECTS(!storage->finish(kStudy, 0, "frozen", 1), "its lease has passed");
    TREADLE_EXPECTS(storage->claim(kStudy, 1, "frozen", kLong), "it may go on with another job");
    TREADLE_EXPECTS(storage->finish(kStudy, 1, "frozen", 2), "it may go on with another job");
  });
  has_it.await();
  frozen.freeze();
  go_on.ring();
  let_pass();
  {
    const auto storage = make();
    EXPECT_TRUE(storage->claim(kStudy, 0, "quick", kLong));
    EXPECT_TRUE(storage->finish(kStudy, 0, "quick", 3));
  }

  frozen.thaw();

  EXPECT_EQ(frozen.join(), "");
  const auto results = make()->results(kStudy, 0);
  EXPECT_EQ(jobs_of(results), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(results.at(0).result, Json(3));
}

// Workers write down what they were told has been kept. Whatever is killed when, each job has one
// result in the end, and it is the one that somebody was told of.
CLAIM(Storage, NoJobIsLostOrDoneTwiceThoughWorkersAreKilled) {
  const std::int64_t jobs = GetParam().jobs;
  const ScratchFolder told;
  const std::filesystem::path acknowledged = told.path() / "acknowledged";
  with_study();
  const auto work = [&](const std::string& worker, unsigned seed) {
    std::minstd_rand random(seed);
    const int log = ::open(acknowledged.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    const auto storage = make();
    std::set<std::int64_t> ended;
    std::int64_t sequence = 0;
    const Since begin;
    for (std::int64_t job = static_cast<std::int64_t>(random()) % jobs;
         static_cast<std::int64_t>(ended.size()) < jobs; job = (job + 1) % jobs) {
      if (begin.seconds() > GetParam().patience)
        throw TrainingError(worker + " found no end");
      for (const StoredResult& result : storage->results(kStudy, sequence)) {
        ended.insert(result.job);
        sequence = result.sequence;
      }
      if (ended.count(job) != 0 || !storage->claim(kStudy, job, worker, lease()))
        continue;
      wait(0.001 * static_cast<double>(random() % 8));
      if (storage->finish(kStudy, job, worker, {{"by", worker}})) {
        const std::string line = std::to_string(job) + " " + worker + "\n";
        TREADLE_EXPECTS(::write(log, line.data(), line.size()) > 0, "the log can be written");
      }
    }
  };
  std::minstd_rand random(1);
  unsigned started = 0;
  const auto start = [&] {
    ++started;
    return ForkedProcess([&] { work("worker-" + std::to_string(started), 77 * started); });
  };
  std::vector<ForkedProcess> workers;
  for (int i = 0; i < 4; ++i)
    workers.push_back(start());

  const auto most = static_cast<int>(jobs / 15);
  int kills = 0;
  const auto some_have_ended = [&] {
    return std::any_of(workers.begin(), workers.end(),
                       [](ForkedProcess& worker) { return worker.has_ended(); });
  };
  for (; kills < most && !some_have_ended(); ++kills) {
    wait(0.001 * static_cast<double>(5 + random() % 40));
    ForkedProcess& victim = workers[random() % workers.size()];
    victim.kill();
    victim = start();
  }

  for (ForkedProcess& worker : workers)
    EXPECT_EQ(worker.join(), "");
  EXPECT_GE(kills, most / 4) << "the study was over too soon: raise StorageCase::jobs";
  std::map<std::int64_t, std::string> kept;
  for (const StoredResult& result : make()->results(kStudy, 0)) {
    EXPECT_TRUE(kept.emplace(result.job, result.worker).second) << "job " << result.job << " twice";
    EXPECT_EQ(result.result, Json({{"by", result.worker}}));
  }
  EXPECT_EQ(kept.size(), static_cast<std::size_t>(jobs));
  std::ifstream lines(acknowledged);
  std::set<std::int64_t> seen;
  std::string worker;
  for (std::int64_t job = 0; lines >> job >> worker;) {
    EXPECT_TRUE(seen.insert(job).second) << "job " << job << " was kept for two workers";
    EXPECT_EQ(kept[job], worker) << "the result of job " << job << " was lost";
  }
  EXPECT_GE(seen.size(), kept.size() - static_cast<std::size_t>(kills));
}

}  // namespace treadle::testing
