#include <treadle/host/launch/group_check.h>

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/forked_process.h>
#include <treadle/testing/support/scratch_folder.h>

#include "hosts/message_socket.h"

namespace treadle::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void be_silent(const std::string&) {}

LaunchPlan checked(std::int64_t host, std::int64_t hosts, const Endpoint& at) {
  LaunchPlan plan;
  plan.command = {"true"};
  plan.processes = 2;
  plan.hosts = hosts;
  plan.host = host;
  plan.at = at;
  plan.timeout = std::chrono::seconds(5);
  return plan;
}

GroupCheck two_hosts() {
  GroupCheck check;
  for (std::int64_t number : {0, 1}) {
    GroupCheck::Host host;
    host.number = number;
    host.address = "10.0.0." + std::to_string(number + 1);
    host.facts.name = "node-" + std::to_string(number);
    host.facts.features = {"avx2", "fma"};
    host.facts.cores = 4;
    check.hosts.push_back(host);
  }
  check.links = {{0, 1, 0.5}, {1, 0, 0.5}};
  return check;
}

TEST(GroupCheck, OfOneHostHasNoLinks) {
  const CheckEnd end = check_group(checked(0, 1, {}), be_silent);

  ASSERT_TRUE(end.check);
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.check->hosts, SizeIs(1));
  EXPECT_THAT(end.check->links, IsEmpty());
}

TEST(GroupCheck, LetsEachHostConnectToEachOther) {
  const Endpoint at{"127.0.0.1", free_port()};
  std::vector<testing::ForkedProcess> others;
  for (const std::int64_t host : {1, 2}) {
    others.emplace_back([&at, host] {
      const CheckEnd end = check_group(checked(host, 3, at), be_silent);
      TREADLE_EXPECTS(!end.check && end.code == 0, "host 0 has the result");
    });
  }

  const CheckEnd end = check_group(checked(0, 3, at), be_silent);

  ASSERT_TRUE(end.check);
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.check->hosts, SizeIs(3));
  EXPECT_THAT(end.check->links, SizeIs(6));
  EXPECT_THAT(end.check->problems(), IsEmpty());
  for (testing::ForkedProcess& other : others)
    EXPECT_THAT(other.join(), IsEmpty());
}

TEST(GroupCheck, StartsTheProcessesOfATraining) {
  const testing::ScratchFolder folder;
  const Endpoint at{"127.0.0.1", free_port()};
  const auto noting = [&](std::int64_t host) {
    LaunchPlan plan = checked(host, 2, at);
    plan.command = {"sh", "-c", "echo $TREADLE_WORLD_SIZE > \"$0/$TREADLE_RANK\"",
                    folder.path().string()};
    return plan;
  };
  testing::ForkedProcess other([&] { check_group(noting(1), be_silent); });

  const CheckEnd end = check_group(noting(0), be_silent);

  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(other.join(), IsEmpty());
  EXPECT_EQ(end.check->hosts[1].first_rank, 2);
  for (const char* rank : {"0", "1", "2", "3"}) {
    std::string processes;
    std::ifstream(folder.path() / rank) >> processes;
    EXPECT_EQ(processes, "4") << "rank " << rank;
  }
}

TEST(GroupCheck, EndsOnAllHostsWithTheCodeOfAProcess) {
  const Endpoint at{"127.0.0.1", free_port()};
  const auto failing = [&](std::int64_t host) {
    LaunchPlan plan = checked(host, 2, at);
    plan.command = {"sh", "-c", "test $TREADLE_RANK != 3 || exit 5"};
    return plan;
  };
  testing::ForkedProcess other([&] {
    TREADLE_EXPECTS(check_group(failing(1), be_silent).code == 5, "a process has failed");
  });
  std::string announced;

  const CheckEnd end = check_group(failing(0), [&](const std::string& text) { announced += text; });

  EXPECT_EQ(end.code, 5);
  EXPECT_THAT(announced, HasSubstr("rank 3"));
  EXPECT_THAT(end.check->problems(), ElementsAre(HasSubstr("rank 3")));
  EXPECT_THAT(other.join(), IsEmpty());
}

TEST(GroupCheck, IsNotOneWithALaunch) {
  const Endpoint at{"127.0.0.1", free_port()};
  testing::ForkedProcess other([&at] {
    LaunchPlan plan = checked(1, 2, at);
    plan.command = {"true"};
    Supervisor(plan, [](const std::string&) {}).run();
  });
  try {
    check_group(checked(0, 2, at), be_silent);
    ADD_FAILURE() << "the launch was admitted";
  } catch (const CommunicationError& error) {
    EXPECT_THAT(error.what(), HasSubstr("(refused: one of the launches has --check"));
  }
  EXPECT_THAT(other.join(), HasSubstr("one of the launches has --check, the other has not"));
}

TEST(GroupCheck, HasNothingToReportOfHostsThatAreAlike) {
  EXPECT_THAT(two_hosts().problems(), IsEmpty());
  EXPECT_THAT(two_hosts().doubts(), IsEmpty());
}

TEST(GroupCheck, NamesBothEndsOfALinkThatIsNotThere) {
  GroupCheck check = two_hosts();
  check.links[1].milliseconds.reset();

  EXPECT_THAT(check.problems(),
              ElementsAre(HasSubstr("host 1 (node-1) does not reach host 0 (node-0) at 10.0.0.1")));
}

TEST(GroupCheck, DoubtsMoreProcessesThanCores) {
  GroupCheck check = two_hosts();
  check.hosts[0].processes = 5;

  EXPECT_THAT(check.doubts(),
              ElementsAre(HasSubstr("host 0 (node-0) has 4 cores for 5 processes")));
}

GroupReport report() {
  GroupReport report;
  report.communicator = "gloo";
  report.ranks = {{"node-0", "10.0.0.1", 2, "AVX2", "0.1.0", "1.13.1", "OpenBLAS"},
                  {"node-1", "10.0.0.2", 1, "DEFAULT", "0.1.0", "2.6.0", "MKL"}};
  report.speed = {0.25, 1.5e9, 3.5};
  report.problems = {"libtorch is 1.13.1 in rank 0 and 2.6.0 in rank 1"};
  return report;
}

TEST(GroupReport, IsReadAsItWasWritten) {
  const nlohmann::json written = report().json();

  EXPECT_EQ(GroupReport::from(written).json(), written);
  EXPECT_EQ(GroupReport::from(written).ranks[1].libtorch, "2.6.0");

  GroupReport alone = report();
  alone.speed.reset();
  EXPECT_FALSE(GroupReport::from(alone.json()).speed);
}

TEST(GroupCheck, ExplainsAFailureByTheReport) {
  GroupCheck check = two_hosts();
  check.failure = "rank 0 ended with exit code 5";

  check.add(report());

  EXPECT_THAT(check.problems(), ElementsAre(HasSubstr("libtorch is 1.13.1 in rank 0")));
}

TEST(GroupCheck, DoubtsASlowExchange) {
  GroupCheck check = two_hosts();
  GroupReport slow = report();
  slow.speed->exchange_ms = 48;

  check.add(slow);

  EXPECT_THAT(check.doubts(), ElementsAre(HasSubstr("an exchange of 500000 floats takes 48 ms")));

  slow.speed = {2.5, 1e9, 3.5};
  check.add(slow);
  EXPECT_THAT(check.doubts(), ElementsAre(HasSubstr("a message takes 2.5 ms")));
}

}  // namespace
}  // namespace treadle::launch
