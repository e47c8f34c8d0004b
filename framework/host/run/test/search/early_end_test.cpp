#include "search/study/early_end.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace treadle::internal {
namespace {

TEST(EarlyEnds, AreWhatWasWritten) {
  EXPECT_TRUE(is_early_end(nullptr));
  EXPECT_TRUE(is_early_end(ended_by_time(3, -0.5, std::nullopt)));
  EXPECT_TRUE(is_early_end(ended_by_time(3, 1.5, 2)));
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, nlohmann::json>>{{"jobs", -1},
                                                           {"jobs", 1e300},
                                                           {"text", 7},
                                                           {"reason", nullptr},
                                                           {"best_trial", "0"},
                                                           {"best_trial", -1},
                                                           {"seconds_left", "1"}}) {
    nlohmann::json ended = ended_by_time(3, 1.5, 2);
    ended[key] = value;
    EXPECT_FALSE(is_early_end(ended)) << ended;
  }
  EXPECT_FALSE(is_early_end(nlohmann::json::object()));
  EXPECT_FALSE(is_early_end("soon"));
}

}  // namespace
}  // namespace treadle::internal
