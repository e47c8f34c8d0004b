#include "terminal/interruption.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

#include <gtest/gtest.h>

namespace treadle::cli {
namespace {

bool before_long(const std::function<bool()>& condition) {
  for (int i = 0; i < 500 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return condition();
}

TEST(Interruption, TurnsTheFirstSignalIntoARequestToStop) {
  std::atomic<int> requests{0};
  Interruption interruption([&](bool) { ++requests; }, [] {});
  ASSERT_FALSE(interruption.token().stop_requested());

  raise(SIGINT);

  EXPECT_TRUE(before_long([&] { return requests == 1; }));
  EXPECT_TRUE(interruption.token().stop_requested());
}

TEST(Interruption, RequestsNothingWithoutASignal) {
  std::atomic<int> requests{0};
  {
    Interruption interruption([&](bool) { ++requests; }, [] {});
  }
  EXPECT_EQ(requests, 0);
}

TEST(Interruption, GivesTheSignalsBack) {
  struct sigaction before {};
  sigaction(SIGINT, nullptr, &before);
  {
    Interruption interruption([](bool) {}, [] {});
  }
  struct sigaction after {};
  sigaction(SIGINT, nullptr, &after);

  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

/// nohup and the background jobs of a shell: POSIX has it that what was ignored stays so.
TEST(Interruption, LeavesIgnoredSignalsIgnoredButSigterm) {
  for (const int signal : {SIGINT, SIGHUP, SIGTERM}) {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    struct sigaction before {};
    sigaction(signal, &ignored, &before);
    std::atomic<int> requests{0};
    {
      Interruption interruption([&](bool) { ++requests; }, [] {});
      raise(signal);
      EXPECT_EQ(before_long([&] { return requests == 1 || signal != SIGTERM; }), true);
    }
    EXPECT_EQ(requests, signal == SIGTERM ? 1 : 0) << "signal " << signal;
    sigaction(signal, &before, nullptr);
  }
}

TEST(InterruptionDeathTest, EndsTheProcessAtTheSecondSignalWhateverItIsDoing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Interruption interruption([](bool) {}, [] {});
        raise(SIGTERM);
        raise(SIGTERM);
        for (;;)
          pause();
      },
      testing::ExitedWithCode(130), "");
}

TEST(InterruptionDeathTest,
     EndsTheProcessAtTheFirstSignalThatNobodyHeedsBeforeThereIsAnythingToSave) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Interruption interruption([](bool is_saving) { EXPECT_FALSE(is_saving); },
                                  [] { std::cerr << "gave up"; });
        raise(SIGTERM);
        for (;;)
          pause();
      },
      testing::ExitedWithCode(130), "gave up");
}

TEST(InterruptionDeathTest, WaitsWhereSomethingMayBeSaved) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        {
          Interruption interruption([](bool) {}, [] { _exit(1); });
          interruption.expect_saving();
          raise(SIGTERM);
          std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // longer than its patience
        }
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace treadle::cli
