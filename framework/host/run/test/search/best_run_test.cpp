#include "search/study/best_run.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Trial trial_with(std::int64_t number, TrialState state, double value,
                 std::vector<double> constraints = {}) {
  Trial made;
  made.number = number;
  made.state = state;
  made.intermediate = {{1, value}};
  if (state == TrialState::kComplete)
    made.values = {value};
  made.constraints = std::move(constraints);
  return made;
}

class BestRunTest : public ::testing::Test {
 protected:
  BestRunTest() {
    std::string pattern = (fs::temp_directory_path() / "treadle-best-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    journal_.emplace(folder_ / "search.journal", "study", space_, std::vector<bool>{false},
                     nlohmann::json{{"seed", 1}});
  }
  ~BestRunTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  BestRun run(std::vector<Trial> trials, std::optional<std::int64_t> chosen = {}) {
    return {*journal_, std::move(trials), chosen};
  }
  static FitPlanner::Orders begin(BestRun& run,
                                  std::optional<std::chrono::steady_clock::time_point> deadline) {
    ValidationPlan plan;
    plan.folds.push_back({"fold-1", {0, 1}, {2}});
    return run.begin(run.choose().value(), nullptr,
                     std::make_unique<CrossValidation>(plan, TrainingPlan()), deadline);
  }

  const SearchSpace space_{{uniform("x", 0, 1)}};
  fs::path folder_;
  std::optional<StudyJournal> journal_;
  const std::vector<Trial> trials_{
      trial_with(0, TrialState::kComplete, 3), trial_with(1, TrialState::kComplete, 1),
      trial_with(2, TrialState::kComplete, 2), trial_with(3, TrialState::kPaused, 0)};
};

TEST_F(BestRunTest, TakesTheBestCompleteTrialThenTheFurthestPausedOne) {
  EXPECT_EQ(run(trials_).choose(), 1);
  EXPECT_EQ(run({trials_[3]}).choose(), 3);
  EXPECT_EQ(run({trial_with(0, TrialState::kFailed, 1)}).choose(), std::nullopt);
}

TEST_F(BestRunTest, TakesTheOneThatATimeBudgetHasChosen) {
  EXPECT_EQ(run(trials_, 3).choose(), 3);
  EXPECT_EQ(run(trials_, 7).choose(), 1) << "which is behind the end of the study";
}

TEST_F(BestRunTest, TrainsAnOrdinaryRunWithADeadlineForItsModel) {
  BestRun best = run(trials_);
  const auto deadline = std::chrono::steady_clock::now();

  const FitPlanner::Orders orders = begin(best, deadline);

  ASSERT_EQ(orders.start.size(), 1U);
  EXPECT_EQ(orders.start[0].id.path(), "final");
  EXPECT_EQ(orders.start[0].deadline, deadline);
  EXPECT_EQ(best.trial(), 1);
}

TEST_F(BestRunTest, TakesTheNextBestAfterAFailureOfTheTraining) {
  {
    BestRun best = run(trials_, /*chosen=*/1);
    begin(best, {});
    EXPECT_FALSE(best.has_next_best());

    EXPECT_EQ(best.failed(FitId(), TrainingError("the loss is nan")),
              "search: the last training of trial 1 failed: the loss is nan; that of trial 2, the "
              "next best, begins");

    EXPECT_TRUE(best.has_next_best());
    EXPECT_THAT(best.failed(FitId(), TrainingError("another fold")), IsEmpty());
  }
  BestRun resumed = run(trials_, 1);
  EXPECT_EQ(resumed.choose(), 2);
}

TEST_F(BestRunTest, StopsAfterThreeFailures) {
  for (const bool has_next : {true, true, false}) {
    BestRun best = run(trials_);
    begin(best, {});
    best.failed(FitId(), TrainingError("the loss is nan"));
    EXPECT_EQ(best.has_next_best(), has_next);
  }
}

TEST_F(BestRunTest, OtherFailuresAreNotTheTrials) {
  BestRun best = run(trials_);
  begin(best, {});

  EXPECT_THAT(best.failed(FitId(), StorageError("the disk is full")), IsEmpty());
  EXPECT_THAT(
      best.failed(FitId("baselines", 0, 1).child("repeat", 0, 1), TrainingError("the loss is nan")),
      IsEmpty());

  EXPECT_FALSE(best.has_next_best());
  EXPECT_EQ(best.choose(), 1);
}

TEST_F(BestRunTest, MembersOfAnEnsembleSatisfyTheConstraintsIfTheBestTrialDoes) {
  const std::vector<Trial> trials{
      trial_with(0, TrialState::kComplete, 3, {0}), trial_with(1, TrialState::kComplete, 1, {0.5}),
      trial_with(2, TrialState::kPaused, 2, {}), trial_with(3, TrialState::kComplete, 4, {-1})};
  BestRun best = run(trials);
  begin(best, {});
  EXPECT_EQ(best.trial(), 0);
  EXPECT_THAT(best.candidates({3, 2, 1, 0, 9}), ElementsAre(0, 3));

  BestRun breaking = run({trials[1], trials[2]}, /*chosen=*/0);
  begin(breaking, {});
  EXPECT_THAT(breaking.candidates({1, 0}), ElementsAre(0));
}

}  // namespace
}  // namespace treadle::internal
