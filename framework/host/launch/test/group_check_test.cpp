#include <treadle/host/launch/group_check.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/forked_process.h>

#include "hosts/message_socket.h"

namespace treadle::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LaunchPlan checked(std::int64_t host, std::int64_t hosts, const Endpoint& at) {
  LaunchPlan plan;
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
  const CheckEnd end = check_group(checked(0, 1, {}));

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
      const CheckEnd end = check_group(checked(host, 3, at));
      TREADLE_EXPECTS(!end.check && end.code == 0, "host 0 has the result");
    });
  }

  const CheckEnd end = check_group(checked(0, 3, at));

  ASSERT_TRUE(end.check);
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.check->hosts, SizeIs(3));
  EXPECT_THAT(end.check->links, SizeIs(6));
  EXPECT_THAT(end.check->problems(), IsEmpty());
  for (testing::ForkedProcess& other : others)
    EXPECT_THAT(other.join(), IsEmpty());
}

TEST(GroupCheck, IsNotOneWithALaunch) {
  const Endpoint at{"127.0.0.1", free_port()};
  testing::ForkedProcess other([&at] {
    LaunchPlan plan = checked(1, 2, at);
    plan.command = {"true"};
    Supervisor(plan, [](const std::string&) {}).run();
  });
  LaunchPlan plan = checked(0, 2, at);
  plan.timeout = std::chrono::milliseconds(300);

  EXPECT_THROW(check_group(plan), CommunicationError);
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

TEST(GroupCheck, DoubtsHostsWithOtherKernels) {
  GroupCheck check = two_hosts();
  check.hosts[1].facts.features = {};

  EXPECT_THAT(check.doubts(), ElementsAre(HasSubstr("host 0 (node-0) computes with AVX2, host 1 "
                                                    "(node-1) with DEFAULT: their bits differ")));
}

TEST(GroupCheck, DoubtsMoreProcessesThanCores) {
  GroupCheck check = two_hosts();
  check.hosts[0].processes = 5;

  EXPECT_THAT(check.doubts(),
              ElementsAre(HasSubstr("host 0 (node-0) has 4 cores for 5 processes")));
}

}  // namespace
}  // namespace treadle::launch
