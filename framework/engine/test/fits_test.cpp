#include <treadle/engine/fits.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/engine/thread_budget.h>

namespace treadle::engine {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Fits "0" … "count - 1" that depend on nothing.
class Independent final : public FitSchedule {
 public:
  using Fit = std::function<void(std::size_t, const Settled&)>;
  Independent(std::size_t count, Fit fit) : count_(count), fit_(std::move(fit)) {}

  FitOrders next() override {
    FitOrders orders;
    const std::size_t count = std::exchange(count_, 0);
    for (std::size_t i = 0; i < count; ++i)
      orders.start.push_back({std::to_string(i)});
    return orders;
  }
  FitEnd run(const std::string& path, const Settled& settled) override {
    fit_(std::stoul(path), settled);
    return FitEnd::kCompleted;
  }

 private:
  std::size_t count_;
  const Fit fit_;
};

void run_fits(std::size_t count, FitLimits limits, Independent::Fit fit) {
  Independent schedule(count, std::move(fit));
  run_fits(schedule, std::move(limits));
}

TEST(RunFits, RunsEachOnce) {
  std::vector<std::atomic<int>> runs(17);
  ThreadBudget budget(2);

  budget.run([&] { run_fits(17, {2}, [&](std::size_t i, const Settled&) { ++runs[i]; }); });

  for (const auto& count : runs)
    EXPECT_EQ(count.load(), 1);
}

TEST(RunFits, RunsAsManyAtOnceAsAllowed) {
  std::barrier meet(2);  // each waits for another: one at a time would never end
  ThreadBudget budget(2);

  budget.run([&] {
    run_fits(4, {2}, [&](std::size_t, const Settled& settled) {
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
  /// Until so many have run at the same time; on a busy machine a second thread comes late.
  void wait_for(int count) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (most() < count && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<int> running_{0};
  std::atomic<int> most_{0};
};

constexpr std::chrono::milliseconds kAWhile{5};  // enough for others to begin, if they may

TEST(RunFits, NeverRunsMoreAtOnceThanAllowed) {
  Crowd crowd;
  ThreadBudget budget(4);

  budget.run([&] {
    run_fits(40, {2}, [&](std::size_t, const Settled& settled) {
      const Crowd::Member member(crowd);
      settled();
      std::this_thread::yield();
    });
  });

  EXPECT_LE(crowd.most(), 2);
}

TEST(RunFits, RunsOneAloneUntilItHasSettled) {
  std::atomic<int> begun{0};
  std::vector<int> begun_when_settling;
  ThreadBudget budget(3);

  budget.run([&] {
    run_fits(6, {3}, [&](std::size_t, const Settled& settled) {
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

TEST(RunFits, RunsOneAtATimeWhenNoneSettles) {
  Crowd crowd;
  ThreadBudget budget(3);

  budget.run([&] {
    run_fits(6, {3}, [&](std::size_t, const Settled&) {
      const Crowd::Member member(crowd);
      std::this_thread::sleep_for(kAWhile);
    });
  });

  EXPECT_EQ(crowd.most(), 1);
}

TEST(RunFits, RunsNoMoreAtOnceThanFit) {
  Crowd crowd;
  std::atomic<int> asked{0};
  ThreadBudget budget(4);

  budget.run([&] {
    const FitLimits limits{4, [&] {
                             ++asked;
                             return crowd.now() < 2;
                           }};
    run_fits(9, limits, [&](std::size_t, const Settled& settled) {
      const Crowd::Member member(crowd);
      settled();
      crowd.wait_for(2);
      std::this_thread::sleep_for(kAWhile);
    });
  });

  EXPECT_EQ(crowd.most(), 2);
  EXPECT_GE(asked.load(), 4);
}

TEST(RunFits, RunsAllOneAfterAnotherWhereNoTwoFit) {
  Crowd crowd;
  std::atomic<int> runs{0};
  ThreadBudget budget(3);

  budget.run([&] {
    run_fits(5, {3, [] { return false; }}, [&](std::size_t, const Settled& settled) {
      const Crowd::Member member(crowd);
      settled();
      std::this_thread::sleep_for(kAWhile);
      ++runs;
    });
  });

  EXPECT_EQ(runs.load(), 5);
  EXPECT_EQ(crowd.most(), 1);
}

TEST(RunFits, StartsNoMoreOnceOneHasFailedBesideOthers) {
  std::atomic<int> started{0};
  std::barrier both_run(2);
  ThreadBudget budget(2);

  budget.run([&] {
    EXPECT_THROW(run_fits(10, {2},
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

TEST(RunFits, RethrowsTheFailureOfTheLowestIndexAndStartsNoMore) {
  std::atomic<int> started{0};
  ThreadBudget budget(1);
  std::string message;

  budget.run([&] {
    try {
      run_fits(10, {1}, [&](std::size_t i, const Settled&) {
        ++started;
        if (i >= 3)
          throw TrainingError("fit " + std::to_string(i));
      });
    } catch (const TrainingError& error) {
      message = error.what();
    }
  });

  EXPECT_EQ(message, "fit 3");
  EXPECT_EQ(started.load(), 4);
}

/// Plays orders one after another, and keeps what was run. A fit that is to be paused is so once.
class Scripted final : public FitSchedule {
 public:
  explicit Scripted(std::vector<FitOrders> orders) : orders_(std::move(orders)) {}

  std::map<std::string, FitEnd> first_ends;  ///< where it is not that it completes
  std::vector<std::string> ran;              ///< in the order of their beginnings
  std::optional<std::size_t> fails_after;    ///< so many answers: what is next cannot be saved
  std::function<void(const std::string&)> work = [](const std::string&) {};

 private:
  FitOrders next() override {
    if (asked_ == fails_after)
      throw StorageError("plan.json: no space left on device");
    if (asked_ == orders_.size())
      return {};
    return orders_[asked_++];
  }
  FitEnd run(const std::string& path, const Settled& settled) override {
    FitEnd end = FitEnd::kCompleted;
    {
      const std::lock_guard lock(mutex_);
      ran.push_back(path);
      if (const auto first = first_ends.extract(path))
        end = first.mapped();
    }
    settled();
    work(path);
    return end;
  }

  std::mutex mutex_;
  std::vector<FitOrders> orders_;
  std::size_t asked_ = 0;
};

void run_in(int workers, FitSchedule& schedule) {
  ThreadBudget budget(workers);
  budget.run([&] { run_fits(schedule, {static_cast<std::size_t>(workers)}); });
}

std::string refusal_of(std::vector<FitJob> jobs) {
  Scripted plan({{std::move(jobs)}});
  try {
    run_in(2, plan);
  } catch (const ContractViolation& error) {
    EXPECT_TRUE(plan.ran.empty());
    return error.what();
  }
  return "";
}

TEST(PlansOfFits, BeginAFitWhenWhatItDependsOnHasCompleted) {
  Scripted plan({{{{"final", {"fold-1", "fold-2"}}, {"fold-1"}, {"fold-2"}, {"last", {"final"}}}}});
  std::atomic<int> folds{0};
  plan.work = [&](const std::string& path) {
    if (path.starts_with("fold")) {
      std::this_thread::sleep_for(kAWhile);
      ++folds;
    } else {
      EXPECT_EQ(folds.load(), 2) << path;
    }
  };

  run_in(3, plan);

  EXPECT_THAT(plan.ran, ElementsAre("fold-1", "fold-2", "final", "last"));
}

TEST(PlansOfFits, BeginInTheOrderInWhichTheyWerePlanned) {
  Scripted plan({{{{"c"}, {"a", {"b"}}, {"b"}, {"d"}}}});

  run_in(1, plan);

  EXPECT_THAT(plan.ran, ElementsAre("c", "b", "a", "d"));
}

TEST(PlansOfFits, GrowAndGoOnWithPausedFitsWhileTheyRun) {
  Scripted plan(
      {{{{"trial-1"}}}, {{{"trial-2"}}}, {{}, {"trial-1"}}, {{{"trial-3", {"trial-1"}}}}});
  plan.first_ends = {{"trial-1", FitEnd::kPaused}};

  run_in(1, plan);

  EXPECT_THAT(plan.ran, ElementsAre("trial-1", "trial-2", "trial-1", "trial-3"));
}

TEST(PlansOfFits, MayEndWithPausedAndStoppedFits) {
  Scripted plan({{{{"trial-1"}, {"trial-2"}}}});
  plan.first_ends = {{"trial-1", FitEnd::kPaused}, {"trial-2", FitEnd::kStopped}};

  run_in(1, plan);

  EXPECT_THAT(plan.ran, ElementsAre("trial-1", "trial-2"));
}

TEST(PlansOfFits, KeepAPausedFitWhereItIsUntilItsCheckpointIsCopied) {
  Scripted plan({{{{"old"}}}, {{{"copy", {}, "old"}}, {"old"}}});
  plan.first_ends = {{"old", FitEnd::kPaused}};

  run_in(2, plan);

  EXPECT_THAT(plan.ran, ElementsAre("old", "copy", "old"));
}

TEST(PlansOfFits, CopyOnlyWhatDoesNotRun) {
  Scripted plan({{{{"copy", {}, "old"}, {"old"}}}});
  std::atomic<bool> is_over{false};
  plan.work = [&](const std::string& path) {
    if (path == "old") {
      std::this_thread::sleep_for(kAWhile);
      is_over = true;
    } else {
      EXPECT_TRUE(is_over.load());
    }
  };

  run_in(2, plan);

  EXPECT_THAT(plan.ran, ElementsAre("old", "copy"));
}

TEST(PlansOfFits, AreRefusedWhereTheyMakeNoSense) {
  EXPECT_THAT(refusal_of({{"a", {"b"}}, {"x"}, {"b", {"c"}}, {"c", {"a"}}}),
              HasSubstr("the plan of fits cannot run: cycle: a -> c -> b -> a"));
  EXPECT_THAT(refusal_of({{"a", {"a"}}}), HasSubstr("cycle: a -> a"));
  EXPECT_THAT(refusal_of({{"a", {}, "b"}, {"b", {"a"}}}), HasSubstr("cycle: a -> b -> a"));
  EXPECT_THAT(refusal_of({{"final", {"fold-9"}}}),
              HasSubstr("\"final\" depends on \"fold-9\", which was never planned"));
  EXPECT_THAT(refusal_of({{"a"}, {"a"}}), HasSubstr("two fits are called \"a\""));
}

TEST(PlansOfFits, AreRefusedWhereTheyResumeWhatIsNotPaused) {
  Scripted plan({{{{"a"}}}, {{}, {"a"}}});
  try {
    run_in(1, plan);
    FAIL();
  } catch (const ContractViolation& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"a\" is to go on, and is not paused"));
  }
}

/// "a" tells of its pause, and comes back only when the plan has already let it go on.
class ResumedEarly final : public FitSchedule {
 public:
  explicit ResumedEarly(FitEnd end_of_a) : end_of_a_(end_of_a) {}

  FitOrders next() override {
    FitOrders orders;
    if (!std::exchange(has_begun_, true)) {
      orders.start = {{"a"}, {"b"}};
    } else if (!std::exchange(has_resumed_, true)) {
      orders.resume = {"a"};
      resumed_.arrive_and_wait();
    }
    return orders;
  }
  FitEnd run(const std::string& path, const Settled& settled) override {
    settled();
    if (path == "b")
      return FitEnd::kCompleted;
    if (++runs_of_a > 1)
      return FitEnd::kCompleted;
    resumed_.arrive_and_wait();
    return end_of_a_;
  }

  int runs_of_a = 0;

 private:
  const FitEnd end_of_a_;
  bool has_begun_ = false;
  bool has_resumed_ = false;
  std::barrier<> resumed_{2};
};

TEST(PlansOfFits, MayResumeAFitThatHasNotComeBackFromItsPauseYet) {
  ResumedEarly plan(FitEnd::kPaused);

  run_in(2, plan);

  EXPECT_EQ(plan.runs_of_a, 2);
}

TEST(PlansOfFits, AreRefusedWhereTheyResumeWhatThenDoesNotPause) {
  ResumedEarly plan(FitEnd::kCompleted);
  EXPECT_THROW(run_in(2, plan), ContractViolation);
}

TEST(PlansOfFits, NameAFitThatCouldNotBegin) {
  Scripted plan({{{{"fold-1"}, {"fold-2"}, {"final", {"fold-1", "fold-2"}}}}});
  plan.first_ends = {{"fold-2", FitEnd::kStopped}};
  try {
    run_in(1, plan);
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("final could not begin: it depends on fold-2, which was stopped"));
  }
  EXPECT_THAT(plan.ran, ElementsAre("fold-1", "fold-2"));
}

TEST(PlansOfFits, StartNothingMoreOnceAFitHasFailed) {
  Scripted plan({{{{"a"}, {"b"}}}, {{{"c"}}}});
  plan.work = [](const std::string& path) {
    if (path == "a")
      throw TrainingError("a failed");
  };

  EXPECT_THROW(run_in(1, plan), TrainingError);

  EXPECT_THAT(plan.ran, ElementsAre("a"));
}

TEST(PlansOfFits, StartNothingMoreOnceWhatIsNextCannotBeSaved) {
  for (const int workers : {1, 3}) {
    Scripted plan({{{{"a"}, {"b"}}}, {{{"c"}}}});
    plan.fails_after = 1;  // "b" waits where there is one worker, and runs where there are three

    EXPECT_THROW(run_in(workers, plan), StorageError) << workers;

    EXPECT_THAT(plan.ran, Contains("a")) << workers;
    EXPECT_THAT(plan.ran, Not(Contains("c"))) << workers;
  }
}

}  // namespace
}  // namespace treadle::engine
