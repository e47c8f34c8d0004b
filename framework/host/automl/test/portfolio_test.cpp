#include <treadle/host/automl/portfolio.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>

namespace treadle::automl {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;

/// A portfolio of families with these entries.
Portfolio portfolio_of(const Json& families) {
  const Json written{
      {"tasks", {{"regression", {{"loss", "mse"}, {"objective", "rmse"}, {"metrics", {"rmse"}}}}}},
      {"search", {{"tuner", "tpe"}}},
      {"document", Json::object()},
      {"space", {{"optimizer.learning_rate", {{"log_uniform", {1e-3, 1e-1}}}}}},
      {"families", families}};
  return Portfolio::parse(written.dump(), "p.json");
}

Json space_of(const Portfolio& portfolio) {
  return portfolio.space_of(portfolio.families(), "regression");
}

const Json kWidth{{"int", {1, 8}}};

TEST(Portfolio, DimensionsHaveTheFamiliesTheyBelongTo) {
  const Json space = space_of(portfolio_of(
      {{{"name", "a"}, {"model", "A"}},
       {{"name", "b"}, {"model", {{"use", "B"}}}, {"space", {{"model.width", kWidth}}}},
       {{"name", "c"}, {"model", "C"}, {"space", {{"model.width", kWidth}}}}}));

  EXPECT_EQ(space.at("model"), Json({{"choice", {"A", {{"use", "B"}}, "C"}}}));
  EXPECT_EQ(space.at("model.width"),
            Json({{"int", {1, 8}}, {"when", {{"model", {{{"use", "B"}}, "C"}}}}}));
  EXPECT_FALSE(space.at("optimizer.learning_rate").contains("when"));
}

TEST(Portfolio, OneFamilyIsNoChoice) {
  const Json space = space_of(portfolio_of(
      Json::array({{{"name", "b"}, {"model", "B"}, {"space", {{"model.width", kWidth}}}}})));

  EXPECT_FALSE(space.contains("model"));
  EXPECT_EQ(space.at("model.width"), kWidth);
}

TEST(Portfolio, AFamilyMayNeedTheLossOfTheTaskInOneOfItsOwn) {
  const Json space = space_of(portfolio_of(
      {{{"name", "a"}, {"model", "A"}},
       {{"name", "b"}, {"model", "B"}, {"with", {{"loss", {{"use", "mean"}, {"of", "$loss"}}}}}}}));

  EXPECT_EQ(space.at("loss"),
            Json({{"choice", {{{"use", "mean"}, {"of", "mse"}}}}, {"when", {{"model", {"B"}}}}}));
}

TEST(Portfolio, WhatAFamilyReplacesWholeHasNoDimensionsOfAll) {
  const Portfolio portfolio =
      portfolio_of({{{"name", "t"}, {"model", "T"}, {"with", {{"optimizer", nullptr}}}},
                    {{"name", "a"}, {"model", "A"}}});
  const Json space = space_of(portfolio);

  EXPECT_EQ(space.at("optimizer"), Json({{"choice", {nullptr}}, {"when", {{"model", {"T"}}}}}));
  EXPECT_EQ(space.at("optimizer.learning_rate").at("when"), Json({{"model", {"A"}}}));
  EXPECT_EQ(portfolio.document_of(portfolio.families(), "regression").at("model"), "A");
  const Json alone = portfolio.space_of({portfolio.families()[0]}, "regression");
  EXPECT_EQ(alone, Json::object());
}

TEST(Portfolio, LeavesOutFamiliesOfWhichNoPluginHasAComponent) {
  Portfolio portfolio = Portfolio::built_in();
  const std::size_t all = portfolio.families().size();

  const auto left_out = portfolio.leave_out_unless(
      [](const std::string& component) { return component != "gradient_boosted_trees"; });

  ASSERT_THAT(left_out, SizeIs(1));
  EXPECT_EQ(left_out[0].family, "trees");
  EXPECT_EQ(left_out[0].component, "gradient_boosted_trees");
  EXPECT_THAT(portfolio.families(), SizeIs(all - 1));
}

TEST(Portfolio, FamiliesThatContradictEachOtherAreRefused) {
  const Portfolio portfolio = portfolio_of(
      {{{"name", "a"}, {"model", "A"}, {"space", {{"model.width", kWidth}}}},
       {{"name", "b"}, {"model", "B"}, {"space", {{"model.width", {{"int", {1, 9}}}}}}}});

  try {
    space_of(portfolio);
    FAIL() << "accepted";
  } catch (const DocumentError& error) {
    EXPECT_STREQ(error.what(),
                 "p.json: the family \"b\" has other values for \"model.width\" than another one: "
                 "{\"int\":[1,9]} and {\"int\":[1,8]}");
  }
}

TEST(Portfolio, TheBuiltInOneHasTasksAndFamiliesThatGoTogether) {
  const Portfolio portfolio = Portfolio::built_in();

  for (const char* task : {"classification", "regression"}) {
    const Json space = portfolio.space_of(portfolio.families(), task);
    EXPECT_THAT(space.at("model").at("choice"), SizeIs(portfolio.families().size()));
    for (const Family& family : portfolio.families())
      EXPECT_NO_THROW(portfolio.space_of({family}, task)) << family.name;
  }
}

TEST(Portfolio, FamiliesAreChosenByName) {
  const Portfolio portfolio = Portfolio::built_in();

  EXPECT_EQ(portfolio.families_named({"mlp", "linear", "mlp"}).front().name, "mlp");
  EXPECT_THAT(portfolio.families_named({"mlp", "linear", "mlp"}), SizeIs(2));
  EXPECT_THAT(portfolio.families_named({}), SizeIs(portfolio.families().size()));
  try {
    portfolio.families_named({"liner"});
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no family is called \"liner\""));
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"linear\"?"));
  }
}

TEST(Portfolio, ASearchBeginsWithTheStartOfEachFamily) {
  const Portfolio portfolio = Portfolio::built_in();
  const Json starts = Portfolio::starts_of(portfolio.families());
  ASSERT_GE(starts.size(), 5);
  const Json space = portfolio.space_of(portfolio.families(), "regression");
  for (const Json& start : starts) {
    for (const auto& [path, value] : start.items())
      EXPECT_TRUE(path == "description" || space.contains(path)) << path;
  }
  EXPECT_EQ(starts[0].at("description"), "linear");
  EXPECT_EQ(starts[0].at("model"), Json::parse(R"({"use": "linear"})"));
  // A search over one family has no choice of the model.
  EXPECT_FALSE(Portfolio::starts_of({portfolio.families()[1]})[0].contains("model"));
}

}  // namespace
}  // namespace treadle::automl
