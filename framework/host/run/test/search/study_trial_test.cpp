#include "search/study/study_trial.h"

#include <vector>

#include <gtest/gtest.h>

namespace treadle::internal {
namespace {

TEST(WhyNoneIsComplete, CountsWhatBecameOfTheTrials) {
  EXPECT_EQ(why_none_is_complete({}, ""),
            "the search has no trials, as its tuner found no point in the space");
  std::vector<StudyTrial> trials(3);
  for (StudyTrial& trial : trials)
    trial.now.state = TrialState::kFailed;
  trials[0].error = "the loss is nan";
  EXPECT_EQ(why_none_is_complete(trials, ""),
            "all 3 trials of the search failed, the first with: the loss is nan");
  trials[1].error = kCancelled;
  trials[2].now.state = TrialState::kPruned;
  EXPECT_EQ(why_none_is_complete(trials, "threshold"),
            "no trial of the search was trained to its end: of 3 trials 1 were pruned, 1 were "
            "cancelled and 1 failed; give threshold bounds that good trials keep, or leave it out. "
            "The first that failed: the loss is nan");
}

}  // namespace
}  // namespace treadle::internal
