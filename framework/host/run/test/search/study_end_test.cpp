#include "search/study/study_end.h"

#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/config.h>

namespace treadle::internal {
namespace {

TEST(EndedBy, NamesTheReason) {
  const nlohmann::json space{{"model.dropout", {{"uniform", {0, 1}}}}};
  SearchSettings settings{.space = SearchSpace::parse(Config(space)),
                          .tuner = nullptr,
                          .tuner_name = "random",
                          .objectives = {"val_loss"}};
  settings.pruner_name = "hyperband";
  settings.patience = 4;
  const auto text = [&](EndReason reason) { return ended_by(reason, settings).dump(); };
  EXPECT_EQ(text(EndReason::kTrials), R"({"reason":"trials","text":"all trials were made"})");
  EXPECT_EQ(text(EndReason::kSpace), R"({"reason":"space","text":"the tuner had no more points"})");
  EXPECT_EQ(text(EndReason::kPatience),
            R"({"reason":"patience","text":"no new best in 4 trials"})");
  EXPECT_EQ(text(EndReason::kPruner),
            R"({"reason":"pruner","text":"hyperband had no more trials to begin"})");
}

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
