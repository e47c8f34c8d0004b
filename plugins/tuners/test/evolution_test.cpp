// `nsga_ii` and `regularized_evolution`.
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/search/tuner_contract.h>

#include "functions.h"
#include "made.h"
#include "trial_order.h"

namespace treadle::tuners {
namespace {

using testing::CaseName;
using testing::run_study;
using testing::TunerCase;
using testing::TunerContract;

TunerCase evolution_case(const std::string& name, const std::string& tuner,
                         const nlohmann::json& parameters) {
  return {name, [tuner, parameters] { return make(tuner, parameters); }};
}

INSTANTIATE_TEST_SUITE_P(
    Evolution, TunerContract,
    ::testing::Values(
        evolution_case("NsgaII", "nsga_ii", {{"population_size", 10}}),
        evolution_case("NsgaIIMutating", "nsga_ii",
                       {{"population_size", 4}, {"crossover_prob", 0}, {"mutation_prob", 1}}),
        evolution_case("RegularizedEvolution", "regularized_evolution", {}),
        evolution_case("RegularizedEvolutionOfFew", "regularized_evolution",
                       {{"population_size", 5}, {"sample_size", 2}})),
    CaseName());

// ZDT1 in ten dimensions, reference (1.1, 1.1): the whole front has 1.21 - 1/3 = 0.8767.
TEST(NsgaII, ReachesTheFrontOfZdt1) {
  std::vector<Dimension> dimensions;
  for (int d = 0; d < 10; ++d)
    dimensions.push_back(uniform("x" + std::to_string(d), 0, 1));
  const SearchSpace space(std::move(dimensions));
  std::vector<Objectives> values;
  run_study(*make("nsga_ii"), space, 3000, 0, [&](Trial& trial) {
    double g = 1;
    for (std::size_t d = 1; d < 10; ++d)
      g += trial.point[d];
    trial.state = TrialState::kComplete;
    trial.values = {trial.point[0], g * (1 - std::sqrt(trial.point[0] / g))};
    values.push_back(trial.values);
  });
  EXPECT_GE(hypervolume(values, {1.1, 1.1}), 0.85);
}

// x in [0, 1], both x and 1 - x to be small, x >= 0.6: the feasible part of the front is kept.
/// Of 4^4 points, those that no other is better than in both objectives.
TEST(NsgaII, FindsTheWholeFrontOfAFewChoices) {
  std::vector<Dimension> dimensions;
  for (int d = 0; d < 4; ++d)
    dimensions.push_back(choice("x" + std::to_string(d), {0, 1, 2, 3}));
  const SearchSpace space(std::move(dimensions));
  // A choice costs what it is, and errs by the rest; one of each dimension is no good.
  const auto objectives_of = [](const Point& point) {
    Objectives values{0, 0};
    for (std::size_t d = 0; d < 4; ++d) {
      const auto x = static_cast<double>(point.choice(d));
      values[0] += (1 + static_cast<double>(d)) * x;
      values[1] += (3 - x) * (3 - x) + (point.choice(d) == d ? 5 : 0);
    }
    return values;
  };
  const auto front_of = [](const std::vector<Objectives>& all) {
    std::set<Objectives> front;
    const std::vector<std::size_t> ranks = domination_ranks(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (ranks[i] == 0)
        front.insert(all[i]);
    }
    return front;
  };
  std::vector<Objectives> every;
  const SearchGrid grid(space, 2);
  for (std::int64_t i = 0; i < grid.size(); ++i)
    every.push_back(objectives_of(grid.at(i)));
  ASSERT_EQ(every.size(), 256U);

  std::vector<Objectives> tried;
  run_study(*make("nsga_ii", {{"population_size", 40}}), space, 2000, 0, [&](Trial& trial) {
    trial.state = TrialState::kComplete;
    trial.values = objectives_of(trial.point);
    tried.push_back(trial.values);
  });
  EXPECT_EQ(front_of(tried), front_of(every));
}

TEST(NsgaII, KeepsToConstraints) {
  const SearchSpace space({uniform("x", 0, 1)});
  const auto trials =
      run_study(*make("nsga_ii", {{"population_size", 20}}), space, 400, 2, [](Trial& trial) {
        trial.state = TrialState::kComplete;
        trial.values = {trial.point[0], 1 - trial.point[0]};
        trial.constraints = {0.6 - trial.point[0]};
      });

  int feasible = 0;
  for (std::size_t i = 200; i < 400; ++i)
    feasible += trials[i].point[0] >= 0.6 ? 1 : 0;
  EXPECT_GT(feasible, 150);
}

// 3^10 architectures; the value counts what differs from the best.
TEST(RegularizedEvolution, FindsTheBestOfManyChoices) {
  std::vector<Dimension> dimensions;
  for (int d = 0; d < 10; ++d)
    dimensions.push_back(choice("op" + std::to_string(d), {"conv", "pool", "skip"}));
  const SearchSpace space(std::move(dimensions));
  std::vector<double> best;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    best.push_back(10);
    run_study(*make("regularized_evolution"), space, 300, seed, [&](Trial& trial) {
      double differences = 0;
      for (std::size_t d = 0; d < 10; ++d)
        differences += trial.point.choice(d) == d % 3 ? 0 : 1;
      trial.state = TrialState::kComplete;
      trial.values = {differences};
      best.back() = std::min(best.back(), differences);
    });
  }
  EXPECT_EQ(quantile(best, 0.5), 0);
}

TEST(RegularizedEvolution, OldTrialsDie) {
  const SearchSpace space({uniform("x", 0, 1), uniform("y", 0, 1)});
  const auto tuner = make("regularized_evolution", {{"population_size", 5}, {"sample_size", 5}});
  std::vector<Trial> visible;
  for (std::int64_t number = 0; number < 10; ++number) {
    Trial trial;
    trial.number = number;
    trial.state = TrialState::kComplete;
    const double at = 0.05 + 0.1 * static_cast<double>(number);
    trial.point = space.from_unit(std::vector<double>{at, at});
    trial.values = {static_cast<double>(number)};
    visible.push_back(trial);
  }

  // The parent is trial 5, the best of the last five; one of its two values is changed.
  const Point point = *tuner->suggest(space, visible, 10, RandomStreams(1));
  EXPECT_NE(point[0] == visible[5].point[0], point[1] == visible[5].point[1]);
}

TEST(RegularizedEvolution, SamplesFromThePopulation) {
  EXPECT_THROW(make("regularized_evolution", {{"population_size", 4}, {"sample_size", 5}}),
               DocumentError);
}

}  // namespace
}  // namespace treadle::tuners
