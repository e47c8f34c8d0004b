#include "search/study/study_end.h"

#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/config.h>

namespace treadle::internal {
namespace {

TEST(EndedWithTrials, NamesWhatThereWasNoMoreOf) {
  const nlohmann::json space{{"model.dropout", {{"uniform", {0, 1}}}}};
  SearchSettings settings{.space = SearchSpace::parse(Config(space)),
                          .tuner = nullptr,
                          .tuner_name = "random",
                          .objectives = {"val_loss"}};
  settings.trials = 9;
  settings.pruner_name = "hyperband";
  settings.patience = 4;
  const auto end = [&](std::int64_t trials, bool is_exhausted, bool has_lost_patience = false) {
    return ended_with_trials(settings, trials, is_exhausted, has_lost_patience).dump();
  };
  EXPECT_EQ(end(9, false), R"({"reason":"trials","text":"all trials were made"})");
  EXPECT_EQ(end(9, true), R"({"reason":"trials","text":"all trials were made"})");
  EXPECT_EQ(end(8, true), R"({"reason":"space","text":"the tuner had no more points"})");
  EXPECT_EQ(end(8, false, true), R"({"reason":"patience","text":"no new best in 4 trials"})");
  EXPECT_EQ(end(8, false), R"({"reason":"pruner","text":"hyperband had no more trials to begin"})");
}

TEST(WhyNoneIsComplete, CountsWhatBecameOfTheTrials) {
  EXPECT_EQ(why_none_is_complete({}, ""),
            "the search has no trials, as its tuner found no point in the space");
  std::vector<StudyTrial> trials(3);
  for (StudyTrial& trial : trials)
    trial.now.state = TrialState::kFailed;
  trials[0].error = "the loss is nan";
  EXPECT_EQ(why_none_is_complete(trials, ""),
            "all 3 trials of the search failed, the first with: the loss is nan");
  trials[1].is_cancelled = true;
  trials[2].now.state = TrialState::kPruned;
  EXPECT_EQ(why_none_is_complete(trials, "threshold"),
            "no trial of the search was trained to its end: of 3 trials 1 were pruned, 1 were "
            "cancelled and 1 failed; give threshold bounds that good trials keep, or leave it out. "
            "The first that failed: the loss is nan");
}

}  // namespace
}  // namespace treadle::internal
