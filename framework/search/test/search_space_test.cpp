#include <treadle/search/search_space.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/problem.h>

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SearchSpace parsed(const std::string& text) {
  const auto document = Document::parse(text, "my.json");
  return SearchSpace::parse(Config(document->value(), "", document));
}

/// The problems of a space, a line each.
std::string space_problems(const std::string& text) {
  try {
    parsed(text);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "none";
}

/// A choice of components, dimensions of two of them, and one that hangs on two conditions.
const char* const kConditional = R"({
  "optimizer": {"choice": [{"use": "sgd"}, {"use": "adamw"}, "lion"]},
  "optimizer.momentum": {"uniform": [0, 0.9], "step": 0.1, "when": {"optimizer": [{"use": "sgd"}]}},
  "optimizer.amsgrad": {"choice": [true, false], "when": {"optimizer": [{"use": "adamw"}, "lion"]}},
  "optimizer.delay": {"int": [1, 3], "when": {"optimizer.amsgrad": [true]}},
  "training.batch_size": {"log_int": [8, 512]},
  "learning_rate": {"log_uniform": [1e-4, 1e-1]}
})";

TEST(SearchSpace, ReadsEveryFormOfADimension) {
  const SearchSpace space = parsed(R"({
    "a": {"log_uniform": [1e-4, 1e-1]}, "b": {"uniform": [0, 1], "step": 0.1},
    "c": {"int": [1, 8]}, "d": {"log_int": [1, 1000]}, "e": {"choice": [[16], [32, 32]]},
    "f": {"int": [0, 10], "step": 5}, "g": {"uniform": [-1, 1]}})");

  ASSERT_EQ(space.size(), 7U);
  EXPECT_EQ(space[0], log_uniform("a", 1e-4, 1e-1));
  EXPECT_EQ(space[1], uniform("b", 0, 1, 0.1));
  EXPECT_EQ(space[2], integers("c", 1, 8));
  EXPECT_EQ(space[3], log_integers("d", 1, 1000));
  EXPECT_EQ(space[4], choice("e", {{16}, {32, 32}}));
  EXPECT_EQ(space[5], integers("f", 0, 10, 5));
  EXPECT_EQ(space[6], uniform("g", -1, 1));
  EXPECT_FALSE(space.is_conditional());
}

TEST(SearchSpace, CountsTheValuesOfADimension) {
  EXPECT_EQ(uniform("x", 0, 1, 0.1).count(), 11);
  EXPECT_EQ(integers("x", 1, 8).count(), 8);
  EXPECT_EQ(integers("x", 0, 10, 5).count(), 3);
  EXPECT_EQ(log_integers("x", 8, 512).count(), 505);
  EXPECT_EQ(choice("x", {1, 2, 3}).count(), 3);
  EXPECT_EQ(uniform("x", 0, 1).count(), 0);
}

TEST(SearchSpace, TheLastStepIsTheBoundItself) {
  const Dimension tenths = uniform("x", 0, 0.7, 0.1);

  EXPECT_EQ(tenths.value(7), 0.7);
  EXPECT_NE(7 * 0.1, 0.7);  // what makes the case one
  EXPECT_TRUE(tenths.contains(0.7));
  EXPECT_FALSE(tenths.contains(0.65));
  EXPECT_EQ(tenths.nearest(0.64), tenths.value(6));
  EXPECT_EQ(tenths.nearest(99), 0.7);
}

// Expected: python3 -c 'from decimal import Decimal as D
// print([float(D("LOW") + i * D("STEP")) for i in range(COUNT)])'
TEST(SearchSpace, ValuesOnStepsAreTheDecimalsThatAPersonWouldWrite) {
  const auto values = [](const Dimension& dimension) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < dimension.count(); ++i)
      all.push_back(dimension.value(i));
    return all;
  };

  EXPECT_EQ(values(uniform("x", 0, 0.9, 0.1)),
            (std::vector{0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}));
  EXPECT_EQ(values(uniform("x", -0.35, 0.35, 0.07)),
            (std::vector{-0.35, -0.28, -0.21, -0.14, -0.07, 0.0, 0.07, 0.14, 0.21, 0.28, 0.35}));
  EXPECT_EQ(values(uniform("x", 1e-4, 7e-4, 1e-4)),
            (std::vector{1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4, 7e-4}));
  EXPECT_EQ(values(uniform("x", 1000000.05, 1000000.55, 0.1)),
            (std::vector{1000000.05, 1000000.15, 1000000.25, 1000000.35, 1000000.45, 1000000.55}));
  EXPECT_EQ(values(uniform("x", 0, 60, 20)), (std::vector{0.0, 20.0, 40.0, 60.0}));
  // A step that is no decimal is added as it is.
  EXPECT_EQ(uniform("x", 0, 1, 1.0 / 3).value(1), 1.0 / 3);
  EXPECT_EQ(uniform("x", 0, 3e300, 1e300).value(2), 2e300);
  EXPECT_EQ(uniform("x", 0, 3e-300, 1e-300).value(2), 2e-300);
}

