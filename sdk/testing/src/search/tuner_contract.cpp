#include <treadle/testing/search/tuner_contract.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/random.h>
#include <treadle/search/search_space.h>
#include <treadle/search/tuner.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>

#include "claim.h"

namespace treadle::testing {

std::vector<Trial> run_study(const Tuner& tuner, const SearchSpace& space, std::int64_t trials,
                             std::uint64_t seed, const std::function<void(Trial&)>& evaluate,
                             std::int64_t lag) {
  const RandomStreams random(seed);
  std::vector<Trial> finished;
  std::vector<Trial> visible;
  for (std::int64_t number = 0; number < trials; ++number) {
    if (number >= lag)
      visible[static_cast<std::size_t>(number - lag)] =
          finished[static_cast<std::size_t>(number - lag)];
    std::optional<Point> point = tuner.suggest(space, visible, number, random);
    if (!point)
      break;
    Trial trial;
    trial.number = number;
    trial.point = std::move(*point);
    visible.push_back(trial);
    evaluate(trial);
    finished.push_back(std::move(trial));
  }
  return finished;
}

SearchSpace mixed_space() {
  return SearchSpace({choice("kind", {"a", "b", {{"use", "c"}}}), uniform("x", -5, 10),
                      log_uniform("rate", 1e-4, 1), uniform("tenth", 0, 0.7, 0.1),
                      integers("layers", 1, 6), integers("even", 2, 10, 2),
                      log_integers("width", 4, 512), when(uniform("of_a", 0, 1), "kind", {0}),
                      when(choice("of_bc", {true, false}), "kind", {1, 2}),
                      when(log_uniform("deep", 1, 100), "of_bc", {0})});
}

double distance(const SearchSpace& space, const Point& point) {
  double sum = 0;
  for (const double position : space.to_unit(point))
    sum += (position - 0.3) * (position - 0.3);
  return sum;
}

namespace {

/// What the claims share.
class TunerClaims : public ::testing::WithParamInterface<TunerCase> {
 protected:
  using Evaluate = std::function<void(Trial&)>;
  static constexpr std::uint64_t kSeed = 5;

  static void complete(Trial& trial, std::vector<double> values) {
    trial.state = TrialState::kComplete;
    trial.values = std::move(values);
  }

  Evaluate by_distance(double factor = 1) const {
    return
        [this, factor](Trial& trial) { complete(trial, {factor * distance(space_, trial.point)}); };
  }

  /// A study of points that are the same whatever the tuner: what only the results make different.
  std::vector<Trial> given(const SearchSpace& space, const Evaluate& evaluate,
                           std::int64_t trials = GetParam().trials) const {
    std::vector<Trial> given;
    RandomBits bits(17);
    for (std::int64_t number = 0; number < trials; ++number) {
      Trial trial;
      trial.number = number;
      trial.point = space.random(bits);
      if (number + kLag <= trials)
        evaluate(trial);
      given.push_back(std::move(trial));
    }
    return given;
  }

  static std::optional<Point> asked(const Tuner& tuner, const SearchSpace& space,
                                    const std::vector<Trial>& visible, std::uint64_t seed = kSeed) {
    return tuner.suggest(space, visible, visible.empty() ? 0 : visible.back().number + 1,
                         RandomStreams(seed));
  }

  /// Whether it suggests a point, in the space, that does not depend on what it was asked before.
  void expect_point(const SearchSpace& space, const std::vector<Trial>& visible,
                    const std::string& what) const {
    const auto fresh = GetParam().make();
    std::optional<Point> point;
    try {
      point = asked(*fresh, space, visible);
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
      return;
    }
    if (!point) {
      EXPECT_TRUE(GetParam().ends) << what << ": no point";
      return;
    }
    EXPECT_TRUE(space.contains(*point)) << what;
  }

