#include "report/ped_anova.h"

#include <cmath>
#include <limits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Importances: python3 framework/host/run/test/ped_anova_reference.py

namespace treadle::report {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;

/// A fraction that wanders through [0, 1), the same as in the script.
double share(int trial, int dimension) {
  return (trial * (37 + 10 * dimension) + 17 * dimension) % 101 / 101.0;
}

double whole(double number) {
  return std::floor(number);
}

struct Trials {
  SearchSpace space;
  std::vector<Point> points;
  std::vector<double> values;

  void add(double value, std::initializer_list<std::pair<const char*, double>> active) {
    Point point(space.size());
    for (const auto& [name, number] : active)
      point.set(*space.find(name), number);
    points.push_back(point);
    values.push_back(value);
  }
  Importances importances() const { return ped_anova(space, points, values); }
};

Trials plain_trials() {
  Trials trials{SearchSpace({log_integers("batch", 8, 512), uniform("dropout", 0, 0.5, 0.1),
                             integers("layers", 1, 8), choice("norm", {"batch", "layer", "none"}),
                             choice("only", {1}), log_uniform("rate", 1e-4, 1e-1),
                             integers("size", 0, 98), uniform("width", -2, 6)}),
                {},
                {}};
  for (int i = 0; i < 60; ++i) {
    const double rate = 1e-4 * std::exp(share(i, 4) * std::log(1e3));
    const double layers = 1 + whole(8 * share(i, 2));
    const double norm = whole(3 * share(i, 3));
    const double width = -2 + 8 * share(i, 6);
    const double from_best = std::log10(rate) + 2;
    const double value =
        from_best * from_best + 0.05 * layers + (norm == 1 ? 0.3 : 0) + 0.01 * width;
    trials.add(i == 3   ? std::numeric_limits<double>::quiet_NaN()
               : i == 7 ? std::numeric_limits<double>::infinity()
                        : value,
               {{"batch", std::round(std::exp(std::log(8) + share(i, 0) * std::log(64)))},
                {"dropout", 0.1 * whole(6 * share(i, 1))},
                {"layers", layers},
                {"norm", norm},
                {"only", 0},
                {"rate", rate},
                {"size", whole(99 * share(i, 5))},
                {"width", width}});
  }
  return trials;
}

Trials conditional_trials() {
  Trials trials{
      SearchSpace({when(uniform("momentum", 0, 0.99), "optimizer", {0}),
                   when(choice("nesterov", {false, true}), "optimizer", {0, 1}),
                   choice("optimizer", {"sgd", "adamw", "lion"}), log_uniform("rate", 1e-4, 1e-1)}),
      {},
      {}};
  for (int i = 0; i < 80; ++i) {
    const double optimizer = whole(3 * share(i, 2));
    const double rate = 1e-4 * std::exp(share(i, 3) * std::log(1e3));
    const double momentum = 0.99 * share(i, 0);
    const double nesterov = whole(2 * share(i, 1));
    const double value = 0.4 * std::abs(std::log10(rate) + 2) + 0.2 * optimizer;
    if (optimizer == 0) {
      trials.add(value + 1 - momentum, {{"optimizer", optimizer},
                                        {"rate", rate},
                                        {"momentum", momentum},
                                        {"nesterov", nesterov}});
    } else if (optimizer == 1) {
      trials.add(value + 0.2, {{"optimizer", optimizer}, {"rate", rate}, {"nesterov", nesterov}});
    } else {
      trials.add(value + 0.2, {{"optimizer", optimizer}, {"rate", rate}});
    }
  }
  return trials;
}

TEST(PedAnova, HasTheImportancesOfTheReferenceForEveryKindOfDimension) {
  const Importances result = plain_trials().importances();

  EXPECT_EQ(result.trials, 58U) << "two values are not finite";
  EXPECT_EQ(result.best, 6U);
  EXPECT_THAT(result.shares,
              ElementsAre(DoubleNear(0.031248416008, 1e-9), DoubleNear(0.047200620507, 1e-9),
                          DoubleNear(0.089164236544, 1e-9), DoubleNear(0.042409667942, 1e-9), 0,
                          DoubleNear(0.608764920027, 1e-9), DoubleNear(0.176047078745, 1e-9),
                          DoubleNear(0.005165060227, 1e-9)));
}

TEST(PedAnova, MeasuresAConditionalDimensionWhereItIsActive) {
  const Importances result = conditional_trials().importances();

  EXPECT_EQ(result.best, 8U);
  EXPECT_THAT(result.shares,
              ElementsAre(DoubleNear(0.374368728905, 1e-9), DoubleNear(0.055152055123, 1e-9),
                          DoubleNear(0.037813725980, 1e-9), DoubleNear(0.532665489993, 1e-9)));
}

TEST(PedAnova, LeavesTheEffectOfAChoiceToTheChoice) {
  // The first choice is good, whatever the value of the dimension that comes with it.
  Trials trials{
      SearchSpace({choice("kind", {"good", "bad"}), when(uniform("part", 0, 1), "kind", {0})}),
      {},
      {}};
  for (int i = 0; i < 100; ++i) {
    if (i % 5 == 0)
      trials.add(1, {{"kind", 0}, {"part", share(i, 3)}});
    else
      trials.add(2 + share(i, 1), {{"kind", 1}});
  }

  EXPECT_THAT(trials.importances().shares, ElementsAre(1, 0));
}

TEST(PedAnova, IsZeroForADimensionThatNoneOfTheTrialsHas) {
  Trials trials = conditional_trials();
  for (std::size_t i = 0; i < trials.points.size(); ++i) {
    if (trials.points[i].is_active(0))
      trials.values[i] = std::numeric_limits<double>::quiet_NaN();
  }

  const Importances result = trials.importances();

  EXPECT_EQ(result.shares[0], 0);
  EXPECT_GT(result.shares[3], 0);
}

TEST(PedAnova, DependsOnTheOrderOfTheValuesAlone) {
  Trials trials = plain_trials();
  const Importances result = trials.importances();
  for (double& value : trials.values)
    value = std::exp(3 * value) - 100;

  EXPECT_EQ(trials.importances().shares, result.shares);
}

TEST(PedAnova, IsZeroWhereNothingSetsTheBestApart) {
  Trials trials = plain_trials();
  std::fill(trials.values.begin(), trials.values.end(), 0.25);

  const Importances result = trials.importances();

  EXPECT_EQ(result.best, 60U);
  EXPECT_THAT(result.shares, Each(0));
}

TEST(PedAnova, NeedsThreeTrials) {
  Trials trials = plain_trials();
  for (const std::size_t count : {2U, 1U, 0U}) {
    trials.points.resize(count);
    trials.values.resize(count);
    const Importances result = trials.importances();
    EXPECT_EQ(result.trials, count);
    EXPECT_EQ(result.best, 0U);
    EXPECT_THAT(result.shares, Each(0));
  }
}

}  // namespace
}  // namespace treadle::report
