#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report_reading.h"

namespace treadle {
namespace {

using Json = nlohmann::json;
using reading::card;
using reading::document_of;
using reading::find_block;
using reading::notes;
using reading::row;
using reading::text;
using reading::WrittenInput;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

EpochSummary epoch(std::int64_t number, double loss) {
  EpochSummary summary;
  summary.epoch = number;
  summary.epochs = 3;
  summary.train_loss = loss;
  summary.val_loss = loss;
  summary.metrics = {{"accuracy", 1 - loss, Direction::kHigherIsBetter}};
  return summary;
}

Json trial(int number, double rate, double value) {
  return {{"number", number},
          {"state", "complete"},
          {"params", {{"optimizer", {{"use", "adamw"}}}, {"optimizer.learning_rate", rate}}},
          {"values", {value}},
          {"epochs", 3}};
}

/// Four trials of one objective: two complete ones, one that was pruned, one that failed.
WrittenInput search_run() {
  WrittenInput input;
  input.name = "moons";
  input.result = Json::parse(R"({
    "final_loss": 0.5, "total_epochs": 3,
    "validation": {"loss": 0.5, "metrics": {"accuracy": 0.75}, "sample_count": 24},
    "search": {
      "tuner": "tpe", "pruner": "asha",
      "objectives": [{"name": "val_loss", "direction": "minimize"}],
      "best_trial": 1,
      "ended": {"reason": "trials", "text": "all 4 trials were made"},
      "space": {
        "optimizer": {"choice": [{"use": "sgd"}, {"use": "adamw"}]},
        "optimizer.learning_rate": {"log_uniform": [1e-4, 1e-1]},
        "optimizer.momentum": {"uniform": [0, 0.9], "when": {"optimizer": [{"use": "sgd"}]}}}}})");
  Json sgd = trial(0, 0.001, 0.5);
  sgd["params"]["optimizer"] = {{"use", "sgd"}};
  sgd["params"]["optimizer.momentum"] = 0.45;
  Json pruned = trial(2, 0.01, 0);
  pruned["state"] = "pruned";
  pruned["intermediate"] = {{{"step", 1}, {"value", 0.875}}};
  pruned.erase("values");
  Json failed = trial(3, 0.1, 0);
  failed["state"] = "failed";
  failed["error"] = "the loss of step 3 is <nan>";
  failed.erase("values");
  input.result["search"]["trials"] = {sgd, trial(1, 0.02, 0.25), pruned, failed};
  input.curves = {{"trials/0", {epoch(1, 0.75), epoch(2, 0.5)}},
                  {"trials/1", {epoch(1, 0.5), epoch(2, 0.25)}},
                  {"trials/2", {epoch(1, 0.875)}},
                  {"final", {epoch(1, 0.625), epoch(2, 0.5)}}};
  return input;
}

Json& search_of(WrittenInput& input) {
  return input.result["search"];
}

/// A search of `count` complete trials over one range, the later the better.
WrittenInput long_search(std::size_t count) {
  WrittenInput input = search_run();
  search_of(input)["space"] = {{"model.dropout", {{"uniform", {0, 1}}}}};
  search_of(input)["trials"] = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count);
    search_of(input)["trials"].push_back({{"number", i},
                                          {"state", "complete"},
                                          {"params", {{"model.dropout", share}}},
                                          {"values", {1 - share}}});
  }
  search_of(input)["best_trial"] = count - 1;
  return input;
}

/// The trials, for charts and tables.
Json drawn(const WrittenInput& input) {
  return document_of(input).at("search");
}

Json of_trials(const Json& search, const std::string& member) {
  Json values = Json::array();
  for (const Json& one : search.at("trials"))
    values.push_back(one.at(member));
  return values;
}

/// The numbers of the trials at these places.
std::vector<std::int64_t> numbers_at(const Json& search, const std::string& places) {
  std::vector<std::int64_t> numbers;
  for (const Json& place : search.at(places))
    numbers.push_back(search["trials"][place.get<std::size_t>()]["number"]);
  return numbers;
}

