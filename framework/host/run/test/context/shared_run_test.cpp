#include "context/shared_run.h"

#include <latch>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/system/host_name.h>
#include <treadle/testing/distributed/thread_communicator.h>

namespace treadle::internal {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using treadle::testing::at_ranks;

TEST(SharedRunText, NamesTheRanksOfEachHost) {
  EXPECT_EQ(group_text({"a", "a", "b"}), "3 processes train together: ranks 0-1 on a, rank 2 on b");
  EXPECT_EQ(group_text({"a", "b", "b", "a"}),
            "4 processes train together: rank 0 on a, ranks 1-2 on b, rank 3 on a");
  EXPECT_EQ(group_text({"a\033[31m", "b"}).find('\033'), std::string::npos);
}

TimeResult spent(double seconds, std::map<std::string, double> phases, double budget_used) {
  TimeResult time;
  time.seconds = seconds;
  time.phases = std::move(phases);
  time.budget_used = budget_used;
  return time;
}

TEST(SharedRunTimes, AreThoseOfEachRankInAllProcesses) {
  const auto errors = at_ranks(3, [&](Communicator& communicator) {
    const TimeResult own = communicator.rank() == 1
                               ? spent(10, {{"loading", 2.0}, {"exchange", 4.0}}, 0.75)
                               : spent(5, {{"loading", 2.0}}, 0.25);

    const std::vector<RankTime> times = times_by_rank(communicator, own);

    ASSERT_EQ(times.size(), 3U);
    EXPECT_EQ(times[1].host, host_name());
    EXPECT_EQ(times[1].exchange_seconds, 4);
    EXPECT_EQ(times[1].waiting_share, 0.5) << "loading is left out";
    EXPECT_EQ(times[1].budget_used, 0.75);
    EXPECT_EQ(times[2].waiting_share, 0);
  });

  EXPECT_THAT(errors, Each(""));
}

TEST(SharedRunTimes, AreUnknownWhereAProcessIsGone) {
  std::latch connected(1);
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    if (communicator.rank() == 1) {
      connected.wait();
      return communicator.abort();
    }
    connected.count_down();
    EXPECT_THAT(times_by_rank(communicator, TimeResult()), IsEmpty());
  });

  EXPECT_THAT(errors, Each(""));
}

}  // namespace
}  // namespace treadle::internal