TEST(SearchSpace, EveryWayToAStepHasTheSameBits) {
  const SearchSpace space({uniform("x", 0, 0.5, 0.1)});
  const Dimension& tenths = space[0];

  EXPECT_NE(3 * 0.1, 0.3);  // what makes the case one
  EXPECT_EQ(tenths.nearest(0.29), 0.3);
  EXPECT_EQ(tenths.from_unit(tenths.to_unit(0.3)), 0.3);
  EXPECT_TRUE(tenths.contains(0.3));
  EXPECT_EQ(SearchGrid(space, 2).at(3)[0], 0.3);
  EXPECT_EQ(space.to_json(SearchGrid(space, 2).at(3)).dump(), R"({"x":0.3})");
}

TEST(SearchSpace, ReadsAStepThatAnotherProgramHasAddedUp) {
  const Dimension tenths = uniform("x", 0, 0.5, 0.1);

  EXPECT_EQ(tenths.read(3 * 0.1), 0.3);
  EXPECT_EQ(tenths.read(0.3), 0.3);
  EXPECT_EQ(tenths.read(0.3001), std::nullopt);
  EXPECT_EQ(tenths.read(0.6), std::nullopt);
  EXPECT_EQ(uniform("x", 0, 0.5).read(0.5000000001), std::nullopt);
}

TEST(SearchSpace, EveryProblemIsReportedWithItsLine) {
  const std::string problems = space_problems(R"({
    "a": {"uniform": [1, "x"]},
    "b": {"log_int": [1.5, 3]},
    "c": {"unifrom": [0, 1]},
    "d": {"uniform": [0, 1], "int": [0, 1]},
    "e": {"log_uniform": [1, 2], "step": 0.1},
    "f": 3,
    "g": {"choice": 3}
})");

  EXPECT_THAT(problems, HasSubstr("my.json:2: /a/uniform: expected two numbers, [low, high], got "
                                  "[1,\"x\"]"));
  EXPECT_THAT(problems, HasSubstr("my.json:3: /b/log_int: expected two integers"));
  EXPECT_THAT(problems, HasSubstr("my.json:4: /c/unifrom: unknown key \"unifrom\"; did you mean "
                                  "\"uniform\"?"));
  EXPECT_THAT(problems, HasSubstr("my.json:5: /d/int: a dimension is one of"));
  EXPECT_THAT(problems, HasSubstr("my.json:6: /e/step: has no effect with \"log_uniform\""));
  EXPECT_THAT(problems, HasSubstr("my.json:7: /f: expected an object"));
  EXPECT_THAT(problems, HasSubstr("my.json:8: /g/choice: expected an array"));
}

TEST(SearchSpace, RangesMustMakeSense) {
  const std::string problems = space_problems(R"({
    "a": {"uniform": [1, 1]}, "b": {"log_uniform": [0, 1]}, "c": {"uniform": [0, 1], "step": 0.3},
    "d": {"int": [0, 9007199254740994]}, "e": {"choice": []}, "f": {"choice": [1, 2, 1]},
    ".g": {"int": [0, 1]}})");

  EXPECT_THAT(problems, HasSubstr("/a/uniform: expected [low, high] with low < high"));
  EXPECT_THAT(problems,
              HasSubstr("/b/log_uniform: a logarithmic range begins above 0, got 0; raise "
                        "it, or write \"uniform\""));
  EXPECT_THAT(problems, HasSubstr("/c/step: must divide the range; the last value in it is 0.9"));
  EXPECT_THAT(problems, HasSubstr("/d/int: expected integers between -2^53 and 2^53"));
  EXPECT_THAT(problems, HasSubstr("/e/choice: expected at least one value"));
  EXPECT_THAT(problems, HasSubstr("/f/choice: has 1 twice"));
  EXPECT_THAT(problems, HasSubstr("expected the path of a value"));
}