TEST(SearchReport, CountsTheTrialsByStateAndReportsWhyTheSearchEnded) {
  const Json overview = card(document_of(search_run()), "Search");

  EXPECT_EQ(text(row(overview, "trials")), "4: 2 complete, 1 pruned, 1 failed");
  EXPECT_EQ(text(row(overview, "ended")), "all 4 trials were made");
  EXPECT_EQ(text(row(overview, "objective")), "val_loss minimized");
  EXPECT_EQ(text(row(overview, "best trial")), "1: val_loss 0.25");
  EXPECT_EQ(text(row(overview, "tuner")), "tpe");
  EXPECT_EQ(text(row(overview, "pruner")), "asha");
}

TEST(SearchReport, CountsEachStateOnceHoweverItsTrialsAreMixed) {
  WrittenInput input = long_search(5);
  const char* states[] = {"failed", "cancelled", "failed", "paused", "cancelled"};
  for (std::size_t i = 0; i < 5; ++i)
    search_of(input)["trials"][i]["state"] = states[i];

  EXPECT_EQ(text(row(card(document_of(input), "Search"), "trials")),
            "5: 1 paused, 2 failed, 2 cancelled");
}

TEST(SearchReport, WarnsThatAnAsynchronousSearchIsNotReproduced) {
  WrittenInput input = search_run();
  EXPECT_THAT(notes(card(document_of(input), "Search")), Not(HasSubstr("asynchronous")));

  search_of(input)["asynchronous"] = true;

  EXPECT_THAT(notes(card(document_of(input), "Search")),
              HasSubstr("The search was asynchronous: its trials depend on which of them ended "
                        "first. Another run of the document may make other ones."));
}

TEST(SearchReport, ReportsThatAnEnsemblePredicts) {
  WrittenInput input = search_run();
  search_of(input)["ensemble"] = nullptr;  // requested, and none was built
  EXPECT_TRUE(row(card(document_of(input), "Search"), "ensemble").is_null());
  EXPECT_THAT(notes(document_of(input)), Not(HasSubstr("ensemble")));

  search_of(input)["ensemble"] = {{"members", {{{"trial", 1}}, {{"trial", 3}}}},
                                  {"objective", "log_loss"},
                                  {"validation", 0.125}};

  const Json overview = card(document_of(input), "Search");
  EXPECT_EQ(text(row(overview, "ensemble")), "trials 1, 3: log_loss 0.125");
  EXPECT_THAT(notes(overview), HasSubstr("The ensemble predicts in place of the best trial"));
}

TEST(SearchReport, NamesTheBestValuesAndHowToUseThem) {
  const Json best = card(document_of(search_run()), "Best values: trial 1");

  EXPECT_EQ(row(best, "optimizer.learning_rate"), Json::parse(R"([{"code": {"setting": 0.02}}])"));
  EXPECT_EQ(row(best, "optimizer"), Json::parse(R"([{"code": {"setting": {"use": "adamw"}}}])"));
  EXPECT_TRUE(row(best, "optimizer.momentum").is_null());
  EXPECT_THAT(notes(best), HasSubstr("workflow-runner run best.json"));
}

TEST(SearchReport, DrawsTheTrialsOfTheRecord) {
  const Json search = drawn(search_run());

  EXPECT_EQ(of_trials(search, "number"), Json({0, 1, 2, 3}));
  EXPECT_EQ(of_trials(search, "state"), Json({"complete", "complete", "pruned", "failed"}));
  EXPECT_EQ(of_trials(search, "values"), Json::parse("[[0.5], [0.25], [null], [null]]"));
  EXPECT_EQ(search["best"], 1);
  EXPECT_EQ(search["paths"], Json({"optimizer", "optimizer.learning_rate", "optimizer.momentum"}));
  EXPECT_EQ(search["trials"][0]["params"], Json::parse(R"([{"use": "sgd"}, 0.001, 0.45])"));
  EXPECT_EQ(search["trials"][1]["params"], Json::parse(R"([{"use": "adamw"}, 0.02, null])"));
  EXPECT_EQ(search["trials"][3]["error"], "the loss of step 3 is <nan>");
}

