#include <treadle/sdk.h>

#include <cmath>
#include <vector>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/search/pruner_contract.h>
#include <treadle/testing/search/study_of_jobs.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::Pruner> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::Pruner>("@name@", std::move(parameters));
}

PrunerCase case_of(std::string name, nlohmann::json parameters = {}) {
  return {std::move(name), [parameters] { return make(parameters); }};
}

// What every pruner keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, PrunerContract,
                         ::testing::Values(case_of("Defaults"), case_of("Seldom", {{"every", 5}})),
                         CaseName());

/// The verdict about a trial whose values these are, after two complete trials of three epochs.
bool prunes(const treadle::Pruner& pruner, const std::vector<double>& values) {
  std::vector<treadle::Trial> trials(2);
  trials[1].number = 1;
  for (treadle::Trial& trial : trials) {
    trial.state = treadle::TrialState::kComplete;
    trial.intermediate = {{1, 0.9}, {2, 0.7}, {3, 0.5}};
  }
  trials[1].intermediate[1].value = 0.8;
  treadle::Trial judged;
  judged.number = 2;
  for (const double value : values)
    judged.intermediate.push_back({static_cast<std::int64_t>(judged.intermediate.size()) + 1, value});
  return pruner.judge(judged, {trials, 10}) == treadle::PrunerVerdict::kPrune;
}

TEST(@Name@, PrunesWhatIsWorseThanAllCompleteTrials) {
  const auto pruner = make({{"n_startup_trials", 2}});

  EXPECT_FALSE(prunes(*pruner, {1, 0.8}));
  EXPECT_TRUE(prunes(*pruner, {1, 0.81}));
  EXPECT_TRUE(prunes(*pruner, {1, std::nan("")}));
  EXPECT_FALSE(prunes(*make({{"n_startup_trials", 2}, {"tolerance", 0.1}}), {1, 0.89}));
}

TEST(@Name@, WaitsForCompleteTrials) {
  EXPECT_FALSE(prunes(*make({{"n_startup_trials", 3}}), {2}));
}

// Trial 1 begins without a result, trial 2 when trial 0 is complete: it is worse, and so are others.
TEST(@Name@, PrunesByWhatAJobSees) {
  StudyOfJobs study;
  study.trials = 6;
  study.lag = 2;
  study.value = [](std::int64_t trial, std::int64_t) { return static_cast<double>(trial); };
  const FinishedStudy done = run_study(*make({{"n_startup_trials", 1}}), study);

  EXPECT_EQ(done.count(treadle::TrialState::kComplete), 2);
  EXPECT_EQ(done.jobs[2], (JobDone{2, 0, 1, treadle::TrialState::kPruned}));
}

TEST(@Name@, JudgesEverySoManyEpochs) {
  const auto pruner = make({{"every", 5}});

  EXPECT_EQ(pruner->next_step(0, 0), 5);
  EXPECT_EQ(pruner->next_step(0, 5), 10);
}

}  // namespace