TEST(SearchSpace, StepsMustBePositive) {
  EXPECT_THAT(space_problems(R"({"a": {"uniform": [0, 1], "step": 0}})"),
              HasSubstr("/a/step: expected a number > 0, got 0"));
  EXPECT_THAT(space_problems(R"({"a": {"int": [0, 4], "step": 0.5}})"),
              HasSubstr("/a/step: expected an integer > 0, got 0.5"));
}

TEST(SearchSpace, WeightsOfAChoiceAreItsParts) {
  const SearchSpace space = parsed(R"({"a": {"choice": ["x", "y", "z"], "weights": [6, 2, 4]}})");

  EXPECT_EQ(space, SearchSpace({choice("a", {"x", "y", "z"}, {0.5, 1. / 6, 1. / 3})}));
  EXPECT_DOUBLE_EQ(space[0].share(2), 1. / 3);
  EXPECT_EQ(choice("a", {"x", "y"}).share(1), 0.5);
  const auto chosen = [&](double position) { return space[0].json(space[0].from_unit(position)); };
  EXPECT_EQ(chosen(0), "x");
  EXPECT_EQ(chosen(0.499), "x");
  EXPECT_EQ(chosen(0.501), "y");
  EXPECT_EQ(chosen(0.666), "y");
  EXPECT_EQ(chosen(0.667), "z");
  EXPECT_EQ(chosen(1), "z");
}

TEST(SearchSpace, RandomPointsHaveChoicesByTheirWeights) {
  const std::vector<double> weights{0.30, 0.25, 0.15, 0.15, 0.08, 0.07};
  const SearchSpace space({choice("a", {0, 1, 2, 3, 4, 5}, weights), uniform("b", 0, 1)});
  RandomBits bits(5);
  std::vector<double> counts(weights.size());
  constexpr int kDraws = 5000;
  for (int i = 0; i < kDraws; ++i)
    ++counts[space.random(bits).choice(0)];

  double chi_square = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double expected = kDraws * weights[i];
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 20.52);  // scipy.stats.chi2.ppf(0.999, 5)
}

// Also of the rarest that is allowed, behind parts whose sums round.
TEST(SearchSpace, EveryWeightedChoiceIsFoundAgain) {
  const SearchSpace space(
      {choice("a", {0, 1, 2, 3, 4, 5, 6}, {0.1, 1.1e-8, 0.7, 3, 1.2e-8, 5, 1.3e-8})});
  for (std::size_t i = 0; i < 7; ++i) {
    const auto value = static_cast<double>(i);
    EXPECT_EQ(space[0].from_unit(space[0].to_unit(value)), value) << i;
  }
}

TEST(SearchSpace, WeightsMustBePositiveAndAsManyAsChoices) {
  const std::string problems = space_problems(R"({
    "a": {"choice": [1, 2], "weights": [1]},
    "b": {"choice": [1, 2], "weights": [1, 0]},
    "c": {"choice": [1, 2], "weights": [-1, 2]},
    "d": {"choice": [1, 2], "weights": [1, 1e-10]},
    "e": {"choice": [1, 2], "weights": [1e308, 1e308]}
  })");

  EXPECT_THAT(problems, HasSubstr("my.json:2: /a/weights: expected a weight for each of the 2 "
                                  "choices, got 1"));
  EXPECT_THAT(problems, HasSubstr("my.json:3: /b/weights: must be > 0, got 0 for 2; leave a choice "
                                  "out that is not to be drawn"));
  EXPECT_THAT(problems, HasSubstr("my.json:4: /c/weights: must be > 0, got -1 for 1"));
  EXPECT_THAT(problems, HasSubstr("my.json:5: /d/weights: 1e-10 for 2 is less than a billionth"));
  EXPECT_THAT(problems, HasSubstr("my.json:6: /e/weights: have too large a sum"));
  const std::string misread = space_problems(R"({
    "a": {"choice": [1, 2], "weights": ["1", 2]},
    "b": {"choice": [1, 2], "weights": {}},
    "c": {"uniform": [1, 2], "weights": [1, 2]}
  })");
  EXPECT_THAT(misread, HasSubstr("my.json:2: /a/weights: expected an array of numbers, one for"));
  EXPECT_THAT(misread, HasSubstr("my.json:3: /b/weights: expected an array of numbers"));
  EXPECT_THAT(misread, HasSubstr("my.json:4: /c/weights: has no effect with \"uniform\""));
}

