#include <treadle/host/launch/supervisor.h>

#include <signal.h>

#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launched.h"

namespace treadle::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void sleep_ms(int time) {
  std::this_thread::sleep_for(milliseconds(time));
}

TEST_F(Launches, EndWithZeroWhenEveryRankHasDoneItsWork) {
  const Ended ended = launch({"3", "0", "0", "5000", "pid", "steps=5"});

  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(pids().size(), 3U);
  EXPECT_THAT(ended.err, IsEmpty());
  EXPECT_THAT(group_folders(), IsEmpty());
}

TEST_F(Launches, ShowTheOutputOfRankZeroAlone) {
  const Ended ended = launch({"3", "0", "0", "5000", "say"});

  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 3, generation 0"));
  EXPECT_THAT(ended.out, Not(HasSubstr("rank 1")));
  EXPECT_THAT(ended.out, HasSubstr("folder " + folder_.string() + "/treadle-launch-"));
}

// They would contradict ours.
TEST_F(Launches, HideThePlaceThatAnotherLauncherGaveTheSupervisor) {
  const char* const kForeign[] = {"RANK",     "WORLD_SIZE",   "OMPI_COMM_WORLD_RANK",
                                  "PMI_SIZE", "SLURM_PROCID", "TREADLE_ADDRESS"};
  for (const char* name : kForeign)
    setenv(name, "7", 1);
  setenv("TREADLE_PLUGIN_PATH", "/my/plugins", 1);

  const Ended ended = launch({"2", "0", "0", "5000", "say"});

  for (const char* name : kForeign)
    unsetenv(name);
  unsetenv("TREADLE_PLUGIN_PATH");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 2"));
  EXPECT_THAT(ended.out, HasSubstr("plugins /my/plugins"));
}

TEST_F(Launches, DivideTheCoresOfTheHost) {
  const Ended ended = launch({"64", "0", "0", "5000", "say"});

  EXPECT_THAT(ended.out, HasSubstr("workers 1\n"));
}

TEST_F(Launches, EndWithTheCodeOfTheRankThatFailedFirst) {
  const Ended ended = launch(
      {"3", "3", "0", "5000", "pid", "only=1", "steps=2", "exit=6", "all", "deaf", "forever"});

  EXPECT_EQ(ended.code, 6);
  EXPECT_THAT(ended.err, ContainsRegex("rank 1 \\(pid [0-9]+ on .*\\) ended with exit code 6, "
                                       "after step [12]"));
  EXPECT_THAT(ended.err, Not(HasSubstr("restart")));
  EXPECT_THAT(living(), IsEmpty());
  EXPECT_LT(ended.time, milliseconds(1300));
}

TEST_F(Launches, ShowTheLastLinesOfAFailedRankThatHasNoTerminal) {
  const Ended ended = launch({"2", "0", "0", "5000", "only=1", "say", "exit=5"});

  EXPECT_THAT(ended.err, HasSubstr("its last lines:\nrank 1 of 2"));
}

TEST_F(Launches, LeaveAMistakeThatAllRanksReportToRankZero) {
  const Ended ended = launch({"3", "3", "0", "5000", "only=0", "sleep=100", "all", "exit=3"});

  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.err, IsEmpty());
}

TEST_F(Launches, NameRankSignalAndStepOfAKilledRank) {
  const Ended ended =
      launch({"3", "0", "0", "5000!", "only=2", "steps=1", "crash=9", "all", "forever"});

  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, ContainsRegex("rank 2 \\(pid [0-9]+ on .*\\) was killed by SIGKILL, "
                                       "after step 1; .* dmesg"));
}

// Those that have lost it may be seen to end before it.
TEST_F(Launches, BlameTheKilledRankAndNotThoseThatMissIt) {
  const Ended ended = launch({"3", "0", "0", "5000", "only=0", "exit=8", "only=1", "sleep=30",
                              "crash=9", "all", "forever"});

  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, HasSubstr("SIGKILL"));
}

TEST_F(Launches, TakeAShellThatReportsASignalForTheSignal) {
  const Ended ended = launch({"2", "0", "0", "5000!", "only=1", "exit=137", "all", "forever"});

  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, HasSubstr("rank 1 (pid "));
  EXPECT_THAT(ended.err, HasSubstr("was killed by SIGKILL"));
}

TEST_F(Launches, EndAHangWithinItsTime) {
  const Ended ended =
      launch({"3", "0", "0", "200!", "pid", "only=1", "steps=3", "deaf", "hang", "all", "forever"});

  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, ContainsRegex("rank 1 .* hangs: it gave no sign of life for"));
  EXPECT_LT(ended.time, milliseconds(400 + 1400));
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(Launches, NameTheRankThatASignalHasStoppedWhereItIs) {
  const Ended ended =
      launch({"3", "0", "0", "200!", "only=2", "steps=3", "crash=19", "all", "steps=4", "hang"});

  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, ContainsRegex("rank 2 .* was stopped where it is \\(SIGSTOP\\)"));
}