TEST(SearchReport, HasTheRangesAndChoicesOfTheSpace) {
  const Json search = drawn(search_run());
  const Json& dimensions = search["dimensions"];

  EXPECT_EQ(dimensions[0]["choices"], Json::parse(R"([{"use": "sgd"}, {"use": "adamw"}])"));
  EXPECT_EQ(of_trials(search, "point"),
            Json::parse("[[0, 0.001, 0.45], [1, 0.02, null], [1, 0.01, null], [1, 0.1, null]]"));
  EXPECT_EQ(dimensions[1]["log"], true);
  EXPECT_EQ(dimensions[1]["low"], 1e-4);
  EXPECT_EQ(dimensions[1]["high"], 1e-1);
  EXPECT_TRUE(dimensions[1]["when"].is_null());
  EXPECT_EQ(dimensions[2]["when"], Json::parse(R"({"parent": 0, "choices": [0]})"));
}

TEST(SearchReport, DoesNotNegateAMaximizedMetric) {
  WrittenInput input = search_run();
  search_of(input)["objectives"] = {{{"name", "accuracy"}, {"direction", "maximize"}}};
  search_of(input)["trials"][0]["values"] = {0.875};
  search_of(input)["best_trial"] = 0;

  const Json document = document_of(input);

  EXPECT_EQ(of_trials(document["search"], "values"),
            Json::parse("[[0.875], [0.25], [null], [null]]"));
  EXPECT_EQ(text(row(card(document, "Search"), "best trial")), "0: accuracy 0.875");
  EXPECT_THAT(numbers_at(document["search"], "order"), ElementsAre(0, 1, 2, 3));
}

TEST(SearchReport, LeavesTheTrainingCurvesToTheRunsOwnFits) {
  const Json document = document_of(search_run());

  ASSERT_EQ(document["epochs"]["fits"].size(), 1U);
  EXPECT_EQ(document["epochs"]["fits"][0]["name"], "final");
  EXPECT_TRUE(find_block(document, "fits").is_null());
  EXPECT_EQ(document["search"]["curves"][0].size(), 3U);
}

TEST(SearchReport, DrawsTheCurvesThatThePrunerSaw) {
  WrittenInput input = search_run();
  search_of(input)["trials"][0]["intermediate"] = {
      {{"step", 1}, {"value", 0.9}}, {{"step", 3}, {"value", kNan}}, {{"step", 9}, {"value", 0.6}}};

  const Json curves = drawn(input)["curves"][0];

  EXPECT_EQ(curves[0], Json::parse(R"({"trial": 0, "points": [[1, 0.9], [3, null], [9, 0.6]]})"));
  EXPECT_EQ(curves[1], Json::parse(R"({"trial": 1, "points": [[1, 0.5], [2, 0.25]]})"))
      << "of the history where no intermediate values were recorded";
}

// A pruner is not asked after the last epoch, and a fit that stops early ends before.
TEST(SearchReport, DrawsTheLastEpochOfATrialWhetherThePrunerSawItOrNot) {
  WrittenInput input = search_run();
  Json& trials = search_of(input)["trials"];
  trials[0]["intermediate"] = {{{"step", 1}, {"value", 0.75}}, {{"step", 2}, {"value", 0.5}}};
  trials[1]["intermediate"] = trials[0]["intermediate"];
  input.curves = {{"trials/0", {epoch(1, 0.75), epoch(2, 0.5), epoch(3, 0.25)}},
                  {"trials/1", {epoch(1, 0.75), epoch(2, 0.5)}},
                  {"trials/2", {epoch(1, 0.875)}}};

  EXPECT_EQ(drawn(input)["curves"][0],
            Json::parse(R"([{"trial": 0, "points": [[1, 0.75], [2, 0.5], [3, 0.25]]},
                            {"trial": 1, "points": [[1, 0.75], [2, 0.5]]},
                            {"trial": 2, "points": [[1, 0.875]]}])"));
}

