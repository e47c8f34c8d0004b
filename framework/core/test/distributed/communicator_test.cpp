#include <treadle/core/distributed/communicator.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/distributed/group_errors.h>

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Lists the hooks that are called.
class Listed final : public Communicator {
 public:
  bool refuses = false;
  std::vector<std::string> calls;

 private:
  void do_connect(const Rendezvous&) override {
    calls.emplace_back("connect");
    if (refuses)
      throw CommunicationError("nobody is there");
  }
  void do_all_gather(std::span<const std::byte>, std::span<std::byte>) override {
    calls.emplace_back("all_gather");
  }
  void do_all_to_all(std::span<const std::byte>, std::span<const std::size_t>, std::span<std::byte>,
                     std::span<const std::size_t>) override {
    calls.emplace_back("all_to_all");
  }
  void do_broadcast(std::span<std::byte>, std::int64_t) override {
    calls.emplace_back("broadcast");
  }
  void do_abort() noexcept override { calls.emplace_back("abort"); }
};

std::vector<std::byte> bytes(std::size_t count) {
  return std::vector<std::byte>(count);
}

class CommunicatorChecks : public ::testing::Test {
 protected:
  void connect() { group_.connect({.rank = 1, .world_size = 3}); }

  Listed group_;
  std::vector<std::byte> six_ = bytes(6);
};

TEST_F(CommunicatorChecks, HasTheRankAndSizeOfItsRendezvous) {
  EXPECT_EQ(group_.world_size(), 0);

  connect();

  EXPECT_EQ(group_.rank(), 1);
  EXPECT_EQ(group_.world_size(), 3);
}

TEST_F(CommunicatorChecks, ARankIsOneOfTheGroup) {
  for (const auto& [rank, size] : {std::pair{-1, 2}, {2, 2}, {0, 0}, {0, -1}})
    EXPECT_THROW(group_.connect({.rank = rank, .world_size = size}), ContractViolation);
  EXPECT_THROW(group_.connect({.timeout = std::chrono::milliseconds(0)}), ContractViolation);

  EXPECT_THAT(group_.calls, ElementsAre());
}

TEST_F(CommunicatorChecks, ConnectsOnce) {
  connect();

  EXPECT_THROW(connect(), ContractViolation);
  EXPECT_THAT(group_.calls, ElementsAre("connect"));
}

TEST_F(CommunicatorChecks, ConnectsOnceAlsoWhereThatFailed) {
  group_.refuses = true;
  EXPECT_THROW(connect(), CommunicationError);

  EXPECT_THROW(connect(), ContractViolation);
  EXPECT_THROW(group_.broadcast(six_, 0), ContractViolation) << "nor is it connected";
  EXPECT_THAT(group_.calls, ElementsAre("connect"));
}

TEST_F(CommunicatorChecks, NothingIsSentBeforeItIsConnected) {
  EXPECT_THROW(group_.all_gather(bytes(0), std::span<std::byte>()), ContractViolation);
  EXPECT_THROW(group_.all_to_all({}, {}, {}, {}), ContractViolation);
  EXPECT_THROW(group_.broadcast(six_, 0), ContractViolation);

  EXPECT_THAT(group_.calls, ElementsAre());
}

TEST_F(CommunicatorChecks, AGatherHasRoomForAllRanks) {
  connect();

  group_.all_gather(bytes(2), six_);
  EXPECT_THROW(group_.all_gather(bytes(1), six_), ContractViolation);
  EXPECT_THROW(group_.all_gather(bytes(6), six_), ContractViolation);

  EXPECT_THAT(group_.calls, ElementsAre("connect", "all_gather"));
}

TEST_F(CommunicatorChecks, SizesOfAnExchangeAddUp) {
  using Sizes = std::vector<std::size_t>;
  connect();

  group_.all_to_all(bytes(3), Sizes{0, 1, 2}, six_, Sizes{6, 0, 0});
  EXPECT_THROW(group_.all_to_all(bytes(3), Sizes{0, 1, 1}, six_, Sizes{6, 0, 0}),
               ContractViolation);
  EXPECT_THROW(group_.all_to_all(bytes(3), Sizes{0, 1, 2}, six_, Sizes{5, 0, 0}),
               ContractViolation);
  EXPECT_THROW(group_.all_to_all(bytes(3), Sizes{1, 2}, six_, Sizes{6, 0, 0}), ContractViolation);
  EXPECT_THROW(group_.all_to_all(bytes(3), Sizes{0, 1, 2}, six_, Sizes{6, 0, 0, 0}),
               ContractViolation);

  EXPECT_THAT(group_.calls, ElementsAre("connect", "all_to_all"));
}

TEST_F(CommunicatorChecks, ARootIsARankOfTheGroup) {
  connect();

  group_.broadcast(six_, 2);
  EXPECT_THROW(group_.broadcast(six_, 3), ContractViolation);
  EXPECT_THROW(group_.broadcast(six_, -1), ContractViolation);

  EXPECT_THAT(group_.calls, ElementsAre("connect", "broadcast"));
}

TEST_F(CommunicatorChecks, AfterAnAbortEveryCallThrows) {
  connect();
  group_.abort();
  group_.abort();

  EXPECT_THROW(group_.all_gather(bytes(2), six_), CommunicationError);
  EXPECT_THROW(group_.broadcast(six_, 0), CommunicationError);
  EXPECT_THAT(group_.calls, ElementsAre("connect", "abort"));
}

TEST_F(CommunicatorChecks, AnAbortedOneDoesNotConnect) {
  group_.abort();

  EXPECT_THROW(connect(), CommunicationError);
  EXPECT_THAT(group_.calls, ElementsAre("abort"));
}

TEST(GroupErrors, NameThePlaceAndTheRanks) {
  const Rendezvous one_host{.rank = 0, .world_size = 4, .folder = "/run/group"};
  const Rendezvous hosts{.rank = 2, .world_size = 4, .address = "node-1:29500"};

  const CommunicationError one = absent_ranks(one_host, std::vector<std::int64_t>{3});
  EXPECT_THAT(one.what(), HasSubstr("/run/group: rank 3 of 4 did not join within 60 s"));
  EXPECT_EQ(one.rank(), 3);
  const CommunicationError three = absent_ranks(hosts, std::vector<std::int64_t>{0, 1, 3});
  EXPECT_THAT(three.what(), HasSubstr("node-1:29500: ranks 0, 1 and 3 of 4 did not join"));
  EXPECT_EQ(three.rank(), CommunicationError::kUnknownRank);
  EXPECT_THAT(taken_rank(hosts).what(), HasSubstr("another process is rank 2"));
  EXPECT_EQ(lost_rank(1, "killed").rank(), 1);
  EXPECT_THAT(silent_rank(1, std::chrono::milliseconds(1500)).what(),
              HasSubstr("rank 1 did not answer within 1.5 s"));
}

}  // namespace
}  // namespace treadle
