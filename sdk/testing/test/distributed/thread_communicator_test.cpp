#include <treadle/testing/distributed/thread_communicator.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AtRanks, RunsEachRankOfAGroup) {
  std::vector<std::int64_t> seen(3);

  const auto errors = at_ranks(3, [&](Communicator& group) {
    std::vector<std::int64_t> all(3);
    const std::int64_t mine = 10 * group.rank();
    group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    seen[static_cast<std::size_t>(group.rank())] = all[0] + all[1] + all[2];
  });

  EXPECT_EQ(errors, kNoErrors);
  EXPECT_THAT(seen, ElementsAre(30, 30, 30));
}

TEST(AtRanks, ARankThatFailsFailsTheOthers) {
  const auto errors = at_ranks(2, [&](Communicator& group) {
    if (group.rank() == 1)
      throw DataError("no rows");
    std::byte byte{};
    group.broadcast(std::span(&byte, 1), 1);
  });

  EXPECT_THAT(errors, ElementsAre(HasSubstr("rank 1 is gone (it has left the group)"), "no rows"));
}

TEST(ThreadCommunicator, SizesThatDifferAreRefused) {
  const auto errors = at_ranks(2, [&](Communicator& group) {
    std::vector<std::byte> bytes(group.rank() == 0 ? 3 : 2);
    group.broadcast(bytes, 0);
  });

  EXPECT_THAT(errors, ElementsAre(HasSubstr("rank 0 sent 3 bytes, expected 2")));
}

}  // namespace
}  // namespace treadle::testing