TEST(SearchReport, DrawsTheMeanOverTheFoldsOfATrialAsFarAsAllOfThemGo) {
  WrittenInput input = search_run();
  input.curves = {{"trials/2/fold-1", {epoch(1, 1.0), epoch(2, 0.5), epoch(3, 0.25)}},
                  {"trials/2/fold-2", {epoch(1, 0.5), epoch(2, 0.25)}}};
  search_of(input)["trials"][2].erase("intermediate");

  EXPECT_EQ(drawn(input)["curves"][0][0],
            Json::parse(R"({"trial": 2, "points": [[1, 0.75], [2, 0.375]]})"));
}

TEST(SearchReport, KeepsTheLastValueOfAFoldThatEndedBeforeTheOthers) {
  WrittenInput input = search_run();
  input.curves = {{"trials/1/fold-1", {epoch(1, 1.0), epoch(2, 0.5), epoch(3, 0.25)}},
                  {"trials/1/fold-2", {epoch(1, 0.5), epoch(2, 0.25)}}};

  EXPECT_EQ(drawn(input)["curves"][0][0],
            Json::parse(R"({"trial": 1, "points": [[1, 0.75], [2, 0.375], [3, 0.25]]})"));
}

TEST(SearchReport, DrawsTheCurvesOfEachObjective) {
  WrittenInput input = search_run();
  search_of(input)["objectives"].push_back({{"name", "accuracy"}, {"direction", "maximize"}});

  const Json curves = drawn(input)["curves"];

  ASSERT_EQ(curves.size(), 2U);
  EXPECT_EQ(curves[0][1]["points"], Json::parse("[[1, 0.5], [2, 0.25]]"));
  EXPECT_EQ(curves[1][1]["points"], Json::parse("[[1, 0.5], [2, 0.75]]"));
}

TEST(SearchReport, ThinsManyLongCurvesButKeepsTheirEnds) {
  WrittenInput input = long_search(1000);
  for (Json& one : search_of(input)["trials"]) {
    for (int step = 1; step <= 100; ++step)
      one["intermediate"].push_back({{"step", step}, {"value", 1.0 / step}});
  }

  const Json curves = drawn(input)["curves"][0];

  ASSERT_EQ(curves.size(), 1000U);
  const Json& points = curves[7]["points"];
  EXPECT_LE(points.size(), 61U);
  EXPECT_EQ(points.front()[0], 1);
  EXPECT_EQ(points.back(), Json({100, 1.0 / 100}));
}

TEST(SearchReport, ListsTheBestTrialsFirst) {
  const Json document = document_of(long_search(53));
  const std::vector<std::int64_t> numbers = numbers_at(document["search"], "order");

  ASSERT_EQ(numbers.size(), 53U);
  EXPECT_EQ(numbers[0], 52);
  EXPECT_EQ(numbers[1], 51);
  EXPECT_EQ(numbers[52], 0);
}

TEST(SearchReport, ListsUnfinishedTrialsBehindCompleteOnes) {
  EXPECT_THAT(numbers_at(drawn(search_run()), "order"), ElementsAre(1, 0, 2, 3));
}