  const SearchSpace space_ = mixed_space();
  const std::unique_ptr<Tuner> tuner_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Tuner)

CLAIM(Tuner, SuggestsPointsOfTheSpace) {
  const auto trials = run_study(*tuner_, space_, GetParam().trials, kSeed, by_distance());

  EXPECT_FALSE(trials.empty());
  for (const Trial& trial : trials)
    EXPECT_TRUE(space_.contains(trial.point)) << "trial " << trial.number;
}

CLAIM(Tuner, ASuggestionIsAFunctionOfItsArguments) {
  const auto visible = given(space_, by_distance());
  const auto first = asked(*tuner_, space_, visible);

  EXPECT_EQ(asked(*tuner_, space_, visible), first) << "asked again";
  EXPECT_EQ(asked(*GetParam().make(), space_, visible), first) << "by a fresh object";
}

// Suggestions do not depend on what a tuner keeps between calls: on calls with more, fewer and
// other trials, and with another space.
CLAIM(Tuner, WhatItWasAskedBeforeDoesNotMatter) {
  const auto visible = given(space_, by_distance());
  const auto fewer = std::vector<Trial>(visible.begin(), visible.end() - 7);
  auto gaps = visible;
  gaps.erase(gaps.begin() + 3);
  auto other = given(space_, by_distance(-2));
  std::swap(other[0].point, other[1].point);
  const SearchSpace line({uniform("x", 0, 1)});
  const auto on_a_line = given(line, [](Trial& trial) { complete(trial, {trial.point[0]}); });

  const auto fresh = [](const SearchSpace& space, const std::vector<Trial>& trials) {
    return asked(*GetParam().make(), space, trials);
  };
  const auto expected = fresh(space_, visible);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(asked(*tuner_, space_, fewer), fresh(space_, fewer)) << "fewer trials";
    EXPECT_EQ(asked(*tuner_, space_, visible), expected) << "after fewer trials";
    EXPECT_EQ(asked(*tuner_, space_, gaps), fresh(space_, gaps)) << "a trial that is missing";
    EXPECT_EQ(asked(*tuner_, space_, visible), expected) << "after a trial that was missing";
    EXPECT_EQ(asked(*tuner_, space_, other), fresh(space_, other)) << "other trials";
    EXPECT_EQ(asked(*tuner_, line, on_a_line), fresh(line, on_a_line)) << "another space";
    EXPECT_EQ(asked(*tuner_, space_, visible), expected) << "after another space";
  }
}

CLAIM(Tuner, AResumedStudyGoesOnWithTheSameBits) {
  const auto whole = run_study(*tuner_, space_, GetParam().trials, kSeed, by_distance());
  const RandomStreams random(kSeed);

  for (std::size_t at = 0; at < whole.size(); at += 5) {
    auto visible =
        std::vector<Trial>(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::size_t running = at - std::min<std::size_t>(at, kLag - 1); running < at; ++running) {
      visible[running].state = TrialState::kRunning;
      visible[running].values.clear();
    }
    EXPECT_EQ(GetParam().make()->suggest(space_, visible, whole[at].number, random),
              whole[at].point)
        << "trial " << at;
  }
}

CLAIM(Tuner, SeveralThreadsMayAskAtOnce) {
  const auto visible = given(space_, by_distance());
  const auto fewer = std::vector<Trial>(visible.begin(), visible.end() - 5);
  const auto expected = asked(*GetParam().make(), space_, visible);
  const auto expected_of_fewer = asked(*GetParam().make(), space_, fewer);
  constexpr std::size_t kThreads = 4;
  std::vector<std::optional<Point>> got(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    for (int repeat = 0; repeat < 3; ++repeat)
      got[thread] = asked(*tuner_, space_, thread % 2 == 0 ? visible : fewer);
  });

  EXPECT_EQ(errors, kNoErrors);
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    EXPECT_EQ(got[thread], thread % 2 == 0 ? expected : expected_of_fewer);
}

CLAIM(Tuner, TheSeedDecidesWhatIsRandom) {
  const auto of = [&](std::uint64_t seed) {
    std::vector<Point> points;
    for (Trial& trial : run_study(*tuner_, space_, GetParam().trials, seed, by_distance()))
      points.push_back(std::move(trial.point));
    return points;
  };

  EXPECT_EQ(of(1) != of(2), GetParam().is_random);
}

CLAIM(Tuner, ResultsDecideIfItLearns) {
  const auto near = given(space_, by_distance());
  const auto far = given(space_, by_distance(-1));

  EXPECT_EQ(asked(*tuner_, space_, near) != asked(*tuner_, space_, far), GetParam().learns);
}

CLAIM(Tuner, EndsOnlyIfItSaysSo) {
  const SearchSpace small({choice("a", {1, 2}), choice("b", {1, 2, 3})});
  const auto trials = run_study(*tuner_, small, 60, kSeed, [&](Trial& trial) {
    complete(trial, {distance(small, trial.point)});
  });

  EXPECT_EQ(trials.size() < 60, GetParam().ends);
}

CLAIM(Tuner, WorksWithoutResults) {
  expect_point(space_, {}, "no trials");
  expect_point(space_, given(space_, [](Trial&) {}), "all running");
  expect_point(space_, given(space_, [](Trial& trial) { trial.state = TrialState::kFailed; }),
               "all failed");
  expect_point(space_, given(space_, [](Trial& trial) { trial.state = TrialState::kPruned; }),
               "all pruned, without a value");
}

