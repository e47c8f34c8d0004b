#include <treadle/sdk.h>

#include <algorithm>
#include <cmath>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/search/tuner_contract.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::Tuner> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::Tuner>("@name@", std::move(parameters));
}

TunerCase case_of(std::string name, nlohmann::json parameters = {}) {
  return {std::move(name), [parameters] { return make(parameters); }};
}

// What every tuner keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, TunerContract,
                         ::testing::Values(case_of("Defaults"), case_of("Near", {{"std", 0.01}})),
                         CaseName());

// x^2 + y^2 on [-1, 1]^2, for which 60 random trials have a median of 0.015.
TEST(@Name@, GoesDownhill) {
  const treadle::SearchSpace space({treadle::uniform("x", -1, 1), treadle::uniform("y", -1, 1)});
  double best = 2;
  run_study(*make({{"std", 0.05}}), space, 60, 1, [&](treadle::Trial& trial) {
    trial.state = treadle::TrialState::kComplete;
    trial.values = {trial.point[0] * trial.point[0] + trial.point[1] * trial.point[1]};
    best = std::min(best, trial.values[0]);
  });

  EXPECT_LT(best, 0.01);
}

TEST(@Name@, IsRandomUntilThereAreResults) {
  const treadle::SearchSpace space({treadle::uniform("x", 0, 1)});
  const auto complete = [](treadle::Trial& trial) {
    trial.state = treadle::TrialState::kComplete;
    trial.values = {0};
  };
  const auto trials = run_study(*make({{"n_startup_trials", 3}}), space, 10, 1, complete);

  // Trial 6 is the first that sees three results, of which the first is the best.
  EXPECT_GT(std::abs(trials[5].point[0] - trials[0].point[0]), 1e-6);
  EXPECT_LT(std::abs(trials[6].point[0] - trials[0].point[0]), 0.5);
}

}  // namespace