TEST(SearchSpace, RandomPointsHaveWhatIsGiven) {
  const SearchSpace space = parsed(kConditional);
  std::vector<std::optional<double>> given(space.size());
  given[*space.find("optimizer")] = 1;             // adamw
  given[*space.find("optimizer.momentum")] = 0.5;  // of sgd
  given[*space.find("learning_rate")] = 0.1;       // the bound itself
  RandomBits bits(3);
  RandomBits same(3);
  for (int i = 0; i < 20; ++i) {
    const Point point = space.random(bits, given);
    const Point free = space.random(same);

    EXPECT_TRUE(space.contains(point));
    EXPECT_EQ(point.choice(*space.find("optimizer")), 1U);
    EXPECT_EQ(point[*space.find("learning_rate")], 0.1);
    EXPECT_FALSE(point.is_active(*space.find("optimizer.momentum")));
    const std::size_t batch_size = *space.find("training.batch_size");
    EXPECT_EQ(point[batch_size], free[batch_size]) << "what is not given is drawn as ever";
  }
}

TEST(SearchSpace, ReadsTheValuesThatItWrites) {
  for (const Dimension& dimension : {choice("a", {"x", {{"use", "y"}}}), integers("b", 0, 10, 5),
                                     log_uniform("c", 0.1, 10), uniform("d", 0, 1, 0.25)}) {
    const double value = dimension.kind == Dimension::Kind::kChoice ? 1 : dimension.high;
    EXPECT_EQ(dimension.read(dimension.json(value)), value) << dimension.name;
  }
  EXPECT_EQ(choice("a", {"x"}).read("y"), std::nullopt);
  EXPECT_EQ(integers("b", 0, 10, 5).read(4), std::nullopt);
  EXPECT_EQ(integers("b", 0, 10, 5).read(5.0), std::nullopt);
  EXPECT_EQ(uniform("d", 0, 1).read("0.5"), std::nullopt);
  EXPECT_EQ(uniform("d", 0, 1).read(1.01), std::nullopt);
}

TEST(SearchSpace, ARangeOfIndicesIsADimensionForEach) {
  const SearchSpace space = parsed(R"({
    "cells": {"choice": [[], [1]]}, "cells.{9..11}": {"int": [1, 3], "when": {"cells": [[]]}},
    "blocks.{0..1}.width": {"choice": [8, 16], "weights": [1, 3]}})");

  std::vector<std::string> names;
  for (const Dimension& dimension : space.dimensions())
    names.push_back(dimension.name);
  EXPECT_THAT(names, ElementsAre("blocks.0.width", "blocks.1.width", "cells", "cells.10",
                                 "cells.11", "cells.9"));
  EXPECT_EQ(space[4], when(integers("cells.11", 1, 3), "cells", {0}));
  EXPECT_EQ(space[1], choice("blocks.1.width", {8, 16}, {0.25, 0.75}));
  EXPECT_EQ(SearchSpace::parse(Config(space.to_json())), space);
}

TEST(SearchSpace, ProblemsOfARangeAreToldOnceAndWhereItStands) {
  EXPECT_EQ(space_problems("{\n\"a.{0..3}\": {\"int\": [3, 1]}}"),
            "my.json:2: /a.{0..3}/int: expected [low, high] with low < high, got [3, 1]");
  EXPECT_EQ(space_problems("{\n\"a.{0..3}\": {\"int\": [1, 3], \"when\": {\"b\": [1]}}}"),
            "my.json:2: /a.{0..3}/when: the space has no \"b\"; its choices are: none");
  EXPECT_EQ(space_problems(R"({"a.{3..0}": {"int": [1, 3]}})"),
            "my.json:1: /a.{3..0}: expected {first..last} with first <= last, of at most 1000 "
            "indices");
  EXPECT_THAT(space_problems(R"({"a.{0..3}": {"int": [1, 3]}, "a.2": {"int": [1, 3]}})"),
              HasSubstr("is in the space twice"));
  EXPECT_THAT(space_problems(R"({"a.{0..x}": {"int": [1, 3]}})"),
              HasSubstr("expected the path of a value"));
}

