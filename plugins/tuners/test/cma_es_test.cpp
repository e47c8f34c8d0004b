// Bounds of regrets: the quartiles of 20 seeds of Optuna's CmaEsSampler at 100 trials, one by one.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/testing/search/tuner_contract.h>

#include "functions.h"
#include "made.h"

namespace treadle::tuners {
namespace {

using testing::CaseName;
using testing::run_study;
using testing::TunerCase;
using testing::TunerContract;

TunerCase cma_case(const std::string& name, const nlohmann::json& parameters = {}) {
  return {name, [parameters] { return make("cma_es", parameters); }};
}

INSTANTIATE_TEST_SUITE_P(
    CmaEs, TunerContract,
    ::testing::Values(cma_case("CmaEs"), cma_case("CmaEsOfFour", {{"popsize", 4}}),
                      cma_case("CmaEsWithoutStart", {{"n_startup_trials", 0}})),
    CaseName());

TEST(CmaEs, ReachesOptunasRegrets) {
  const auto median = [](const TestFunction& function, std::int64_t lag) {
    return quantile(regrets(*make("cma_es"), function, 100, 20, lag), 0.5);
  };
  for (const std::int64_t lag : {1, 4}) {
    EXPECT_LE(median(branin(), lag), 0.068) << "lag " << lag;
    EXPECT_LE(median(hartmann6(), lag), 0.363) << "lag " << lag;
    EXPECT_LE(median(sphere(10), lag), 3.04) << "lag " << lag;
    EXPECT_LE(median(rosenbrock(10), lag), 451) << "lag " << lag;
  }
}

// f = x^T A x with a condition of 1e6, whose axes are turned: the shape has to be learned.
TEST(CmaEs, LearnsTheShapeOfAnEllipsoid) {
  const SearchSpace space({uniform("x", -1, 1), uniform("y", -1, 1)});
  double best = 1e9;
  run_study(*make("cma_es"), space, 600, 1, [&](Trial& trial) {
    const double along = trial.point[0] + trial.point[1] - 0.3;
    const double across = trial.point[0] - trial.point[1] + 0.2;
    trial.state = TrialState::kComplete;
    trial.values = {along * along + 1e6 * across * across};
    best = std::min(best, trial.values[0]);
  });

  EXPECT_LT(best, 1e-8);
}

TEST(CmaEs, ATrialIsDrawnFromTheGenerationsThatAreWhole) {
  const SearchSpace space({uniform("x", 0, 1), uniform("y", 0, 1)});
  const auto tuner = make("cma_es", {{"popsize", 6}});
  std::vector<Trial> visible;
  RandomBits bits(1);
  for (std::int64_t number = 0; number < 12; ++number) {
    Trial trial;
    trial.number = number;
    trial.point = space.random(bits);
    trial.state = TrialState::kComplete;
    trial.values = {trial.point[0]};
    visible.push_back(trial);
  }
  // Trial 0 is of no generation; 7 to 11 are not a whole one.
  const auto all = tuner->suggest(space, visible, 12, RandomStreams(3));
  auto other = visible;
  other[9].values[0] = -5;
  EXPECT_EQ(tuner->suggest(space, other, 12, RandomStreams(3)), all);
  other[3].values[0] = -5;
  EXPECT_FALSE(tuner->suggest(space, other, 12, RandomStreams(3)) == all);
}

}  // namespace
}  // namespace treadle::tuners
