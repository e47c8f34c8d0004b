#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/host/run/report.h>

namespace treadle {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The value of the data island, as the page's script would read it.
Json data_in(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"report-data\"";
  const std::size_t begin = page.find('>', page.find(open)) + 1;
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

/// The page without its scripts.
std::string text_in(std::string page) {
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script"))
    page.erase(at, page.find("</script>", at) + 9 - at);
  return page;
}

/// A part of the page: from this title to the end of its card.
std::string card_in(const std::string& page, const std::string& title) {
  const std::size_t begin = page.find("<h2>" + title + "</h2>");
  return begin == std::string::npos ? ""
                                    : page.substr(begin, page.find("</section>", begin) - begin);
}

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
ReportInput search_run() {
  ReportInput input;
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

Json& search_of(ReportInput& input) {
  return input.result["search"];
}

/// A search of `count` complete trials over one range, the later the better.
ReportInput long_search(std::size_t count) {
  ReportInput input = search_run();
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

Json drawn(const ReportInput& input) {
  return data_in(render_report(input)).at("search");
}

TEST(SearchReport, CountsTheTrialsByStateAndReportsWhyTheSearchEnded) {
  const std::string card = card_in(render_report(search_run()), "Search");

  EXPECT_THAT(card, HasSubstr("<td>4: 2 complete, 1 pruned, 1 failed</td>"));
  EXPECT_THAT(card, HasSubstr("<td>all 4 trials were made</td>"));
  EXPECT_THAT(card, HasSubstr("val_loss <span class=\"spread\">minimized</span>"));
  EXPECT_THAT(card, HasSubstr("<td>1: val_loss 0.2500</td>"));
  EXPECT_THAT(card, HasSubstr("<td>tpe</td>"));
  EXPECT_THAT(card, HasSubstr("<td>asha</td>"));
}

TEST(SearchReport, SaysThatAnAsynchronousSearchIsNotReproduced) {
  ReportInput input = search_run();
  EXPECT_THAT(card_in(render_report(input), "Search"), Not(HasSubstr("asynchronous")));

  search_of(input)["asynchronous"] = true;

  EXPECT_THAT(card_in(render_report(input), "Search"),
              HasSubstr("The search was asynchronous: its trials depend on which of them ended "
                        "first. Another run of the document may make other ones."));
}

TEST(SearchReport, SaysThatAnEnsemblePredicts) {
  ReportInput input = search_run();
  search_of(input)["ensemble"] = nullptr;  // asked for, and there is none
  EXPECT_THAT(card_in(render_report(input), "Search"), Not(HasSubstr("ensemble")));

  search_of(input)["ensemble"] = {{"members", {{{"trial", 1}}, {{"trial", 3}}}},
                                  {"objective", "log_loss"},
                                  {"validation", 0.125}};

  const std::string card = card_in(render_report(input), "Search");
  EXPECT_THAT(card, HasSubstr("<td>trials 1, 3: log_loss 0.1250</td>"));
  EXPECT_THAT(card, HasSubstr("The ensemble predicts in place of the best trial"));
}

TEST(SearchReport, NamesTheBestValuesAndHowToUseThem) {
  const std::string card = card_in(render_report(search_run()), "Best values: trial 1");

  EXPECT_THAT(card, HasSubstr("optimizer.<wbr>learning_rate</th><td><code>0.02</code>"));
  EXPECT_THAT(card, HasSubstr("optimizer</th><td><code>adamw</code>"));
  EXPECT_THAT(card, Not(HasSubstr("momentum")));
  EXPECT_THAT(card, HasSubstr("workflow-runner run best.json"));
}

TEST(SearchReport, DrawsTheTrialsOfTheRecord) {
  const Json search = drawn(search_run());

  EXPECT_EQ(search["numbers"], Json({0, 1, 2, 3}));
  EXPECT_EQ(search["states"], Json({"complete", "complete", "pruned", "failed"}));
  EXPECT_EQ(search["values"], Json::parse("[[0.5, 0.25, null, null]]"));
  EXPECT_EQ(search["best"], 1);
  EXPECT_EQ(search["paths"], Json({"optimizer", "optimizer.learning_rate", "optimizer.momentum"}));
  EXPECT_EQ(search["params"][1], Json({0.001, 0.02, 0.01, 0.1}));
  EXPECT_EQ(search["params"][2], Json::parse("[0.45, null, null, null]"));
}

TEST(SearchReport, HasTheRangesAndChoicesOfTheSpace) {
  const Json dimensions = drawn(search_run())["dimensions"];

  EXPECT_EQ(dimensions[0]["choices"], Json({"sgd", "adamw"}));
  EXPECT_EQ(dimensions[0]["indices"], Json::parse("[0, 1, 1, 1]"));
  EXPECT_EQ(dimensions[1]["log"], true);
  EXPECT_EQ(dimensions[1]["low"], 1e-4);
  EXPECT_EQ(dimensions[1]["high"], 1e-1);
  EXPECT_EQ(dimensions[1]["conditional"], false);
  EXPECT_EQ(dimensions[2]["conditional"], true);
}

TEST(SearchReport, DoesNotNegateAMaximizedMetric) {
  ReportInput input = search_run();
  search_of(input)["objectives"] = {{{"name", "accuracy"}, {"direction", "maximize"}}};
  search_of(input)["trials"][0]["values"] = {0.875};
  search_of(input)["best_trial"] = 0;

  const std::string page = render_report(input);

  EXPECT_EQ(data_in(page)["search"]["values"][0], Json::parse("[0.875, 0.25, null, null]"));
  EXPECT_THAT(card_in(page, "Search"), HasSubstr("<td>0: accuracy 0.8750</td>"));
  EXPECT_LT(page.find("<th scope=\"row\">0</th><td>complete</td>"),
            page.find("<th scope=\"row\">1</th><td>complete</td>"));
}

TEST(SearchReport, LeavesTheTrainingCurvesToTheRunsOwnFits) {
  const std::string page = render_report(search_run());
  const Json data = data_in(page);

  ASSERT_EQ(data["curves"].size(), 1U);
  EXPECT_EQ(data["curves"][0]["fit"], "final");
  EXPECT_THAT(text_in(page), Not(HasSubstr("trials/")));
  EXPECT_THAT(text_in(page), Not(HasSubstr("id=\"fit-chips\"")));
  EXPECT_EQ(data["search"]["curves"][0].size(), 3U);
}

TEST(SearchReport, DrawsTheCurvesThatThePrunerSaw) {
  ReportInput input = search_run();
  search_of(input)["trials"][0]["intermediate"] = {
      {{"step", 1}, {"value", 0.9}}, {{"step", 3}, {"value", kNan}}, {{"step", 9}, {"value", 0.6}}};

  const Json curves = drawn(input)["curves"][0];

  EXPECT_EQ(curves[0],
            Json::parse(R"({"trial": 0, "epochs": [1, 3, 9], "values": [0.9, null, 0.6]})"));
  EXPECT_EQ(curves[1], Json::parse(R"({"trial": 1, "epochs": [1, 2], "values": [0.5, 0.25]})"))
      << "of the history where there are no intermediate values";
}

// A pruner is not asked after the last epoch, and a fit that stops early ends before.
TEST(SearchReport, DrawsTheLastEpochOfATrialWhetherItWasJudgedOrNot) {
  ReportInput input = search_run();
  Json& trials = search_of(input)["trials"];
  trials[0]["intermediate"] = {{{"step", 1}, {"value", 0.75}}, {{"step", 2}, {"value", 0.5}}};
  trials[1]["intermediate"] = trials[0]["intermediate"];
  input.curves = {{"trials/0", {epoch(1, 0.75), epoch(2, 0.5), epoch(3, 0.25)}},
                  {"trials/1", {epoch(1, 0.75), epoch(2, 0.5)}},
                  {"trials/2", {epoch(1, 0.875)}}};

  EXPECT_EQ(drawn(input)["curves"][0],
            Json::parse(R"([{"trial": 0, "epochs": [1, 2, 3], "values": [0.75, 0.5, 0.25]},
                            {"trial": 1, "epochs": [1, 2], "values": [0.75, 0.5]},
                            {"trial": 2, "epochs": [1], "values": [0.875]}])"));
}

TEST(SearchReport, DrawsTheMeanOverTheFoldsOfATrialAsFarAsAllOfThemGo) {
  ReportInput input = search_run();
  input.curves = {{"trials/2/fold-1", {epoch(1, 1.0), epoch(2, 0.5), epoch(3, 0.25)}},
                  {"trials/2/fold-2", {epoch(1, 0.5), epoch(2, 0.25)}}};
  search_of(input)["trials"][2].erase("intermediate");

  EXPECT_EQ(drawn(input)["curves"][0][0],
            Json::parse(R"({"trial": 2, "epochs": [1, 2], "values": [0.75, 0.375]})"));
}

TEST(SearchReport, KeepsTheLastValueOfAFoldThatEndedBeforeTheOthers) {
  ReportInput input = search_run();
  input.curves = {{"trials/1/fold-1", {epoch(1, 1.0), epoch(2, 0.5), epoch(3, 0.25)}},
                  {"trials/1/fold-2", {epoch(1, 0.5), epoch(2, 0.25)}}};

  EXPECT_EQ(drawn(input)["curves"][0][0],
            Json::parse(R"({"trial": 1, "epochs": [1, 2, 3], "values": [0.75, 0.375, 0.25]})"));
}

TEST(SearchReport, DrawsTheCurvesOfEachObjective) {
  ReportInput input = search_run();
  search_of(input)["objectives"].push_back({{"name", "accuracy"}, {"direction", "maximize"}});

  const Json curves = drawn(input)["curves"];

  ASSERT_EQ(curves.size(), 2U);
  EXPECT_EQ(curves[0][1]["values"], Json({0.5, 0.25}));
  EXPECT_EQ(curves[1][1]["values"], Json({0.5, 0.75}));
}

TEST(SearchReport, ThinsManyLongCurvesButKeepsTheirEnds) {
  ReportInput input = long_search(1000);
  for (Json& one : search_of(input)["trials"]) {
    for (int step = 1; step <= 100; ++step)
      one["intermediate"].push_back({{"step", step}, {"value", 1.0 / step}});
  }

  const Json curves = drawn(input)["curves"][0];

  ASSERT_EQ(curves.size(), 1000U);
  EXPECT_LE(curves[7]["epochs"].size(), 61U);
  EXPECT_EQ(curves[7]["epochs"].front(), 1);
  EXPECT_EQ(curves[7]["epochs"].back(), 100);
  EXPECT_EQ(curves[7]["values"].back(), 1.0 / 100);
}

TEST(SearchReport, ListsTheBestTrialsFirstAndFoldsTheOthers) {
  const std::string card = card_in(render_report(long_search(53)), "Trials");
  const std::size_t folded = card.find("<summary>3 more trials</summary>");

  ASSERT_NE(folded, std::string::npos);
  EXPECT_LT(card.find("<th scope=\"row\">52</th>"), card.find("<th scope=\"row\">51</th>"));
  EXPECT_LT(card.find("<th scope=\"row\">3</th>"), folded);
  EXPECT_GT(card.find("<th scope=\"row\">2</th>"), folded);
  EXPECT_NE(card.find("<th scope=\"row\">0</th>"), std::string::npos);
}

TEST(SearchReport, ListsUnfinishedTrialsBehindCompleteOnes) {
  const std::string card = card_in(render_report(search_run()), "Trials");
  std::vector<std::size_t> places;
  for (const char* number : {"1", "0", "2", "3"})
    places.push_back(card.find("<th scope=\"row\">" + std::string(number) + "</th>"));

  EXPECT_TRUE(std::is_sorted(places.begin(), places.end())) << card;
  EXPECT_NE(places.back(), std::string::npos);
  EXPECT_THAT(card, HasSubstr("the loss of step 3 is &lt;nan&gt;"));
}

TEST(SearchReport, ListsTrialsThatBreakAConstraintBehindThoseThatBreakNone) {
  ReportInput input = search_run();
  search_of(input)["trials"][1]["constraints"] = {0.5, -1.0, 0.25};
  search_of(input)["trials"][0]["constraints"] = {-0.5, -1.0, 0.0};
  search_of(input)["best_trial"] = 0;

  const std::string page = render_report(input);
  const std::string card = card_in(page, "Trials");

  EXPECT_LT(card.find("<th scope=\"row\">0</th>"), card.find("<th scope=\"row\">1</th>"));
  EXPECT_THAT(card, HasSubstr("<td>0.2500</td><td>0.7500</td>"));
  EXPECT_THAT(page, HasSubstr("Hollow ones break a constraint."));
  EXPECT_EQ(data_in(page)["search"]["feasible"], Json({true, false, true, true}));
  EXPECT_THAT(card_in(page, "Search"), HasSubstr("1 of the complete ones break a constraint"));
}

TEST(SearchReport, ShowsTheImportancesLargestFirst) {
  ReportInput input = search_run();
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

  const std::string page = render_report(input);
  const std::string card = card_in(page, "Importance");

  EXPECT_EQ(data_in(page)["search"]["order"][0], 1);
  EXPECT_LT(card.find("optimizer.<wbr>learning_rate"), card.find("optimizer.<wbr>momentum"));
  EXPECT_THAT(card, HasSubstr("momentum <span class=\"spread\">if optimizer is sgd</span>"));
  EXPECT_THAT(card, HasSubstr("among the best 4 of 40."));
  EXPECT_LT(page.find("<figcaption>optimizer.learning_rate"), page.find("<figcaption>optimizer<"));
}

TEST(SearchReport, CountsNoInfeasibleTrialAmongTheBest) {
  ReportInput input = long_search(40);
  search_of(input)["space"]["model.kind"] = {{"choice", {"a", "b"}}};
  for (Json& one : search_of(input)["trials"])
    one["params"]["model.kind"] = one["number"].get<int>() % 2 == 0 ? "a" : "b";
  EXPECT_THAT(card_in(render_report(input), "Importance"), HasSubstr("<td>0.0 %</td>"))
      << "of the best four, two are of each kind";

  for (Json& one : search_of(input)["trials"])
    one["constraints"] = {one["params"]["model.kind"] == "a" ? -1 : 1};

  EXPECT_THAT(card_in(render_report(input), "Importance"), Not(HasSubstr("<td>0.0 %</td>")));
}

TEST(SearchReport, MakesNoImportancesOfTwoTrialsNorOfEqualOnes) {
  EXPECT_THAT(card_in(render_report(search_run()), "Importance"),
              HasSubstr("Fewer than three complete trials have a value."));

  ReportInput equal = long_search(20);
  for (Json& one : search_of(equal)["trials"])
    one["values"] = {0.5};
  EXPECT_THAT(card_in(render_report(equal), "Importance"),
              HasSubstr("Nothing sets the best trials apart."));
}

TEST(SearchReport, DrawsTheParetoFrontOfTwoObjectives) {
  ReportInput input = search_run();
  search_of(input)["objectives"].push_back({{"name", "latency"}, {"direction", "minimize"}});
  search_of(input)["trials"][0]["values"] = {0.5, 1.0};
  search_of(input)["trials"][1]["values"] = {0.25, 2.0};
  search_of(input)["pareto_trials"] = {0, 1};

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("<canvas id=\"pareto-chart\""));
  EXPECT_EQ(data_in(page)["search"]["pareto"], Json({0, 1}));
  EXPECT_EQ(data_in(page)["search"]["values"][1], Json::parse("[1.0, 2.0, null, null]"));
  EXPECT_THAT(card_in(page, "Trials of the Pareto front"),
              HasSubstr("<td>0.2500</td><td>2.0000</td>"));
  EXPECT_THAT(card_in(page, "Search"), HasSubstr("<td>2 trials</td>"));
  EXPECT_THAT(page, HasSubstr("<select class=\"chip\" id=\"slices-objective\""));
}

TEST(SearchReport, ListsTheParetoFrontOfThreeObjectives) {
  ReportInput input = search_run();
  for (const char* name : {"latency", "size"})
    search_of(input)["objectives"].push_back({{"name", name}, {"direction", "minimize"}});
  search_of(input)["trials"][0]["values"] = {0.5, 1.0, 30};
  search_of(input)["trials"][1]["values"] = {0.25, 2.0, 40};
  search_of(input)["pareto_trials"] = {0, 1};

  const std::string page = render_report(input);

  EXPECT_THAT(page, Not(HasSubstr("<canvas id=\"pareto-chart\"")));
  EXPECT_THAT(card_in(page, "Pareto front"),
              HasSubstr("<td>0.2500</td><td>2.0000</td><td>40.0000</td>"));
}

TEST(SearchReport, EscapesWhatComesFromTheDocument) {
  constexpr const char* kHostile = "</script><b>\"'&";
  ReportInput input = search_run();
  search_of(input)["tuner"] = kHostile;
  search_of(input)["pruner"] = kHostile;
  search_of(input)["ended"]["text"] = kHostile;
  search_of(input)["objectives"][0]["name"] = kHostile;
  search_of(input)["space"] = {{kHostile, {{"choice", {kHostile, "\xFF"}}}}};
  for (Json& one : search_of(input)["trials"]) {
    one["params"] = {{kHostile, kHostile}};
    one["state"] = one["number"] == 3 ? kHostile : one["state"].get<std::string>();
  }

  const std::string page = render_report(input);

  EXPECT_THAT(page, Not(HasSubstr("<b>\"'&")));
  EXPECT_THAT(text_in(page), HasSubstr("&lt;/script&gt;&lt;b&gt;&quot;&#39;&amp;"));
  EXPECT_EQ(data_in(page)["search"]["paths"][0], kHostile);
}

TEST(SearchReport, HasNoValueWhereThereIsNoNumber) {
  ReportInput input = search_run();
  search_of(input)["trials"][0]["values"] = {kNan};
  search_of(input)["trials"][2]["values"] = {0.125};  // of a pruned trial, which has none

  const Json search = drawn(input);

  EXPECT_EQ(search["values"][0], Json::parse("[null, 0.25, null, null]"));

  search_of(input)["trials"][0]["values"] = {std::numeric_limits<double>::infinity()};
  EXPECT_EQ(drawn(input)["values"][0], Json::parse("[null, 0.25, null, null]"));
}

TEST(SearchReport, OfOneTrialHasEveryChart) {
  const std::string page = render_report(long_search(1));

  for (const char* id : {"search-history-chart", "parallel-chart", "slice-0"})
    EXPECT_THAT(page, HasSubstr("<canvas id=\"" + std::string(id) + "\""));
}

TEST(SearchReport, WithoutACompleteTrialHasNothingToCompare) {
  ReportInput input = search_run();
  for (Json& one : search_of(input)["trials"])
    one["state"] = "pruned";
  search_of(input).erase("best_trial");

  const std::string page = render_report(input);

  EXPECT_THAT(card_in(page, "Search"), HasSubstr("No trial is complete"));
  EXPECT_THAT(page, Not(HasSubstr("<canvas id=\"parallel-chart\"")));
  EXPECT_THAT(page, Not(HasSubstr("<h2>Importance</h2>")));
  EXPECT_THAT(page, HasSubstr("<canvas id=\"learning-chart\""));
}

TEST(SearchReport, LeavesOutOfChartsWhatIsNotInTheSpace) {
  ReportInput input = search_run();
  search_of(input)["trials"][0]["params"]["optimizer.learning_rate"] = 7;

  const std::string page = render_report(input);

  EXPECT_EQ(data_in(page)["search"]["placed"], Json({false, true, true, true}));
  EXPECT_THAT(card_in(page, "Trials"), HasSubstr("<td>7</td>"));
}

TEST(SearchReport, OfARecordWithoutOptionalKeysShowsTheTrials) {
  ReportInput input = search_run();
  for (const char* key : {"tuner", "pruner", "best_trial", "ended", "space"})
    search_of(input).erase(key);

  const std::string page = render_report(input);

  EXPECT_THAT(card_in(page, "Search"), HasSubstr("2 complete"));
  EXPECT_THAT(card_in(page, "Trials"), HasSubstr("optimizer.momentum"));
  EXPECT_THAT(page, HasSubstr("<canvas id=\"search-history-chart\""));
  EXPECT_THAT(page, Not(HasSubstr("<canvas id=\"parallel-chart\"")));
}

TEST(SearchReport, IsMadeOfOddRecordsToo) {
  for (const char* odd :
       {"{}", R"({"trials": 3})", R"({"trials": [4, null, []]})",
        R"({"trials": [{"values": "x", "params": [1], "intermediate": {"a": 1}}]})",
        R"({"objectives": [7], "space": [], "trials": [{"state": "complete"}]})",
        R"({"objectives": {}, "best_trial": -1, "pareto_trials": ["a", 99]})"}) {
    ReportInput input = search_run();
    search_of(input) = Json::parse(odd);
    EXPECT_NE(card_in(render_report(input), "Search"), "") << odd;
  }
}

TEST(SearchReport, IsAbsentFromARunWithoutASearch) {
  ReportInput input = search_run();
  input.result.erase("search");

  const std::string page = render_report(input);

  EXPECT_FALSE(data_in(page).contains("search"));
  EXPECT_THAT(page, Not(HasSubstr("<h2>Search</h2>")));
}

}  // namespace
}  // namespace treadle
