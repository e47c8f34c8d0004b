// `random`, `grid` and `sobol`, and the contract of all tuners.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/search/tuner_contract.h>

#include "functions.h"
#include "made.h"
#include "sobol.h"

namespace treadle::tuners {
namespace {

using nlohmann::json;
using testing::CaseName;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::run_study;
using testing::TunerCase;
using testing::TunerContract;

TunerCase blind(const std::string& name, const std::string& tuner, const json& parameters = {}) {
  TunerCase one{name, [tuner, parameters] { return make(tuner, parameters); }};
  one.learns = false;
  return one;
}

TunerCase without_chance(TunerCase one) {
  one.is_random = false;
  return one;
}

TunerCase with_end(TunerCase one) {
  one.ends = true;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Blind, TunerContract,
    ::testing::Values(blind("Random", "random"), with_end(blind("Grid", "grid")),
                      with_end(without_chance(blind("GridInOrder", "grid", {{"shuffle", false}}))),
                      blind("Sobol", "sobol"),
                      without_chance(blind("SobolUnscrambled", "sobol", {{"scramble", false}}))),
    CaseName());

void nothing(Trial&) {}

TEST(Random, TrialsAreUniform) {
  const SearchSpace space({uniform("x", 0, 1)});
  const auto trials = run_study(*make("random"), space, 1000, 1, nothing);

  std::vector<int> counts(10);
  for (const Trial& trial : trials)
    ++counts[static_cast<std::size_t>(trial.point[0] * 10)];
  double chi_square = 0;
  for (const int count : counts)
    chi_square += (count - 100) * (count - 100) / 100.0;
  EXPECT_LT(chi_square, 27.88);  // scipy.stats.chi2.ppf(0.999, 9)
}

// The first trials of those that learn are random ones, too.
TEST(Random, DrawsChoicesByTheirWeights) {
  const SearchSpace space({choice("a", {"often", "seldom"}, {3, 1}), uniform("x", 0, 1)});
  for (const char* const tuner : {"random", "tpe", "nsga_ii", "gp", "regularized_evolution"}) {
    int often = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed)
      often += make(tuner)->suggest(space, {}, 0, RandomStreams(seed))->choice(0) == 0 ? 1 : 0;
    EXPECT_NEAR(often, 300, 29) << tuner;  // scipy.stats.binom.ppf(0.9995, 400, 0.75): 328
  }
}

// Between the quartiles of 20 seeds of Optuna's RandomSampler, by ten times as many seeds.
TEST(Random, ReachesItsRegrets) {
  const auto median = [](const TestFunction& function) {
    return quantile(regrets(*make("random"), function, 100, 200), 0.5);
  };
  EXPECT_GT(median(branin()), 0.136);
  EXPECT_LT(median(branin()), 0.737);
  EXPECT_GT(median(hartmann6()), 0.933);
  EXPECT_LT(median(hartmann6()), 1.307);
}

using Points = std::vector<Point>;

TEST(Grid, TriesEachCombinationOnce) {
  const SearchSpace space({choice("a", {1, 2}), uniform("x", 0, 1)});
  const auto trials = run_study(*make("grid", {{"points", 3}}), space, 100, 1, nothing);

  std::set<std::string> tried;
  for (const Trial& trial : trials)
    tried.insert(space.to_json(trial.point).dump());
  EXPECT_EQ(trials.size(), 6U);
  EXPECT_EQ(tried.size(), 6U);
}

/// What a tuner suggests behind trials whose points it did not, until it has no more or so many.
Points behind(const Tuner& tuner, const SearchSpace& space, const Points& given, std::size_t most) {
  Points suggested;
  std::vector<Trial> trials;
  for (const Point& point : given) {
    Trial& trial = trials.emplace_back();
    trial.number = static_cast<std::int64_t>(trials.size()) - 1;
    trial.point = point;
    trial.is_suggested = false;
  }
  while (suggested.size() < most) {
    const auto number = static_cast<std::int64_t>(trials.size());
    const std::optional<Point> point = tuner.suggest(space, trials, number, RandomStreams(7));
    if (!point)
      break;
    suggested.push_back(*point);
    Trial& trial = trials.emplace_back();
    trial.number = number;
    trial.point = *point;
  }
  return suggested;
}

TEST(Grid, TriesAllThatTheDocumentDoesNotName) {
  const SearchSpace space({choice("a", {1, 2, 3, 4}), choice("b", {1, 2})});
  RandomBits bits(3);
  for (int round = 0; round < 50; ++round) {
    Points given;
    std::set<std::string> tried;
    for (std::uint64_t i = bits.below(5); i > 0; --i)
      given.push_back(space.random(bits));
    for (const Point& point : given)
      tried.insert(space.to_json(point).dump());
    const std::size_t named = tried.size();

    const Points rest = behind(*make("grid", {{"shuffle", round % 2 == 0}}), space, given, 100);

    for (const Point& point : rest)
      EXPECT_TRUE(tried.insert(space.to_json(point).dump()).second) << "tried twice";
    EXPECT_EQ(rest.size(), 8 - named);
  }
}

TEST(Sobol, BeginsItsSequenceBehindPointsThatTheDocumentNames) {
  const SearchSpace space({uniform("x", 0, 1), uniform("y", 0, 1)});
  RandomBits bits(3);
  const Points given{space.random(bits), space.random(bits), space.random(bits)};

  EXPECT_EQ(behind(*make("sobol"), space, given, 8), behind(*make("sobol"), space, {}, 8));
}

TEST(Grid, GoesInOrderWithoutShuffling) {
  const SearchSpace space({uniform("x", 0, 1)});
  const auto trials =
      run_study(*make("grid", {{"points", 3}, {"shuffle", false}}), space, 100, 1, nothing);

  ASSERT_EQ(trials.size(), 3U);
  EXPECT_EQ(trials[0].point[0], 0);
  EXPECT_EQ(trials[1].point[0], 0.5);
  EXPECT_EQ(trials[2].point[0], 1);
}

// The first points of the sequence in Gray code order: 0, 1/2, 3/4, 1/4, 3/8; in the second
// dimension, whose direction numbers are 1/2, 3/4, 5/8 …: 0, 1/2, 1/4, 3/4, 3/8 (by hand).
TEST(Sobol, HasTheFirstPointsOfTheSequence) {
  const auto point = [](std::uint64_t number) {
    return Sobol::position(2, number, false, RandomStreams(0));
  };

  EXPECT_THAT(point(0), ElementsAre(0, 0));
  EXPECT_THAT(point(1), ElementsAre(0.5, 0.5));
  EXPECT_THAT(point(2), ElementsAre(0.75, 0.25));
  EXPECT_THAT(point(3), ElementsAre(0.25, 0.75));
  EXPECT_THAT(point(4), ElementsAre(0.375, 0.375));
}

// 2^k points have one in each of 2^k equal parts of a dimension, scrambled or not.
TEST(Sobol, ScrambledPointsAreStillEven) {
  constexpr std::uint64_t kPoints = 64;
  for (const bool scramble : {false, true}) {
    for (const std::uint64_t seed : {1, 2}) {
      std::vector<std::set<int>> parts(5);
      std::set<int> squares;
      for (std::uint64_t number = 0; number < kPoints; ++number) {
        const auto position = Sobol::position(5, number, scramble, RandomStreams(seed));
        for (std::size_t d = 0; d < parts.size(); ++d)
          parts[d].insert(static_cast<int>(position[d] * kPoints));
        squares.insert(static_cast<int>(position[0] * 8) * 8 + static_cast<int>(position[1] * 8));
      }
      for (const std::set<int>& part : parts)
        EXPECT_EQ(part.size(), kPoints);
      EXPECT_EQ(squares.size(), kPoints);
    }
  }
}

TEST(Sobol, RefusesMoreDimensionsThanItHasNumbersFor) {
  EXPECT_NO_THROW(Sobol::position(3667, 5, true, RandomStreams(1)));
  EXPECT_THROW(Sobol::position(3668, 5, true, RandomStreams(1)), UsageError);
}

}  // namespace
}  // namespace treadle::tuners
