#include "launch/group_measurement.h"

#include <mutex>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/testing/distributed/thread_communicator.h>

namespace treadle::cli {
namespace {

using ::testing::Each;

TEST(GroupMeasurement, IsTheSameInAllProcesses) {
  std::mutex mutex;
  std::vector<launch::GroupReport::Speed> speeds;

  const auto errors = treadle::testing::at_ranks(3, [&](Communicator& group) {
    const launch::GroupReport::Speed speed = measure_group(group);
    const std::lock_guard lock(mutex);
    speeds.push_back(speed);
  });

  EXPECT_THAT(errors, Each(""));
  ASSERT_EQ(speeds.size(), 3U);
  for (const launch::GroupReport::Speed& speed : speeds) {
    EXPECT_GT(speed.latency_ms, 0);
    EXPECT_GT(speed.bytes_per_second, 0);
    EXPECT_GT(speed.exchange_ms, 0);
    EXPECT_EQ(speed.latency_ms, speeds.front().latency_ms);
    EXPECT_EQ(speed.bytes_per_second, speeds.front().bytes_per_second);
    EXPECT_EQ(speed.exchange_ms, speeds.front().exchange_ms);
  }
}

}  // namespace
}  // namespace treadle::cli
