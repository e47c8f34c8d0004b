// Several hosts, as several supervisors on this one.
#include <signal.h>
#include <sys/socket.h>

#include <cstring>

#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/host/launch/supervisor.h>

#include "hosts/message_socket.h"
#include "launched.h"

namespace treadle::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SeveralHosts : public Launches {
 protected:
  std::unique_ptr<Launched> start(int host, const std::vector<std::string>& words, int hosts = 2) {
    std::vector<std::string> all{"@" + std::to_string(hosts), std::to_string(host), at_.text()};
    all.insert(all.end(), words.begin(), words.end());
    return std::make_unique<Launched>(folder_, all, std::to_string(host));
  }
  std::set<std::string> ranks() const {
    std::ifstream file(folder_ / "ranks");
    return {std::istream_iterator<std::string>(file), {}};
  }

  Endpoint at_{"127.0.0.1", free_port()};
};

TEST_F(SeveralHosts, NumberTheirRanksInTheOrderOfHosts) {
  const auto second = start(1, {"3", "0", "0", "5000", "note"});
  const auto first = start(0, {"2", "0", "0", "5000", "note", "say"});

  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(second->wait().code, 0);
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 5"));
  std::set<std::string> places;
  std::set<std::string> addresses;
  for (const std::string& rank : ranks()) {
    places.insert(rank.substr(0, rank.find('@')));
    addresses.insert(rank.substr(rank.find('@')));
  }
  EXPECT_EQ(places, (std::set<std::string>{"0:0", "1:1", "2:0", "3:1", "4:2"}));
  ASSERT_EQ(addresses.size(), 1U);
  EXPECT_THAT(*addresses.begin(), HasSubstr("127.0.0.1:"));
}

TEST_F(SeveralHosts, EndAllWhenOneFails) {
  const std::vector<std::string> words{"2",         "3",      "0",   "5000!", "pid",    "only=3",
                                       "sleep=150", "exit=5", "all", "deaf",  "forever"};
  const auto first = start(0, words);
  const auto second = start(1, words);

  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 5);
  EXPECT_THAT(ended.err, ContainsRegex("rank 3 \\(pid [0-9]+ on .*\\) ended with exit code 5"));
  EXPECT_EQ(second->wait().code, 5);
  EXPECT_LT(ended.time, milliseconds(2200));
  EXPECT_THAT(living(), IsEmpty());
  EXPECT_THAT(group_folders(), IsEmpty());
}

TEST_F(SeveralHosts, ShowTheLastLinesOfARankElsewhere) {
  const std::vector<std::string> words{"1",   "0",      "0",   "5000!",  "only=1",
                                       "say", "exit=5", "all", "forever"};
  const auto first = start(0, words);
  const auto second = start(1, words);

  EXPECT_THAT(first->wait().err, HasSubstr("its last lines:\nrank 1 of 2"));
}

TEST_F(SeveralHosts, RestartAllWhenOneLosesAProcess) {
  const std::vector<std::string> words{
      "2",         "3",       "0",   "5000!",        "pid",     "only=2", "generation=0",
      "sleep=100", "crash=9", "all", "generation=0", "forever", "only=0", "say"};
  const auto first = start(0, words);
  const auto second = start(1, words);

  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(second->wait().code, 0);
  EXPECT_THAT(ended.err, AllOf(ContainsRegex("rank 2 \\(pid .* was killed by SIGKILL"),
                               HasSubstr("restart 1 of 3, with 4 processes")));
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 4, generation 1"));
  EXPECT_EQ(pids().size(), 8U);
}

TEST_F(SeveralHosts, ResumeTheRunOfRankZeroOnAll) {
  const std::vector<std::string> words{"1",      "3",       "0",      "5000!",     "only=0",
                                       "record", "all",     "only=1", "sleep=100", "crash=9",
                                       "all",    "forever", "--",     "pid"};
  const auto first = start(0, words);
  const auto second = start(1, words);

  EXPECT_EQ(first->wait().code, 0);
  EXPECT_EQ(second->wait().code, 0);
  EXPECT_EQ(pids().size(), 2U);
}

TEST_F(SeveralHosts, GoOnWithFewerRanksOnTheHostThatFailsAtOnce) {
  const std::vector<std::string> words{"2",       "5",   "1",   "5000!",    "only=3",
                                       "crash=9", "all", "say", "sleep=300"};
  const auto first = start(0, words);
  const auto second = start(1, words);

  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("restart 2 of 5, with 3 processes"));
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 3, generation 2"));
}

TEST_F(SeveralHosts, StopAllWhenOneIsStopped) {
  const std::vector<std::string> words{"2", "3", "0", "5000", "stop", "pid", "forever"};
  for (const int stopped : {0, 1}) {
    std::filesystem::remove(folder_ / "pids");
    const auto first = start(0, words);
    const auto second = start(1, words);
    await_pids(4);

    (stopped == 0 ? first : second)->send(SIGTERM);

    EXPECT_EQ(first->wait().code, kStopped) << stopped;
    EXPECT_EQ(second->wait().code, kStopped) << stopped;
    EXPECT_THAT(living(), IsEmpty());
  }
}

TEST_F(SeveralHosts, StopWhileTheyWaitForOthers) {
  const auto first = start(0, {"1", "3", "0", "20000", "pid"});
  std::this_thread::sleep_for(milliseconds(100));

  first->send(SIGTERM);

  EXPECT_EQ(first->wait().code, kStopped);
  EXPECT_THAT(pids(), IsEmpty());
}

