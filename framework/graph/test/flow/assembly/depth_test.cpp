#include "flow/assembly/depth.h"

#include <gtest/gtest.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

/// A flow within a flow, so many in all.
FlowBuilder stacked(int levels) {
  FlowBuilder flow = FlowBuilder::from(testing::times(1)).through(testing::times(1));
  for (int level = 1; level < levels; ++level)
    flow = FlowBuilder::from(testing::times(1)).through(flow);
  return flow;
}

TEST(WhyTooDeep, AllowsAHundredLevels) {
  EXPECT_EQ(why_too_deep(stacked(100), 1), std::nullopt);
  EXPECT_EQ(why_too_deep(stacked(101), 1), "flows stand in each other more than 100 levels deep");
}

TEST(WhyTooDeep, CountsTheLevelsAroundAFlow) {
  EXPECT_EQ(why_too_deep(stacked(40), 61), std::nullopt);
  EXPECT_NE(why_too_deep(stacked(40), 62), std::nullopt);
}

TEST(WhyTooDeep, CountsTheLevelsOfGraphsThatAreBuilt) {
  const FlowBuilder outer = FlowBuilder::from(testing::times(1)).through(stacked(60).build());
  EXPECT_EQ(why_too_deep(outer, 40), std::nullopt);
  EXPECT_NE(why_too_deep(outer, 41), std::nullopt);
}

}  // namespace
}  // namespace treadle::graph
