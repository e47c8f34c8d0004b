#include "search/budget/training_times.h"

#include <gtest/gtest.h>

namespace treadle::internal {
namespace {

StudyTrial trial(TrialState state, double value, std::int64_t epochs, double seconds) {
  StudyTrial made{};
  made.now.state = state;
  if (state == TrialState::kComplete)
    made.now.values = {value};
  if (epochs > 0)
    made.now.intermediate = {{epochs, value}};
  made.seconds = seconds;
  made.timed_epochs = epochs;
  return made;
}

/// With the first one's document.
double of_last(const std::vector<StudyTrial>& trials, TrainingTimes::Epochs epochs) {
  return TrainingTimes(trials, 1, false, epochs).of_last(0);
}

TEST(TrainingTimes, TheLastTrainingHasAFitOfEachFoldAndOneOfAllRows) {
  std::vector<StudyTrial> trials;
  trials.push_back(trial(TrialState::kComplete, 1, 10, 6));
  EXPECT_DOUBLE_EQ(TrainingTimes(trials, 3, false, {10}).of_last(0), 6);
  EXPECT_DOUBLE_EQ(TrainingTimes(trials, 3, true, {10}).of_last(0), 6 + 2.5);
  EXPECT_DOUBLE_EQ(TrainingTimes(trials, 1, false, {10}).of_member(0), 0)
      << "the model is that of the trial";
  EXPECT_DOUBLE_EQ(TrainingTimes(trials, 3, true, {10}).of_member(0), 2.5);
}

// Half a second each. The last one is followed by an evaluation, for which there is another.
TEST(TrainingTimes, APausedTrialHasTheEpochsThatCompleteOnesHadMore) {
  std::vector<StudyTrial> trials;
  trials.push_back(trial(TrialState::kPaused, 1, 4, 2));
  const TrainingTimes::Epochs early{100, /*may_stop_early=*/true};
  EXPECT_DOUBLE_EQ(TrainingTimes(trials, 1, false, early).of_last(0), 2 + 3 * .5)
      << "half as many again";
  EXPECT_DOUBLE_EQ(TrainingTimes(trials, 1, false, {5, true}).of_last(0), 2 + 2 * .5);
  EXPECT_DOUBLE_EQ(TrainingTimes(trials, 1, false, {}).of_last(0), 2 + 3 * .5);
  EXPECT_DOUBLE_EQ(TrainingTimes(trials, 1, false, {100}).of_last(0), 2 + 97 * .5) << "all 100";
  trials.push_back(trial(TrialState::kComplete, 1, 20, 9));
  trials.push_back(trial(TrialState::kComplete, 1, 30, 9));
  // All epochs but the last were reported.
  EXPECT_DOUBLE_EQ(TrainingTimes(trials, 1, false, early).of_last(0), 2 + 23 * .5);
}

// Models that stop after a few epochs are no measure of one that is still learning.
TEST(TrainingTimes, CompleteTrialsWithFewerEpochsThanAPausedOneHasAreNoMeasureOfIt) {
  std::vector<StudyTrial> trials;
  trials.push_back(trial(TrialState::kPaused, 1, 60, 30));
  trials.push_back(trial(TrialState::kComplete, 1, 20, 1));
  const TrainingTimes::Epochs early{200, /*may_stop_early=*/true};

  EXPECT_DOUBLE_EQ(of_last(trials, early), 30 + 31 * .5) << "half as many again";
  trials.push_back(trial(TrialState::kComplete, 1, 60, 1));
  EXPECT_DOUBLE_EQ(of_last(trials, early), 30 + 31 * .5) << "which was not paused at 60";
  trials.push_back(trial(TrialState::kComplete, 1, 70, 1));
  trials.push_back(trial(TrialState::kComplete, 1, 80, 1));

  EXPECT_DOUBLE_EQ(of_last(trials, early), 30 + 17 * .5);
}

TEST(TrainingTimes, FoldsThatHaveEndedHaveNoMoreEpochs) {
  std::vector<StudyTrial> trials;
  StudyTrial& paused = trials.emplace_back(trial(TrialState::kPaused, 1, 20, 40));
  const TrainingTimes times(trials, 4, false, {200, /*may_stop_early=*/true});
  EXPECT_DOUBLE_EQ(times.of_last(0), 40 + 4 * 11 * .5);
  paused.training.emplace().fits.resize(4);
  paused.training->fits[0].state = TrialFit::State::kPaused;
  for (const std::size_t fold : {1, 2, 3})
    paused.training->fits[fold].state = TrialFit::State::kEnded;

  EXPECT_DOUBLE_EQ(times.of_last(0), 40 + (10 + 4) * .5) << "and each is evaluated";
}

// As of the first trial of a process, which ASHA pauses after one epoch.
TEST(TrainingTimes, AFurtherEpochTakesAsLongAsThoseBehindTheFirst) {
  std::vector<StudyTrial> trials;
  StudyTrial& paused = trials.emplace_back(trial(TrialState::kPaused, 1, 1, 3));
  paused.epoch_times.add(2, /*is_first=*/true);
  EXPECT_DOUBLE_EQ(of_last(trials, {27}), 3 + 27 * 2) << "of which there are none";

  paused.now.intermediate = {{1, 1}, {3, 1}};
  paused.seconds = 3.5;
  paused.timed_epochs = 3;
  paused.epoch_times.add(.25, /*is_first=*/true);
  paused.epoch_times.add(.125, /*is_first=*/false);
  paused.epoch_times.add(.375, /*is_first=*/false);

  EXPECT_DOUBLE_EQ(of_last(trials, {27}), 3.5 + 25 * .25);
}

TEST(TrainingTimes, EpochsOfAJobThatRunsAreStillToBeTimed) {
  std::vector<StudyTrial> trials;
  StudyTrial& running = trials.emplace_back(trial(TrialState::kRunning, 1, 3, 1.5));
  running.epoch_times.add(.5, /*is_first=*/false);
  const double before = of_last(trials, {27});

  for (std::int64_t epoch = 4; epoch < 27; ++epoch)
    running.now.intermediate.push_back({epoch, 1});

  EXPECT_DOUBLE_EQ(of_last(trials, {27}), before);
  EXPECT_DOUBLE_EQ(before, 1.5 + 25 * .5);
}

// The last training begins with no checkpoint of another trial.
TEST(TrainingTimes, EpochsOfAnotherTrialAreTrainedToo) {
  std::vector<StudyTrial> trials;
  StudyTrial& copy = trials.emplace_back(trial(TrialState::kComplete, 1, 10, 3));
  copy.inherited = {{2, 1}, {4, 1}};
  copy.timed_epochs = own_epochs(copy);
  EXPECT_EQ(copy.timed_epochs, 6);
  EXPECT_DOUBLE_EQ(of_last(trials, {10}), 3 + 4 * .5);
}

TEST(TrainingTimes, AllWorkersShareTheEndButFoldsTakeTurns) {
  std::vector<StudyTrial> trials;
  for (const auto& [value, seconds] : {std::pair(3., 100.), {1., 10.}, {2., 20.}})
    trials.push_back(trial(TrialState::kComplete, value, 5, seconds));
  trials.push_back(trial(TrialState::kPaused, 0, 5, 50));
  for (std::size_t i = 0; i < trials.size(); ++i)
    trials[i].now.number = static_cast<std::int64_t>(i);
  const TrainingTimes times(trials, 5, true, {5});
  constexpr double kReserve = 1.1;
  // A fit takes 2 s. One worker: five folds and the refit; two: three turns and the refit.
  EXPECT_DOUBLE_EQ(times.ends(0, 1)(1), kReserve * 12.5);
  EXPECT_DOUBLE_EQ(times.ends(0, 2)(1), kReserve * 8.5);
  EXPECT_DOUBLE_EQ(times.ends(0, 100)(1), kReserve * 4.5);
  // Of four members two trials are trained: 2.5 s and 5 s.
  EXPECT_DOUBLE_EQ(times.ends(4, 1)(1), kReserve * 20);
  EXPECT_DOUBLE_EQ(times.ends(4, 2)(1), kReserve * 10);
}

TEST(MeanOfFolds, HasTheEpochsThatAllHaveReachedAndTheLastValueOfAFoldThatHasEnded) {
  std::vector<TrialFit> fits(2);
  fits[0].values = {{1, 2}, {2, 4}, {3, 6}};
  fits[1].values = {{1, 4}};
  const auto steps = [&] {
    std::vector<std::pair<std::int64_t, double>> found;
    for (const IntermediateValue& value : mean_of_folds(fits))
      found.emplace_back(value.step, value.value);
    return found;
  };
  using Steps = std::vector<std::pair<std::int64_t, double>>;
  EXPECT_EQ(steps(), (Steps{{1, 3}}));
  fits[1].state = TrialFit::State::kEnded;
  EXPECT_EQ(steps(), (Steps{{1, 3}, {2, 4}, {3, 5}}));
  fits.resize(1);
  EXPECT_EQ(steps(), (Steps{{1, 2}, {2, 4}, {3, 6}}));
}

}  // namespace
}  // namespace treadle::internal
