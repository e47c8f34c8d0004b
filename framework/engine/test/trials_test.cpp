#include <treadle/engine/trials.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/engine/thread_budget.h>

namespace treadle::engine {
namespace {

TEST(RunTrials, RunsEachOnce) {
  std::vector<std::atomic<int>> runs(17);
  ThreadBudget budget(2);

  budget.run([&] { run_trials(17, 2, [&](std::size_t i) { ++runs[i]; }); });

  for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
}

TEST(RunTrials, RunsAsManyAtOnceAsAllowed) {
  std::barrier meet(2);  // each waits for another: one at a time would never end
  ThreadBudget budget(2);

  budget.run([&] { run_trials(4, 2, [&](std::size_t) { meet.arrive_and_wait(); }); });
}

TEST(RunTrials, NeverRunsMoreAtOnceThanAllowed) {
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  ThreadBudget budget(4);

  budget.run([&] {
    run_trials(40, 1, [&](std::size_t) {
      const int now = ++running;
      int seen = most.load();
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::yield();
      --running;
    });
  });

  EXPECT_EQ(most.load(), 1);
}

TEST(RunTrials, RethrowsTheFailureOfTheLowestIndexAndStartsNoMore) {
  std::atomic<int> started{0};
  ThreadBudget budget(1);
  std::string message;

  budget.run([&] {
    try {
      run_trials(10, 1, [&](std::size_t i) {
        ++started;
        if (i >= 3) throw TrainingError("trial " + std::to_string(i));
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