TEST(SearchSpace, AnEmptySpaceIsRefused) {
  EXPECT_THAT(space_problems("{}"), HasSubstr("at least one dimension"));
  EXPECT_THROW(SearchSpace({}), DocumentError);
}

TEST(SearchSpace, ConditionsMustBeAboutChoices) {
  const auto problem = [](const std::string& condition) {
    return space_problems(
        R"({"optimizer": {"choice": ["sgd", "adamw"]}, "x": {"int": [1, 2]}, "y": {"uniform": [0, 1], "when": )" +
        condition + "}}");
  };

  EXPECT_EQ(problem(R"({"optimizer": ["sgd"]})"), "none");
  EXPECT_THAT(problem(R"({"optimiser": ["sgd"]})"),
              HasSubstr("/y/when: the space has no \"optimiser\"; did you mean \"optimizer\"?"));
  EXPECT_THAT(problem(R"({"x": [1]})"), HasSubstr("a condition is about a \"choice\""));
  EXPECT_THAT(problem(R"({"optimizer": ["sdg"]})"),
              HasSubstr("\"sdg\" is none of the choices of \"optimizer\": \"sgd\", \"adamw\""));
  EXPECT_THAT(problem(R"({"optimizer": "sgd"})"), HasSubstr("expected an array"));
  EXPECT_THAT(problem(R"({"optimizer": []})"), HasSubstr("an empty one"));
  EXPECT_THAT(problem(R"({"optimizer": ["sgd"], "x": [1]})"), HasSubstr("one choice"));
  EXPECT_THAT(problem(R"("sgd")"), HasSubstr("expected an object"));
}

TEST(SearchSpace, ConditionsMustNotGoRound) {
  EXPECT_THAT(space_problems(R"({
    "a": {"choice": [1, 2], "when": {"b": [1]}},
    "b": {"choice": [1, 2], "when": {"a": [1]}}})"),
              HasSubstr("my.json:2: /a/when: the condition depends on itself"));
}

TEST(SearchSpace, NamesAreUnique) {
  EXPECT_THROW(SearchSpace({uniform("x", 0, 1), integers("x", 0, 1)}), DocumentError);
}

TEST(SearchSpace, TheOrderOfTheDocumentDoesNotMatter) {
  EXPECT_EQ(SearchSpace({uniform("b", 0, 1), uniform("a", 0, 2)}),
            SearchSpace({uniform("a", 0, 2), uniform("b", 0, 1)}));
}

TEST(SearchSpace, FindsDimensionsByName) {
  const SearchSpace space = parsed(kConditional);

  EXPECT_EQ(space[*space.find("optimizer.momentum")].name, "optimizer.momentum");
  EXPECT_FALSE(space.find("optimizer.moment"));
}

TEST(SearchSpace, APointHasValuesWhereConditionsHold) {
  const SearchSpace space = parsed(kConditional);
  const auto active = [&](std::size_t optimizer, double amsgrad) {
    std::vector<double> positions(space.size(), 0.5);
    positions[*space.find("optimizer")] = (static_cast<double>(optimizer) + 0.5) / 3;
    positions[*space.find("optimizer.amsgrad")] = amsgrad;
    return space.to_json(space.from_unit(positions));
  };

  EXPECT_EQ(active(0, 0), (json{{"learning_rate", active(0, 0)["learning_rate"]},
                                {"optimizer", {{"use", "sgd"}}},
                                {"optimizer.momentum", 0.5},
                                {"training.batch_size", 62}}));
  EXPECT_EQ(active(1, 0), (json{{"learning_rate", active(1, 0)["learning_rate"]},
                                {"optimizer", {{"use", "adamw"}}},
                                {"optimizer.amsgrad", true},
                                {"optimizer.delay", 2},
                                {"training.batch_size", 62}}));
  EXPECT_FALSE(active(2, 1).contains("optimizer.delay"));
}

TEST(SearchSpace, ContainsExactlyPointsWhoseConditionsHold) {
  const SearchSpace space = parsed(kConditional);
  const std::vector<double> middle(space.size(), 0.1);
  const Point sgd = space.from_unit(middle);
  const std::size_t momentum = *space.find("optimizer.momentum");

  EXPECT_TRUE(space.contains(sgd));
  Point without = sgd;
  without.deactivate(momentum);
  EXPECT_FALSE(space.contains(without));
  Point between = sgd;
  between.set(momentum, 0.55);
  EXPECT_FALSE(space.contains(between));
  Point outside = sgd;
  outside.set(momentum, 1);
  EXPECT_FALSE(space.contains(outside));
  Point too_many = sgd;
  too_many.set(*space.find("optimizer.delay"), 1);
  EXPECT_FALSE(space.contains(too_many));
  EXPECT_FALSE(space.contains(Point(2)));
}

