#include <treadle/host/launch/addresses.h>

#include <netdb.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/system/host_name.h>
#include <treadle/host/launch/host_facts.h>

namespace treadle::launch {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Endpoint, HasAHostAndAPort) {
  const Endpoint endpoint = Endpoint::parse("node-1:29500", "--at");

  EXPECT_EQ(endpoint.host, "node-1");
  EXPECT_EQ(endpoint.port, 29500);
  EXPECT_EQ(endpoint.text(), "node-1:29500");
}

TEST(Endpoint, HasBracketsAroundIpv6) {
  const Endpoint endpoint = Endpoint::parse("[fd00::1]:29500", "--at");

  EXPECT_EQ(endpoint.host, "fd00::1");
  EXPECT_EQ(endpoint.text(), "[fd00::1]:29500");
}

TEST(Endpoint, IsRefusedWithItsOption) {
  for (const char* text : {"", "node-1", "node-1:", ":29500", "node-1:0", "node-1:65536",
                           "node-1:http", "fd00::1:29500", "node-1:29500x", "[]:1"}) {
    try {
      Endpoint::parse(text, "--at");
      ADD_FAILURE() << text;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), StartsWith("--at: \"" + std::string(text) + "\" is no address"));
    }
  }
}

TEST(OwnAddress, IsLoopbackWhereTheMeetingIs) {
  EXPECT_EQ(own_address_towards({"127.0.0.1", 29500}), "127.0.0.1");
  EXPECT_THAT(own_address_towards({"localhost", 29500}), AnyOf("127.0.0.1", "::1"));
}

TEST(OwnAddress, IsThatOfAnInterfaceOfThisHost) {
  for (const std::string& address : own_addresses())
    EXPECT_EQ(own_address_towards({address, 29500}), address);
}

// Debian writes the name of the host beside 127.0.1.1 in /etc/hosts: others would reach themselves.
TEST(OwnAddress, IsNotLoopbackForTheNameOfThisHost) {
  if (own_addresses().empty())
    GTEST_SKIP() << "this host has no network";
  if (gethostbyname(host_name().c_str()) == nullptr)
    GTEST_SKIP() << "the name of this host has no address";
  EXPECT_THAT(own_address_towards({host_name(), 29500}), Not(StartsWith("127.")));
}

TEST(OwnAddress, NeedsAKnownHost) {
  try {
    own_address_towards({"no-such-host.invalid", 29500});
    FAIL();
  } catch (const CommunicationError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"no-such-host.invalid\" is no host that is known here"));
  }
}

TEST(HostFacts, SurviveTheirWayToAnotherHost) {
  const HostFacts facts = HostFacts::of_this_host();

  EXPECT_EQ(HostFacts::from(facts.json()).json(), facts.json());
  EXPECT_THAT(facts.name, Not(IsEmpty()));
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_mib, 0);
}

}  // namespace
}  // namespace treadle::launch
