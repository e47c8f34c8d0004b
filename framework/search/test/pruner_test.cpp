#include <treadle/search/pruner.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

/// Answers what it was given: the checks of the interface are what is tested.
class ScriptedPruner : public Pruner {
 public:
  std::optional<std::int64_t> step;
  NextJob job;

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t, std::int64_t) const override {
    return step;
  }
  PrunerVerdict do_judge(const Trial&, const StudyView&) const override {
    return PrunerVerdict::kPrune;
  }
  NextJob do_next_job(const StudyView&) const override { return job; }
};

class OnlyJudges : public Pruner {
  std::optional<std::int64_t> do_next_step(std::int64_t, std::int64_t after) const override {
    return after + 1;
  }
  PrunerVerdict do_judge(const Trial&, const StudyView&) const override {
    return PrunerVerdict::kContinue;
  }
};

std::string complaint_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const PluginError& error) {
    return error.what();
  }
  return "";
}

std::vector<Trial> paused_and_running() {
  std::vector<Trial> trials(2);
  trials[0].state = TrialState::kPaused;
  trials[1].number = 1;
  return trials;
}

TEST(Pruner, RefusesStepsThatAreNotAhead) {
  ScriptedPruner pruner;
  pruner.step = 5;

  EXPECT_EQ(pruner.next_step(0, 4), 5);
  EXPECT_EQ(complaint_of([&] { pruner.next_step(0, 5); }),
            "a component failed in next_step(): it returned step 5, which is not behind step 5");
  EXPECT_THROW(pruner.next_step(0, -1), ContractViolation);
  EXPECT_THROW(pruner.next_step(-1, 0), ContractViolation);
  pruner.step.reset();
  EXPECT_EQ(pruner.next_step(0, 5), std::nullopt);
}

TEST(Pruner, ResumesPausedTrialsAlone) {
  const std::vector<Trial> trials = paused_and_running();
  const StudyView study{trials, 3};
  ScriptedPruner pruner;
  const auto resuming = [&](std::int64_t trial) {
    pruner.job = {NextJob::Kind::kResume, trial};
    return complaint_of([&] { pruner.next_job(study); });
  };

  EXPECT_EQ(resuming(0), "");
  EXPECT_EQ(resuming(1),
            "a component failed in next_job(): it returned trial 1, which is not paused");
  EXPECT_EQ(resuming(2),
            "a component failed in next_job(): it returned trial 2, which is no trial of "
            "the study");
}

TEST(Pruner, StartsTrialsUnlessItDecidesOtherwise) {
  const std::vector<Trial> trials = paused_and_running();

  EXPECT_EQ(OnlyJudges().next_job({trials, 3}).kind, NextJob::Kind::kStart);
}

TEST(Pruner, IsAskedAboutStudiesThatMayBe) {
  const ScriptedPruner pruner;
  std::vector<Trial> trials = paused_and_running();

  EXPECT_THROW(pruner.judge(trials[0], {trials, 2}), ContractViolation);  // it has no value
  trials[0].intermediate = {{1, 0.5}};
  EXPECT_EQ(pruner.judge(trials[0], {trials, 2}), PrunerVerdict::kPrune);
  EXPECT_THROW(pruner.judge(trials[0], {trials, 1}), ContractViolation);
  EXPECT_THROW(pruner.next_job({trials, 1}), ContractViolation);
  std::swap(trials[0], trials[1]);
  EXPECT_THROW(pruner.next_job({trials, 2}), ContractViolation);
}

}  // namespace
}  // namespace treadle
