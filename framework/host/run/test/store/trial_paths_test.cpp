#include "store/trial_paths.h"

#include <optional>

#include <gtest/gtest.h>

namespace treadle::internal {
namespace {

TEST(TrialPaths, HaveTheNumberOfTheTrialAndNothingElseDoes) {
  EXPECT_EQ(trial_in_path(trial_path(7)), 7);
  EXPECT_EQ(trial_in_path("trials/12/fold-2"), 12);
  for (const char* other : {"", "trials", "trials/", "trials/fold-2", "trials/7x", "trials7/1",
                            "fold-2", "members/trials/7"})
    EXPECT_EQ(trial_in_path(other), std::nullopt) << other;
}

}  // namespace
}  // namespace treadle::internal