TEST_F(SeveralHosts, KillAllAtTheSecondCtrlC) {
  const std::vector<std::string> words{"1", "3", "0", "5000!", "deaf", "pid", "forever"};
  const auto first = start(0, words);
  const auto second = start(1, words);
  await_pids(2);

  first->send(SIGINT);
  std::this_thread::sleep_for(milliseconds(100));
  first->send(SIGINT);

  EXPECT_EQ(first->wait().code, kStopped);
  EXPECT_EQ(second->wait().code, kStopped);
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(SeveralHosts, EndWhenAHostIsGone) {
  const std::vector<std::string> words{"2", "0", "0", "5000!", "deaf", "pid", "forever"};
  const auto first = start(0, words);
  const auto second = start(1, words);
  await_pids(4);

  second->send(SIGKILL);

  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, ContainsRegex("host 1 \\(.*\\) is gone, after step [0-9]+: "));
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(SeveralHosts, EndWhenHostZeroIsGone) {
  const std::vector<std::string> words{"2", "3", "0", "5000!", "deaf", "pid", "forever"};
  const auto first = start(0, words);
  const auto second = start(1, words);
  await_pids(4);

  first->send(SIGKILL);

  const Ended ended = second->wait();
  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, ContainsRegex("host 0 is gone, after step [0-9]+: "));
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(SeveralHosts, GoOnWithAHostThatComesBack) {
  const std::vector<std::string> words{"1",       "3",   "0",  "10000!", "generation=0",
                                       "forever", "all", "say"};
  const auto first = start(0, words);
  auto second = start(1, {"1", "3", "0", "10000!", "pid", "forever"});
  await_pids(1);
  second->send(SIGKILL);
  second->wait();
  second = start(1, words);

  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(second->wait().code, 0);
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 2, generation 1"));
}

TEST_F(SeveralHosts, GoOnWithoutAHostWhereFewerAreEnough) {
  const auto first = start(0, {"1", "3", "1", "600!", "generation=0", "forever", "all", "say"});
  const auto second = start(1, {"1", "3", "1", "600!", "pid", "forever"});
  await_pids(1);
  second->send(SIGKILL);

  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 1, generation 1"));
}

TEST_F(SeveralHosts, NameThoseThatDoNotCome) {
  const auto second = start(1, {"1", "0", "0", "300", "forever"}, 3);
  const auto first = start(0, {"1", "0", "0", "300", "forever"}, 3);

  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, HasSubstr("in time: host 2 did not"));
  EXPECT_EQ(second->wait().code, kLost);
  EXPECT_LT(ended.time, seconds(2));
}

TEST_F(SeveralHosts, EndWhereHostZeroDoesNotCome) {
  const Ended ended = start(1, {"1", "0", "0", "200", "forever"})->wait();

  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, HasSubstr("host 0 cannot be reached (Connection refused)"));
  EXPECT_LT(ended.time, seconds(2));
}

TEST_F(SeveralHosts, EndWhereAnotherProgramListens) {
  const Socket other = listen_at(at_);

  const Ended ended = start(1, {"1", "0", "0", "200", "forever"})->wait();
  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, HasSubstr("another program listens there"));
  EXPECT_LT(ended.time, seconds(2));
  const Ended first = start(0, {"1", "0", "0", "200", "forever"})->wait();
  EXPECT_EQ(first.code, kLost);
  EXPECT_THAT(first.err, AllOf(HasSubstr("cannot be listened at (Address already in use)"),
                               HasSubstr("--at 127.0.0.1:")));
}

TEST_F(SeveralHosts, RefuseTwoHostsWithOneNumber) {
  const std::vector<std::string> words{"1", "0", "0", "5000", "pid", "sleep=200"};
  const auto first = start(0, words, 3);
  const auto second = start(1, words, 3);
  std::this_thread::sleep_for(milliseconds(100));
  std::vector<std::string> again{"@3", "1", at_.text()};
  again.insert(again.end(), words.begin(), words.end());

  const Ended ended = Launched(folder_, again, "again").wait();

  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, ContainsRegex("refuses this host: another launch is host 1 \\(.*\\)"));
  const auto third = start(2, words, 3);
  EXPECT_EQ(first->wait().code, 0);
}

TEST_F(SeveralHosts, RefuseAnotherNumberOfHosts) {
  const auto first = start(0, {"1", "0", "0", "3000", "forever"});

  const Ended ended = start(1, {"1", "0", "0", "3000", "forever"}, 3)->wait();

  EXPECT_EQ(ended.code, kLost);
  EXPECT_THAT(ended.err, HasSubstr("host 0 was started with --hosts 2, this one with --hosts 3"));
}

TEST_F(SeveralHosts, LeaveStrangersOutside) {
  const std::vector<std::string> words{"1", "0", "0", "5000", "sleep=100", "say"};
  const auto first = start(0, words);
  std::vector<MessageSocket> strangers;
  for (const char* text : {"GET / HTTP/1.1\r\n\r\n", "{}\n", "[1]\n", "{\"hello\": 1}\n",
                           "{\"hello\": {\"protocol\": 1, \"host\": \"one\"}}\n", "\xff\xfe\n"}) {
    MessageSocket stranger = MessageSocket::to(at_, seconds(5), seconds(5));
    ASSERT_GT(::send(stranger.descriptor(), text, strlen(text), MSG_NOSIGNAL), 0);
    strangers.push_back(std::move(stranger));
  }
  const auto second = start(1, words);

  const Ended ended = first->wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 2"));
  EXPECT_EQ(second->wait().code, 0);
}

}  // namespace
}  // namespace treadle::launch
