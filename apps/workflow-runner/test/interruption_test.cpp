#include "interruption.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
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
  Interruption interruption([&] { ++requests; });
  ASSERT_FALSE(interruption.token().stop_requested());

  raise(SIGINT);

  EXPECT_TRUE(before_long([&] { return requests == 1; }));
  EXPECT_TRUE(interruption.token().stop_requested());
}

TEST(Interruption, RequestsNothingWithoutASignal) {
  std::atomic<int> requests{0};
  {
    Interruption interruption([&] { ++requests; });
  }
  EXPECT_EQ(requests, 0);
}

TEST(Interruption, GivesTheSignalsBack) {
  struct sigaction before {};
  sigaction(SIGINT, nullptr, &before);
  {
    Interruption interruption([] {});
  }
  struct sigaction after {};
  sigaction(SIGINT, nullptr, &after);

  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(InterruptionDeathTest, EndsTheProcessAtTheSecondSignalWhateverItIsDoing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Interruption interruption([] {});
        raise(SIGTERM);
        raise(SIGTERM);
        for (;;)
          pause();
      },
      testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace treadle::cli