TEST(SearchSpace, RandomPointsAreInTheSpace) {
  const SearchSpace space = parsed(kConditional);
  RandomBits bits(3);
  std::set<std::size_t> optimizers;
  for (int i = 0; i < 200; ++i) {
    const Point point = space.random(bits);
    EXPECT_TRUE(space.contains(point));
    optimizers.insert(point.choice(*space.find("optimizer")));
  }
  EXPECT_EQ(optimizers.size(), 3U);
}

TEST(SearchSpace, PositionsInTheUnitCubeSpreadValuesEvenly) {
  const Dimension rate = log_uniform("rate", 1e-4, 1);
  EXPECT_DOUBLE_EQ(rate.from_unit(0.5), 1e-2);
  EXPECT_EQ(rate.from_unit(0), 1e-4);
  EXPECT_EQ(rate.from_unit(1), 1);
  EXPECT_EQ(rate.from_unit(7), 1);

  // Each of four values has a quarter.
  const Dimension four = integers("four", 1, 4);
  EXPECT_EQ(four.from_unit(0.24), 1);
  EXPECT_EQ(four.from_unit(0.26), 2);
  EXPECT_EQ(four.from_unit(1), 4);

  // 1 has the part from log 0.5 to log 1.5 of that from log 0.5 to log 4.5: exactly a half.
  const Dimension log_four = log_integers("four", 1, 4);
  EXPECT_EQ(log_four.from_unit(0.49), 1);
  EXPECT_EQ(log_four.from_unit(0.51), 2);
  EXPECT_EQ(log_four.from_unit(std::numeric_limits<double>::quiet_NaN()), log_four.from_unit(0.5));
}

TEST(SearchSpace, TheUnitCubeAndBackIsTheSamePoint) {
  const SearchSpace space = parsed(kConditional);
  RandomBits bits(7);
  for (int i = 0; i < 100; ++i) {
    const Point point = space.random(bits);
    const Point again = space.from_unit(space.to_unit(point));
    ASSERT_TRUE(space.contains(again));
    for (std::size_t d = 0; d < space.size(); ++d) {
      ASSERT_EQ(again.is_active(d), point.is_active(d));
      if (!point.is_active(d))
        continue;
      if (space[d].count() > 0) {
        EXPECT_EQ(again[d], point[d]) << space[d].name;
      } else {
        EXPECT_NEAR(again[d] / point[d], 1, 1e-12) << space[d].name;
      }
    }
  }
}

TEST(SearchSpace, JsonAndBackIsTheSamePoint) {
  const SearchSpace space = parsed(kConditional);
  RandomBits bits(8);
  for (int i = 0; i < 100; ++i) {
    const Point point = space.random(bits);
    EXPECT_EQ(space.from_json(json::parse(space.to_json(point).dump())), point);
  }
}

TEST(SearchSpace, StoredValuesOfAnotherSpaceAreRefused) {
  const SearchSpace space = parsed(R"({"a": {"choice": ["x", "y"]}, "n": {"int": [1, 3]},
                                       "u": {"uniform": [0, 1], "when": {"a": ["y"]}}})");
  const auto refusal = [&](const json& values) -> std::string {
    try {
      space.from_json(values);
    } catch (const StorageError& error) {
      return error.what();
    }
    return "none";
  };

  EXPECT_EQ(refusal({{"a", "x"}, {"n", 2}}), "none");
  EXPECT_THAT(refusal({{"a", "x"}}), HasSubstr("\"n\" is missing"));
  EXPECT_THAT(refusal({{"a", "x"}, {"n", 4}}), HasSubstr("\"n\" is 4, which is outside"));
  EXPECT_THAT(refusal({{"a", "x"}, {"n", 1.5}}), HasSubstr("\"n\" is 1.5"));
  EXPECT_THAT(refusal({{"a", "z"}, {"n", 1}}), HasSubstr("none of the choices"));
  EXPECT_THAT(refusal({{"a", "x"}, {"n", 1}, {"u", 0.5}}),
              HasSubstr("its condition does not hold"));
  EXPECT_THAT(refusal({{"a", "x"}, {"n", 1}, {"w", 0.5}}), HasSubstr("\"w\" is no dimension"));
  EXPECT_THAT(refusal(json::array()), HasSubstr("expected the values of a trial"));
}