TEST_F(Launches, DoNotTakeRestForAHang) {
  const Ended ended =
      launch({"2", "0", "0", "100", "steps=3", "rest", "sleep=300", "steps=1", "say"});

  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(Launches, DoNotTakeARankThatHasNotBeatenYetForAHang) {
  EXPECT_EQ(launch({"2", "0", "0", "100", "sleep=300"}).code, 0);
}

TEST_F(Launches, RestartWhatLostAProcess) {
  const Ended ended = launch({"2", "3", "0", "5000!", "pid", "only=1", "generation=0", "steps=2",
                              "crash=9", "all", "generation=0", "forever", "only=0", "say"});

  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("restart 1 of 3, with 2 processes"));
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 2, generation 1"));
  EXPECT_EQ(pids().size(), 4U);
}

TEST_F(Launches, ResumeTheRunThatRankZeroRecorded) {
  const Ended ended = launch({"2", "3", "0", "5000!", "only=0", "record", "all", "only=1",
                              "sleep=100", "crash=9", "all", "forever", "--", "say"});

  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("from the last checkpoint of my-run\n"));
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 2, generation 1"));
}

TEST_F(Launches, GiveEachGenerationAFolderOfItsOwn) {
  const Ended ended = launch(
      {"1", "2", "0", "5000", "say", "generation=0", "crash=9", "all", "generation=1", "crash=9"});

  std::vector<std::string> folders;
  for (std::size_t at = 0; (at = ended.out.find("treadle-launch-", at)) != std::string::npos; ++at)
    folders.push_back(ended.out.substr(at, 21));
  ASSERT_EQ(folders.size(), 3U) << ended.out;
  EXPECT_NE(folders[0], folders[1]);
  EXPECT_NE(folders[1], folders[2]);
  EXPECT_THAT(group_folders(), IsEmpty());
}

TEST_F(Launches, GiveUpAfterTheLastRestart) {
  const Ended ended = launch({"1", "2", "0", "5000", "pid", "crash=9"});

  EXPECT_EQ(ended.code, kLost);
  EXPECT_EQ(pids().size(), 3U);
}

TEST_F(Launches, GoOnWithFewerRanksWhereARestartFailsAtOnce) {
  const Ended ended =
      launch({"3", "5", "1", "5000", "pid", "only=2", "crash=9", "all", "say", "steps=5"});

  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("restart 1 of 5, with 3 processes"));
  EXPECT_THAT(ended.err, HasSubstr("restart 2 of 5, with 2 processes"));
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 2, generation 2"));
}

class StopSignals : public Launches, public ::testing::WithParamInterface<int> {};

