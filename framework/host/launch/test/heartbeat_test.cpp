#include <treadle/host/launch/heartbeat.h>

#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

#include "processes/heartbeat_channel.h"

namespace treadle::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = HeartbeatChannel::Clock;

class Heartbeats : public ::testing::Test {
 protected:
  HeartbeatChannel channel_;
  Heartbeat heartbeat_{::dup(channel_.rank_end())};
};

TEST_F(Heartbeats, CarryTheStep) {
  heartbeat_.beat(12);
  channel_.listen(Clock::now());

  EXPECT_EQ(channel_.last_step(), 12);
}

TEST_F(Heartbeats, AreSentTenTimesASecondAtMost) {
  for (int step = 1; step <= 1000; ++step)
    heartbeat_.beat(step);
  channel_.listen(Clock::now());
  EXPECT_EQ(channel_.last_step(), 1);

  std::this_thread::sleep_for(Heartbeat::kInterval);
  heartbeat_.beat(1001);
  channel_.listen(Clock::now());
  EXPECT_EQ(channel_.last_step(), 1001);
}

TEST_F(Heartbeats, OfAProcessThatHasNotBeatenAreNotMissed) {
  EXPECT_EQ(channel_.silence(Clock::now() + seconds(100)), Clock::duration::zero());
}

TEST_F(Heartbeats, AreMissedAfterTheFirst) {
  const auto now = Clock::now();
  heartbeat_.beat(1);
  channel_.listen(now);

  EXPECT_EQ(channel_.silence(now + seconds(5)), seconds(5));
}

TEST_F(Heartbeats, AreNotMissedWhileTheProcessRests) {
  const auto now = Clock::now();
  heartbeat_.beat(1);
  heartbeat_.rest();
  channel_.listen(now);
  EXPECT_EQ(channel_.silence(now + seconds(100)), Clock::duration::zero());
  EXPECT_EQ(channel_.last_step(), 1);

  heartbeat_.beat(2);  // at once, although the last one was just now
  channel_.listen(now);
  EXPECT_EQ(channel_.silence(now + seconds(3)), seconds(3));
}

TEST_F(Heartbeats, ReportAStepWithoutAPromiseOfMore) {
  const auto now = Clock::now();
  heartbeat_.report(7);
  heartbeat_.report(8);  // too early to be sent
  channel_.listen(now);

  EXPECT_EQ(channel_.last_step(), 7);
  EXPECT_EQ(channel_.silence(now + seconds(100)), Clock::duration::zero());

  heartbeat_.beat(9);
  channel_.listen(now);
  EXPECT_EQ(channel_.last_step(), 9);
  EXPECT_EQ(channel_.silence(now + seconds(3)), seconds(3));

  heartbeat_.report(10);  // at once: the promise ends
  channel_.listen(now);
  EXPECT_EQ(channel_.last_step(), 10);
  EXPECT_EQ(channel_.silence(now + seconds(100)), Clock::duration::zero());
}

TEST_F(Heartbeats, NeverBlockAndOutliveTheirSupervisor) {
  for (int i = 0; i < 100'000; ++i) {
    heartbeat_.rest();
    heartbeat_.beat(i);
  }
  {
    HeartbeatChannel gone;
    Heartbeat left(::dup(gone.rank_end()));
    ::close(::dup(gone.supervisor_end()));
  }
  Heartbeat nobody(-1);
  nobody.beat(1);
  nobody.rest();
}

TEST_F(Heartbeats, AreNotThoseOfProgramsThatTheProcessStarts) {
  const int descriptor = ::dup(channel_.rank_end());
  const Heartbeat heartbeat(descriptor);

  EXPECT_EQ(::fcntl(descriptor, F_GETFD), FD_CLOEXEC);
}

}  // namespace
}  // namespace treadle::launch