TEST(SearchSpace, IsReadAgainFromItsJson) {
  const SearchSpace space = parsed(kConditional);

  EXPECT_EQ(SearchSpace::parse(Config(space.to_json())), space);
  for (const std::vector<double>& weights :
       {std::vector<double>{1, 2, 4}, {0.1, 0.2, 0.3}, {0.3, 0.3, 0.4}, {2e-8, 3, 7}}) {
    const SearchSpace weighted({choice("a", {1, 2, 3}, weights)});
    EXPECT_EQ(SearchSpace::parse(Config(weighted.to_json())), weighted) << json(weights);
  }
  EXPECT_EQ(
      space.to_json()["optimizer.momentum"],
      json::parse(
          R"({"uniform": [0.0, 0.9], "step": 0.1, "when": {"optimizer": [{"use": "sgd"}]}})"));
}

TEST(SearchGrid, HasEachCombinationOnce) {
  const SearchSpace space = parsed(kConditional);
  const SearchGrid grid(space, 3);

  // Momentum has 10 values; amsgrad 2, with delay 3 below one of them; the two others 3 each.
  ASSERT_EQ(grid.size(), (10 + 2 * (3 + 1)) * 3 * 3);
  std::set<std::string> points;
  for (std::int64_t i = 0; i < grid.size(); ++i) {
    const Point point = grid.at(i);
    EXPECT_TRUE(space.contains(point));
    points.insert(space.to_json(point).dump());
  }
  EXPECT_EQ(points.size(), static_cast<std::size_t>(grid.size()));
}

TEST(SearchGrid, HasEveryChoiceOnceWhateverItsWeight) {
  const SearchSpace space({choice("a", {1, 2, 3}, {100, 1, 1}), choice("b", {1, 2})});
  const SearchGrid grid(space, 2);

  ASSERT_EQ(grid.size(), 6);
  std::set<std::string> points;
  for (std::int64_t i = 0; i < grid.size(); ++i)
    points.insert(space.to_json(grid.at(i)).dump());
  EXPECT_EQ(points.size(), 6U);
}

TEST(SearchGrid, SpreadsRangesOnTheirScale) {
  const SearchSpace space({log_uniform("rate", 1e-4, 1)});
  const SearchGrid grid(space, 5);

  ASSERT_EQ(grid.size(), 5);
  EXPECT_EQ(grid.at(0)[0], 1e-4);
  EXPECT_DOUBLE_EQ(grid.at(1)[0], 1e-3);
  EXPECT_EQ(grid.at(4)[0], 1);
}

TEST(SearchGrid, IntegersAreWhole) {
  const SearchSpace space(
      {integers("few", 1, 3), integers("many", 0, 100), log_integers("log", 1, 1000)});
  const SearchGrid grid(space, 4);

  std::set<double> many;
  std::set<double> log;
  for (std::int64_t i = 0; i < grid.size(); ++i) {
    many.insert(grid.at(i)[2]);
    log.insert(grid.at(i)[1]);
  }
  EXPECT_EQ(grid.size(), 3 * 4 * 4);
  EXPECT_THAT(many, ElementsAre(0, 33, 67, 100));
  EXPECT_THAT(log, ElementsAre(1, 10, 100, 1000));
}

TEST(SearchGrid, TheLastDimensionChangesFastest) {
  const SearchSpace space({integers("a", 0, 1), integers("b", 0, 2)});
  const SearchGrid grid(space, 3);

  EXPECT_EQ(space.to_json(grid.at(1)), (json{{"a", 0}, {"b", 1}}));
  EXPECT_EQ(space.to_json(grid.at(3)), (json{{"a", 1}, {"b", 0}}));
}

TEST(SearchGrid, ALargeGridHasTheLargestSizeThereIs) {
  std::vector<Dimension> dimensions;
  for (int i = 0; i < 40; ++i)
    dimensions.push_back(uniform("x" + std::to_string(i), 0, 1));
  const SearchSpace space(std::move(dimensions));

  const SearchGrid grid(space, 10);

  EXPECT_EQ(grid.size(), std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(space.contains(grid.at(grid.size() - 1)));
}

}  // namespace
}  // namespace treadle
