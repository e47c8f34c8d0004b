#include <treadle/engine/trials.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/engine/thread_budget.h>

namespace treadle::engine {
namespace {

TEST(RunTrials, RunsEachOnce) {
  std::vector<std::atomic<int>> runs(17);
  ThreadBudget budget(2);

  budget.run([&] { run_trials(17, {2}, [&](std::size_t i, const Settled&) { ++runs[i]; }); });

  for (const auto& count : runs)
    EXPECT_EQ(count.load(), 1);
}

TEST(RunTrials, RunsAsManyAtOnceAsAllowed) {
  std::barrier meet(2);  // each waits for another: one at a time would never end
  ThreadBudget budget(2);

  budget.run([&] {
    run_trials(4, {2}, [&](std::size_t, const Settled& settled) {
      settled();
      meet.arrive_and_wait();
    });
  });
}

/// Counts how many run at the same time.
class Crowd {
 public:
  class Member {
   public:
    explicit Member(Crowd& crowd) : crowd_(crowd) {
      const int now = ++crowd_.running_;
      int seen = crowd_.most_.load();
      while (now > seen && !crowd_.most_.compare_exchange_weak(seen, now)) {
      }
    }
    ~Member() { --crowd_.running_; }

   private:
    Crowd& crowd_;
  };
  int now() const { return running_.load(); }
  int most() const { return most_.load(); }

 private:
  std::atomic<int> running_{0};
  std::atomic<int> most_{0};
};

constexpr std::chrono::milliseconds kAWhile{5};  // enough for others to begin, if they may

TEST(RunTrials, NeverRunsMoreAtOnceThanAllowed) {
  Crowd crowd;
  ThreadBudget budget(4);

  budget.run([&] {
    run_trials(40, {2}, [&](std::size_t, const Settled& settled) {
      const Crowd::Member member(crowd);
      settled();
      std::this_thread::yield();
    });
  });

  EXPECT_LE(crowd.most(), 2);
}

TEST(RunTrials, RunsOneAloneUntilItHasSettled) {
  std::atomic<int> begun{0};
  std::vector<int> begun_when_settling;
  ThreadBudget budget(3);

  budget.run([&] {
    run_trials(6, {3}, [&](std::size_t, const Settled& settled) {
      const int mine = ++begun;
      std::this_thread::sleep_for(kAWhile);
      // Nobody writes to the list at the same time: that is what is tested.
      begun_when_settling.push_back(begun.load() - mine);
      settled();
      std::this_thread::sleep_for(kAWhile);
    });
  });

  EXPECT_EQ(begun_when_settling, std::vector<int>(6, 0));
}

TEST(RunTrials, RunsOneAtATimeWhenNoneSettles) {
  Crowd crowd;
  ThreadBudget budget(3);

  budget.run([&] {
    run_trials(6, {3}, [&](std::size_t, const Settled&) {
      const Crowd::Member member(crowd);
      std::this_thread::sleep_for(kAWhile);
    });
  });

  EXPECT_EQ(crowd.most(), 1);
}

TEST(RunTrials, RunsNoMoreAtOnceThanFit) {
  Crowd crowd;
  std::atomic<int> asked{0};
  ThreadBudget budget(4);

  budget.run([&] {
    const TrialLimits limits{4, [&] {
                               ++asked;
                               return crowd.now() < 2;
                             }};
    run_trials(9, limits, [&](std::size_t, const Settled& settled) {
      const Crowd::Member member(crowd);
      settled();
      std::this_thread::sleep_for(kAWhile);
    });
  });

  EXPECT_EQ(crowd.most(), 2);
  EXPECT_GE(asked.load(), 4);
}

TEST(RunTrials, RunsAllOneAfterAnotherWhereNoTwoFit) {
  Crowd crowd;
  std::atomic<int> runs{0};
  ThreadBudget budget(3);

  budget.run([&] {
    run_trials(5, {3, [] { return false; }}, [&](std::size_t, const Settled& settled) {
      const Crowd::Member member(crowd);
      settled();
      std::this_thread::sleep_for(kAWhile);
      ++runs;
    });
  });

  EXPECT_EQ(runs.load(), 5);
  EXPECT_EQ(crowd.most(), 1);
}

TEST(RunTrials, StartsNoMoreOnceOneHasFailedBesideOthers) {
  std::atomic<int> started{0};
  std::barrier both_run(2);
  ThreadBudget budget(2);

  budget.run([&] {
    EXPECT_THROW(run_trials(10, {2},
                            [&](std::size_t i, const Settled& settled) {
                              ++started;
                              settled();
                              both_run.arrive_and_wait();
                              if (i == 1)
                                throw TrainingError("the second");
                              std::this_thread::sleep_for(10 * kAWhile);
                            }),
                 TrainingError);
  });

  EXPECT_EQ(started.load(), 2);
}

TEST(RunTrials, RethrowsTheFailureOfTheLowestIndexAndStartsNoMore) {
  std::atomic<int> started{0};
  ThreadBudget budget(1);
  std::string message;

  budget.run([&] {
    try {
      run_trials(10, {1}, [&](std::size_t i, const Settled&) {
        ++started;
        if (i >= 3)
          throw TrainingError("trial " + std::to_string(i));
      });
    } catch (const TrainingError& error) {
      message = error.what();
    }
  });

  EXPECT_EQ(message, "trial 3");
  EXPECT_EQ(started.load(), 4);
}

}  // namespace
}  // namespace treadle::engine