TEST_P(StopSignals, LetAllRanksEndInOrder) {
  Launched launched(folder_, {"3", "3", "0", "5000", "stop", "pid", "forever"});
  await_pids(3);

  launched.send(GetParam());
  const Ended ended = launched.wait();

  EXPECT_EQ(ended.code, kStopped);
  EXPECT_THAT(ended.err, IsEmpty());
  EXPECT_THAT(living(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, StopSignals,
                         ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2));

// As with nohup.
TEST_F(Launches, DoNotStopBySignalsThatTheyWereStartedToIgnore) {
  signal(SIGHUP, SIG_IGN);
  signal(SIGUSR1, SIG_IGN);
  Launched launched(folder_, {"2", "3", "0", "5000", "pid", "steps=20"});
  signal(SIGHUP, SIG_DFL);
  signal(SIGUSR1, SIG_DFL);
  await_pids(2);

  launched.send(SIGHUP);
  launched.send(SIGUSR1);

  EXPECT_EQ(launched.wait().code, 0);
}

TEST_F(Launches, SeeTheirProcessesEndWhereChildrenAreIgnored) {
  signal(SIGCHLD, SIG_IGN);
  Launched launched(folder_, {"2", "0", "0", "5000!", "only=1", "exit=5", "all", "forever"});
  signal(SIGCHLD, SIG_DFL);

  EXPECT_EQ(launched.wait().code, 5);
}

TEST_F(Launches, WaitForARankThatSavesForLongAfterAStop) {
  Launched launched(folder_,
                    {"2", "3", "0", "5000!", "stop", "only=1", "deaf", "all", "pid", "steps=60"});
  await_pids(2);

  launched.send(SIGTERM);
  const Ended ended = launched.wait();

  EXPECT_EQ(ended.code, kStopped);
  EXPECT_GT(ended.time, milliseconds(500)) << "longer than after a failure";
}

TEST_F(Launches, KillAllAtTheSecondCtrlC) {
  Launched launched(folder_, {"2", "3", "0", "5000", "deaf", "pid", "child", "forever"});
  await_pids(2);

  launched.send(SIGINT);
  sleep_ms(100);
  launched.send(SIGINT);

  EXPECT_EQ(launched.wait().code, kStopped);
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(Launches, StopAllWhenSomebodyStopsOneRank) {
  Launched launched(folder_, {"3", "3", "0", "5000", "stop", "pid", "forever"});
  await_pids(3);

  kill(pids().back(), SIGTERM);

  EXPECT_EQ(launched.wait().code, kStopped);
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(Launches, DoNotRestartAfterAStop) {
  Launched launched(folder_,
                    {"2", "3", "0", "5000", "deaf", "pid", "steps=20", "only=1", "crash=9"});
  await_pids(2);

  launched.send(SIGTERM);
  const Ended ended = launched.wait();

  EXPECT_EQ(ended.code, kLost);
  EXPECT_EQ(pids().size(), 2U);
}

TEST_F(Launches, LeaveNoOrphanWhenTheSupervisorIsKilled) {
  Launched launched(folder_, {"3", "3", "0", "5000", "deaf", "pid", "forever"});
  await_pids(3);

  launched.send(SIGKILL);
  launched.wait();

  EXPECT_THAT(living(), IsEmpty());
}

// Helpers of a rank would hold memory, files and ports.
TEST_F(Launches, EndWhatARankHasStarted) {
  const Ended ended =
      launch({"2", "0", "0", "5000", "child", "only=0", "steps=10", "all", "sleep=100"});

  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(pids().size(), 2U);
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(Launches, RefuseAProgramThatIsNotThere) {
  // By a command of its own: fake ranks are always there.
  LaunchPlan plan;
  plan.command = {"no-such-program"};
  plan.processes = 2;
  try {
    Supervisor(plan, [](const std::string&) {}).run();
    FAIL() << "it was started";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "no-such-program: cannot be started: No such file or directory");
  }
}

TEST_F(Launches, KillOfAnyRankAtAnyInstantEndsAllWithinASecond) {
  constexpr int kKills = 50;
  std::mt19937 random(2026);
  for (int i = 0; i < kKills; ++i) {
    std::filesystem::remove(folder_ / "pids");
    Launched launched(folder_, {"3", "0", "0", "5000", "pid", "forever"});
    await_pids(1);
    sleep_ms(static_cast<int>(random() % 60));
    const std::vector<pid_t> ranks = pids();
    kill(ranks[random() % ranks.size()], SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    const Ended ended = launched.wait();

    ASSERT_EQ(ended.code, kLost) << i << ended.err;
    ASSERT_THAT(ended.err, HasSubstr("was killed by SIGKILL")) << i;
    ASSERT_LT(std::chrono::steady_clock::now() - killed, seconds(1)) << i;
    ASSERT_THAT(living(), IsEmpty()) << i;
    ASSERT_THAT(group_folders(), IsEmpty()) << i;
  }
}

// Three restarts each: a kill of a rank may also come while a generation starts or ends.
TEST_F(Launches, KillsOfRanksInAllGenerationsLeaveTheRightCode) {
  constexpr int kLaunches = 20;
  std::mt19937 random(2028);
  for (int i = 0; i < kLaunches; ++i) {
    std::filesystem::remove(folder_ / "pids");
    Launched launched(folder_, {"2", "2", "0", "5000", "pid", "forever"});
    std::size_t seen = 0;
    for (int generation = 0; generation <= 2; ++generation) {
      await_pids(seen + 1);
      sleep_ms(static_cast<int>(random() % 20));
      const std::vector<pid_t> ranks = pids();
      const std::size_t chosen = seen + random() % (ranks.size() - seen);
      kill(ranks[chosen], SIGKILL);
      seen = 2 * (static_cast<std::size_t>(generation) + 1);
    }
    const Ended ended = launched.wait();

    ASSERT_EQ(ended.code, kLost) << i << ended.err;
    ASSERT_THAT(ended.err, HasSubstr("restart 2 of 2")) << i;
    ASSERT_THAT(living(), IsEmpty()) << i;
  }
}

TEST_F(Launches, KillOfTheSupervisorAtAnyInstantLeavesNoOrphan) {
  constexpr int kKills = 50;
  std::mt19937 random(2027);
  for (int i = 0; i < kKills; ++i) {
    std::filesystem::remove(folder_ / "pids");
    Launched launched(folder_, {"3", "3", "0", "5000", "pid", "deaf", "forever"});
    sleep_ms(static_cast<int>(random() % 40));
    launched.send(SIGKILL);
    ASSERT_EQ(launched.wait().code, 128 + SIGKILL);
    ASSERT_THAT(living(), IsEmpty()) << i;
  }
}

}  // namespace
}  // namespace treadle::launch