CLAIM(Tuner, WorksForOneDimension) {
  for (const Dimension& dimension :
       {uniform("x", -1, 1), uniform("x", 0, 1, 0.5), log_uniform("x", 1e-300, 1e300),
        integers("x", 0, 1), log_integers("x", 1, 1000000), choice("x", {1}),
        choice("x", {"a", "b", "c"})}) {
    const SearchSpace space({dimension});
    const std::string what = space.to_json().dump();
    try {
      const auto trials =
          run_study(*GetParam().make(), space, GetParam().trials, kSeed,
                    [&](Trial& trial) { complete(trial, {distance(space, trial.point)}); });
      EXPECT_FALSE(trials.empty()) << what;
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  }
}

CLAIM(Tuner, WorksWithAnyObjectiveValue) {
  const double infinite = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double largest = std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> all = {
      {nan},       {infinite},       {-infinite},         {largest, -largest}, {0},
      {nan, 1, 2}, {infinite, 1, 2}, {-infinite, nan, 1}, {1e-300, 2e-300}};
  for (const auto& values : all) {
    std::string what;
    for (const double value : values)
      what += std::to_string(value) + " ";
    expect_point(space_,
                 given(space_,
                       [&](Trial& trial) {
                         complete(trial,
                                  {values[static_cast<std::size_t>(trial.number) % values.size()]});
                       }),
                 "values " + what);
  }
}

CLAIM(Tuner, WorksWithPrunedTrials) {
  expect_point(space_,
               given(space_,
                     [&](Trial& trial) {
                       if (trial.number % 3 == 0)
                         return complete(trial, {distance(space_, trial.point)});
                       trial.state = TrialState::kPruned;
                       const double value = trial.number % 3 == 1
                                                ? distance(space_, trial.point)
                                                : std::numeric_limits<double>::quiet_NaN();
                       trial.intermediate = {{1, value}, {trial.number % 4 + 2, value}};
                     }),
               "pruned trials");
}

// Trials that have come a part of the way: paused, or running again after a pause.
CLAIM(Tuner, WorksWithPausedTrials) {
  for (const bool any_complete : {true, false}) {
    expect_point(space_,
                 given(space_,
                       [&](Trial& trial) {
                         if (any_complete && trial.number % 4 == 0)
                           return complete(trial, {distance(space_, trial.point)});
                         trial.state =
                             trial.number % 4 == 1 ? TrialState::kRunning : TrialState::kPaused;
                         const double value = trial.number % 4 == 2
                                                  ? std::numeric_limits<double>::quiet_NaN()
                                                  : distance(space_, trial.point);
                         trial.intermediate = {{1, value}, {trial.number % 5 + 2, value}};
                       }),
                 any_complete ? "paused trials" : "paused trials alone");
  }
}

CLAIM(Tuner, WorksWithConstraints) {
  expect_point(
      space_,
      given(space_,
            [&](Trial& trial) {
              complete(trial, {distance(space_, trial.point)});
              trial.constraints = {trial.point[0] - 1, static_cast<double>(trial.number) - 20};
            }),
      "constraints");
  expect_point(space_,
               given(space_,
                     [&](Trial& trial) {
                       complete(trial, {distance(space_, trial.point)});
                       trial.constraints = {std::numeric_limits<double>::infinity(),
                                            std::numeric_limits<double>::quiet_NaN()};
                     }),
               "constraints that nothing satisfies");
}

CLAIM(Tuner, WorksWithTrialsThatAreAllOne) {
  const auto same = given(space_, by_distance());
  auto trials = same;
  for (Trial& trial : trials)
    trial.point = same.front().point;
  expect_point(space_, trials, "equal points");
}

CLAIM(Tuner, WorksWithSeveralObjectivesIfItSaysSo) {
  if (!tuner_->takes_several_objectives())
    GTEST_SKIP() << "it takes one objective";
  const double infinite = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::size_t objectives : {2, 3, 5}) {
    const auto trials = run_study(*tuner_, space_, GetParam().trials, kSeed, [&](Trial& trial) {
      std::vector<double> values(objectives, distance(space_, trial.point));
      for (std::size_t i = 1; i < objectives; ++i)
        values[i] = static_cast<double>(i) - values[i] * values[0];
      complete(trial, std::move(values));
    });
    EXPECT_FALSE(trials.empty()) << objectives << " objectives";
    for (const double strange : {nan, infinite, -infinite}) {
      expect_point(space_,
                   given(space_,
                         [&](Trial& trial) {
                           std::vector<double> values(objectives, 1);
                           values[static_cast<std::size_t>(trial.number) % objectives] = strange;
                           complete(trial, std::move(values));
                         }),
                   std::to_string(objectives) + " objectives, " + std::to_string(strange));
    }
  }
}

}  // namespace treadle::testing
