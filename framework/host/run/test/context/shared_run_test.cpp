#include "context/shared_run.h"

#include <chrono>
#include <string>
#include <thread>
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

TEST(SharedRunTimes, AreThoseOfEachRankInAllProcesses) {
  const auto errors = at_ranks(3, [&](Communicator& communicator) {
    Timeline timeline;
    if (communicator.rank() == 1) {
      const Timeline::Span span(&timeline, Phase::kExchange);
      communicator.all_gather({}, {});
    } else {
      communicator.all_gather({}, {});
    }
    const std::vector<RankTime> times = times_by_rank(communicator, timeline);
    ASSERT_EQ(times.size(), 3U);
    EXPECT_EQ(times[1].host, host_name());
    EXPECT_GT(times[1].exchange_seconds, 0);
    EXPECT_EQ(times[0].exchange_seconds, 0);
    EXPECT_EQ(times[2].waiting_share, 0);
  });

  EXPECT_THAT(errors, Each(""));
}

TEST(SharedRunTimes, LeaveTheTimeOfLoadingOut) {
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    Timeline timeline;
    {
      const Timeline::Span loading(&timeline, Phase::kLoading);
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
    }
    const auto begin = Timeline::Clock::now();
    {
      const Timeline::Span span(&timeline, Phase::kExchange);
      while (Timeline::Clock::now() - begin < std::chrono::milliseconds(4)) {
      }
    }
    // Of 44 ms it would be a tenth at most.
    EXPECT_GT(times_by_rank(communicator, timeline).front().waiting_share, 0.11);
  });

  EXPECT_THAT(errors, Each(""));
}

TEST(SharedRunTimes, AreUnknownWhereAProcessIsGone) {
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    if (communicator.rank() == 1)
      return communicator.abort();
    EXPECT_THAT(times_by_rank(communicator, Timeline()), IsEmpty());
  });

  EXPECT_THAT(errors, Each(""));
}

}  // namespace
}  // namespace treadle::internal