TEST(SearchReport, ListsTrialsThatViolateAConstraintBehindThoseThatViolateNone) {
  WrittenInput input = search_run();
  search_of(input)["trials"][1]["constraints"] = {0.5, -1.0, 0.25};
  search_of(input)["trials"][0]["constraints"] = {-0.5, -1.0, 0.0};
  search_of(input)["best_trial"] = 0;

  const Json document = document_of(input);

  EXPECT_THAT(numbers_at(document["search"], "order"), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(document["search"]["trials"][1]["violation"], 0.75);
  EXPECT_EQ(of_trials(document["search"], "feasible"), Json({true, false, true, true}));
  EXPECT_EQ(document["search"]["constrained"], true);
  EXPECT_THAT(text(row(card(document, "Search"), "trials")),
              HasSubstr("1 of the complete ones violate a constraint"));
}

TEST(SearchReport, MeasuresTheImportanceOfEachDimension) {
  WrittenInput input = search_run();
  Json& trials = search_of(input)["trials"];
  trials = Json::array();
  for (int i = 0; i < 40; ++i) {  // the rate decides, the choice does not
    const double share = i * 17 % 40 / 40.0;
    Json one = trial(i, 1e-4 * std::pow(1e3, share), std::abs(share - 0.5));
    one["params"]["optimizer"] = {{"use", i % 2 == 0 ? "sgd" : "adamw"}};
    if (i % 2 == 0)
      one["params"]["optimizer.momentum"] = 0.9 * (i * 7 % 40) / 40.0;
    trials.push_back(one);
  }

  const Json search = drawn(input);
  const Json& importances = search["importances"][0];

  EXPECT_GT(importances["shares"][1], 0.5);
  EXPECT_LT(importances["shares"][0], 0.5);
  EXPECT_EQ(importances["best"], 4);
  EXPECT_EQ(importances["trials"], 40);
}

TEST(SearchReport, CountsNoInfeasibleTrialAmongTheBest) {
  const auto least_share = [](const WrittenInput& input) {
    const Json shares = drawn(input)["importances"][0]["shares"];
    return std::min(shares[0].get<double>(), shares[1].get<double>());
  };
  WrittenInput input = long_search(40);
  search_of(input)["space"]["model.kind"] = {{"choice", {"a", "b"}}};
  for (Json& one : search_of(input)["trials"])
    one["params"]["model.kind"] = one["number"].get<int>() % 2 == 0 ? "a" : "b";
  EXPECT_LT(least_share(input), 0.0005) << "of the best four, two are of each kind";

  for (Json& one : search_of(input)["trials"])
    one["constraints"] = {one["params"]["model.kind"] == "a" ? -1 : 1};

  EXPECT_GT(least_share(input), 0.0005);
}

TEST(SearchReport, MakesNoImportancesOfTwoTrialsNorOfEqualOnes) {
  EXPECT_EQ(drawn(search_run())["importances"][0]["best"], 0);

  WrittenInput equal = long_search(20);
  for (Json& one : search_of(equal)["trials"])
    one["values"] = {0.5};
  EXPECT_EQ(drawn(equal)["importances"][0]["shares"], Json({0.0}));
}

TEST(SearchReport, DrawsTheParetoFrontOfTwoObjectives) {
  WrittenInput input = search_run();
  search_of(input)["objectives"].push_back({{"name", "latency"}, {"direction", "minimize"}});
  search_of(input)["trials"][0]["values"] = {0.5, 1.0};
  search_of(input)["trials"][1]["values"] = {0.25, 2.0};
  search_of(input)["pareto_trials"] = {0, 1};

  const Json document = document_of(input);

  EXPECT_EQ(document["search"]["pareto"], Json({0, 1}));
  EXPECT_EQ(of_trials(document["search"], "values"),
            Json::parse("[[0.5, 1.0], [0.25, 2.0], [null, null], [null, null]]"));
  EXPECT_THAT(numbers_at(document["search"], "pareto"), ElementsAre(0, 1));
  EXPECT_EQ(text(row(card(document, "Search"), "Pareto front")), "2 trials");
  EXPECT_EQ(document["search"]["objectives"].size(), 2U);
}

TEST(SearchReport, ListsTheParetoFrontOfThreeObjectives) {
  WrittenInput input = search_run();
  for (const char* name : {"latency", "size"})
    search_of(input)["objectives"].push_back({{"name", name}, {"direction", "minimize"}});
  search_of(input)["trials"][0]["values"] = {0.5, 1.0, 30};
  search_of(input)["trials"][1]["values"] = {0.25, 2.0, 40};
  search_of(input)["pareto_trials"] = {0, 1};

  const Json document = document_of(input);

  EXPECT_THAT(numbers_at(document["search"], "pareto"), ElementsAre(0, 1));
  EXPECT_EQ(document["search"]["trials"][1]["values"], Json({0.25, 2.0, 40.0}));
}

TEST(SearchReport, HasNoValueWhereTheRecordHasNoNumber) {
  WrittenInput input = search_run();
  search_of(input)["trials"][0]["values"] = {kNan};
  search_of(input)["trials"][2]["values"] = {0.125};  // of a pruned trial, which has none
  const Json expected = Json::parse("[[null], [0.25], [null], [null]]");

  EXPECT_EQ(of_trials(drawn(input), "values"), expected);

  search_of(input)["trials"][0]["values"] = {std::numeric_limits<double>::infinity()};
  EXPECT_EQ(of_trials(drawn(input), "values"), expected);
}

TEST(SearchReport, OfOneTrialIsDrawn) {
  const Json document = document_of(long_search(1));

  EXPECT_FALSE(find_block(document, "search").is_null());
  EXPECT_EQ(document["search"]["importances"].size(), 1U);
}

TEST(SearchReport, WithoutACompleteTrialHasNothingToCompare) {
  WrittenInput input = search_run();
  for (Json& one : search_of(input)["trials"])
    one["state"] = "pruned";
  search_of(input).erase("best_trial");

  const Json document = document_of(input);

  EXPECT_THAT(notes(card(document, "Search")), HasSubstr("No trial is complete"));
  EXPECT_TRUE(document["search"]["importances"].empty());
  EXPECT_FALSE(document["search"]["curves"][0].empty());
}

TEST(SearchReport, LeavesOutOfChartsWhatIsNotInTheSpace) {
  WrittenInput input = search_run();
  search_of(input)["trials"][0]["params"]["optimizer.learning_rate"] = 7;

  const Json trials = drawn(input)["trials"];

  EXPECT_TRUE(trials[0]["point"].is_null());
  EXPECT_FALSE(trials[1]["point"].is_null());
  EXPECT_EQ(trials[0]["params"][1], 7);
}

TEST(SearchReport, OfARecordWithoutOptionalKeysShowsTheTrials) {
  WrittenInput input = search_run();
  for (const char* key : {"tuner", "pruner", "best_trial", "ended", "space"})
    search_of(input).erase(key);

  const Json document = document_of(input);

  EXPECT_THAT(text(row(card(document, "Search"), "trials")), HasSubstr("2 complete"));
  EXPECT_EQ(document["search"]["paths"],
            Json({"optimizer", "optimizer.learning_rate", "optimizer.momentum"}));
  EXPECT_THAT(numbers_at(document["search"], "order"), ElementsAre(1, 0, 2, 3));
  EXPECT_TRUE(document["search"]["importances"].empty());
}

TEST(SearchReport, IsMadeOfOddRecordsToo) {
  for (const char* odd :
       {"{}", R"({"trials": [{}]})", R"({"trials": [{"params": [1]}]})",
        R"({"objectives": [{}], "space": [], "trials": [{"state": "complete", "values": []}]})",
        R"({"best_trial": -1, "pareto_trials": [99]})"}) {
    WrittenInput input = search_run();
    search_of(input) = Json::parse(odd);
    EXPECT_FALSE(card(document_of(input), "Search").is_null()) << odd;
  }
}

TEST(SearchReport, IsAbsentFromARunWithoutASearch) {
  WrittenInput input = search_run();
  input.result.erase("search");

  const Json document = document_of(input);

  EXPECT_FALSE(document.contains("search"));
  EXPECT_TRUE(card(document, "Search").is_null());
}

}  // namespace
}  // namespace treadle
