#include "terminal/result_text.h"

#include <cmath>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::cli {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const Terminal kPiped(-1, false, false);

/// Of the given part of a run's result.json, and a model.
std::string table_of(Json result) {
  if (!result.contains("model_path"))
    result["model_path"] = "model.safetensors";
  return result_table(run_result_from(result, "result.json"), kPiped);
}

std::string time_of(const Json& result, const Terminal& terminal = kPiped) {
  return time_table(run_result_from(result, "result.json"), terminal);
}

TEST(ResultText, WritesNumbersInNineColumns) {
  EXPECT_EQ(number_text(0.95333), "0.9533");
  EXPECT_EQ(number_text(-0.00001), "-1.00e-05");
  EXPECT_EQ(number_text(0), "0.0000");
  EXPECT_EQ(number_text(12345.67), "12345.7");
  EXPECT_EQ(number_text(1234567.0), "1.23e+06");
  EXPECT_EQ(number_text(std::nan("")), "-");
}

TEST(ResultText, WritesTimesAndSizesForPeople) {
  EXPECT_EQ(seconds_text(0.4249), "0.42 s");
  EXPECT_EQ(seconds_text(59.97), "1:00 min");
  EXPECT_EQ(seconds_text(7630), "2:07:10 h");
  EXPECT_EQ(bytes_text(640), "640 bytes");
  EXPECT_EQ(bytes_text(12.25 * 1024 * 1024), "12.2 MiB");
}

const Json kTime{{"seconds", 2.0},
                 {"workers", 2},
                 {"budget_used", 0.75},
                 {"training_rows_per_second", 61234.5},
                 {"phases",
                  {{"loading", 0.2},
                   {"data", 0.04},
                   {"forward", 1.0},
                   {"backward", 1.4},
                   {"update", 0.2},
                   {"metrics", 0.12},
                   {"saving", 0.04},
                   {"idle", 1.0}}}};

TEST(ResultText, ShowsWhereTheTimeWentInALineOfShares) {
  EXPECT_EQ(time_of({{"time", kTime}}),
            "Wall time (2.0 s with 2 workers, 75 % used, 61234 training rows/s)\n"
            "  loading   data  forward  backward  update  metrics  saving    idle\n"
            "    5.0 %  1.0 %   25.0 %    35.0 %   5.0 %    3.0 %   1.0 %  25.0 %\n"
            "\n");
  EXPECT_EQ(time_of(Json::object()), "") << "a run of an older version";
}

TEST(ResultText, ShowsWhatARunDidWithItsDevice) {
  Json on_a_device = kTime;
  on_a_device["phases"]["waiting"] = 0.1;
  on_a_device["phases"]["idle"] = 0.9;
  const Json device{{"name", "cuda:0"},
                    {"copies_to_device", 1200},
                    {"bytes_to_device", 12845056},
                    {"copies_to_host", 34},
                    {"bytes_to_host", 640},
                    {"waits", 56},
                    {"seconds_waiting", 0.1},
                    {"memory_peak_bytes", 2 * 1024 * 1024},
                    {"memory_reserved_bytes", 4 * 1024 * 1024},
                    {"busy_seconds", 1.5},
                    {"idle_seconds", 0.5},
                    {"idle_fraction", 0.25}};

  EXPECT_EQ(
      time_of({{"time", on_a_device}, {"device", device}}),
      "Wall time (2.0 s with 2 workers, 75 % used, 61234 training rows/s)\n"
      "  loading   data  forward  backward  update  waiting  metrics  saving    idle\n"
      "    5.0 %  1.0 %   25.0 %    35.0 %   5.0 %    2.5 %    3.0 %   1.0 %  22.5 %\n"
      "Device cuda:0: 25.0 % idle during epochs, peak memory 2.0 MiB, reserved 4.0 MiB\n"
      "  1200 copies to the device (12.2 MiB), 34 to the host (640 bytes), 56 waits (0.10 s)\n"
      "\n");
}

TEST(ResultText, ShowsWhichProcessesTrainedAndTheirShareInExchanges) {
  double exchange = 1;
  const auto last_line = [&](const std::vector<std::pair<const char*, double>>& ranks) {
    Json shared = kTime;
    for (const auto& [host, share] : ranks)
      shared["ranks"].push_back({{"host", host},
                                 {"exchange_seconds", exchange},
                                 {"waiting_share", exchange > 0 ? share : 0.0},
                                 {"budget_used", exchange > 0 ? 1.0 : share}});
    const std::string text = time_of({{"time", shared}});
    return text.substr(text.find("Processes"));
  };

  EXPECT_EQ(
      last_line({{"a", 0.125}, {"a", 0.25}, {"b", 0.5}}),
      "Processes: 3 on 2 hosts; rank 0 spent 12.5 % of its time in exchanges, rank 2 the most: "
      "50.0 %\n\n");
  EXPECT_EQ(last_line({{"a", 0.5}, {"a", 0.25}}),
            "Processes: 2 on 1 host; rank 0 spent 50.0 % of its time in exchanges, the most of "
            "all\n\n");

  exchange = 0;
  EXPECT_EQ(last_line({{"a", 0.875}, {"a", 0.5}}),
            "Processes: 2 on 1 host; rank 0 spent 87.5 % of its time at work, rank 1 the least: "
            "50.0 %\n\n")
      << "each had fits of its own";
}

TEST(ResultText, BreaksTheLineOfSharesWhereTheWindowEnds) {
  ASSERT_EQ(setenv("COLUMNS", "40", 1), 0);  // which counts where the terminal has no width

  EXPECT_EQ(time_of({{"time", kTime}}, Terminal(-1, true, false)),
            "Wall time (2.0 s with 2 workers, 75 % used, 61234 training rows/s)\n"
            "  loading   data  forward  backward\n"
            "    5.0 %  1.0 %   25.0 %    35.0 %\n"
            "  update  metrics  saving    idle\n"
            "   5.0 %    3.0 %   1.0 %  25.0 %\n"
            "\n");
  unsetenv("COLUMNS");
}

TEST(ResultText, ShowsMeanAndDeviationOfFolds) {
  const Json result{{"fold_results", Json(5, Json::object())},
                    {"mean_loss", 0.1432},
                    {"std_loss", 0.0411},
                    {"mean_metrics", {{"accuracy", 0.9533}}},
                    {"std_metrics", {{"accuracy", 0.0298}}},
                    {"model_path", ""},
                    {"total_time_seconds", 3.42}};

  EXPECT_EQ(table_of(result),
            "Result (mean ± deviation over 5 folds)\n"
            "  loss                  0.1432 ± 0.0411\n"
            "  accuracy              0.9533 ± 0.0298\n"
            "  model              none, as \"refit\" is false\n"
            "  time of all folds      3.4 s, added up\n");
}

TEST(ResultText, ShowsTheValidationOfASingleTraining) {
  const Json result{
      {"validation", {{"loss", 0.5}, {"metrics", {{"r2", 0.75}}}, {"sample_count", 30}}},
      {"total_epochs", 60},
      {"weights", {{"epoch", 41}, {"chosen", "best"}, {"by", "r2"}}},
      {"training_time_seconds", 1.0}};

  EXPECT_EQ(table_of(result),
            "Result (on 30 validation rows)\n"
            "  loss              0.5000\n"
            "  r2                0.7500\n"
            "  epochs                60\n"
            "  model          weights of epoch 41, the best by r2\n"
            "  training time      1.0 s\n");
}

TEST(ResultText, ShowsWindowsAndChangesOfATrainingThatTestsFirst) {
  const auto level = [](double accuracy) { return Json{{"metrics", {{"accuracy", accuracy}}}}; };
  const Json result{{"prequential",
                     {{"loss", 0.5},
                      {"metrics", {{"accuracy", 0.75}}},
                      {"metric_list", {{{"name", "accuracy"}, {"better", "higher"}}}},
                      {"sample_count", 700},
                      {"windows", {level(0.9), level(0.5), level(0.85)}},
                      {"recovery", {{"metric", "accuracy"}, {"threshold", 0.8}, {"share", 0.99}}},
                      {"changes",
                       {{{"row", 250},
                         {"task", "rotated"},
                         {"before", level(0.9)},
                         {"after", level(0.5)},
                         {"windows_to_threshold", 1},
                         {"windows_to_share", nullptr}}}}}}};

  const std::string text = table_of(result);

  EXPECT_THAT(text, HasSubstr("means over 3 windows, 700 rows tested"));
  EXPECT_THAT(text, HasSubstr("rotated (row 250)"));
  EXPECT_THAT(text,
              HasSubstr("0.9000 before, 0.5000, 1 window to the threshold, never at the share "
                        "of before"));
}

TEST(ResultText, NamesTheOperationsOfAStructureThatWasSearched) {
  const Json result = Json::parse(R"({"final_loss": 0.5, "total_epochs": 3, "structures": [
    {"structure": "cell", "choices": [{"name": "0_1", "chosen": "dense"},
                                      {"name": "0_2", "chosen": null},
                                      {"name": "1_2", "chosen": "skip"}]}]})");
  EXPECT_THAT(table_of(result),
              HasSubstr("cell           0_1 dense, 1_2 skip (architecture.json)"));
}

TEST(ResultText, NamesTheWeightsAndTheMeasureTheyWereChosenBy) {
  Json result{{"total_epochs", 60},
              {"best_epoch", 41},
              {"weights", {{"epoch", 41}, {"chosen", "best"}, {"by", "r2"}}}};
  EXPECT_THAT(table_of(result), HasSubstr("weights of epoch 41, the best by r2\n"));

  // The best by training loss, which nobody chose anything by.
  result["weights"] = {{"epoch", 60}, {"chosen", "last"}};
  EXPECT_THAT(table_of(result), HasSubstr("weights of the last epoch\n"));
  EXPECT_THAT(table_of(result), Not(HasSubstr("41")));
}

TEST(ResultText, TellsTheRowsThatChoseFromTheTestRows) {
  Json result{{"validation", {{"loss", 0.5}, {"metrics", {{"r2", 0.75}}}, {"sample_count", 30}}},
              {"total_epochs", 60},
              {"training_time_seconds", 1.0},
              {"weights", {{"epoch", 41}, {"chosen", "best"}, {"by", "r2"}, {"on", "validation"}}}};
  EXPECT_THAT(table_of(result),
              HasSubstr("Result (on 30 validation rows, which also chose the weights)\n"));

  result["test"] = {{"loss", 0.625}, {"metrics", {{"r2", 0.5}}}, {"sample_count", 20}};
  EXPECT_EQ(table_of(result),
            "Test (on 20 rows that neither trained nor chose)\n"
            "  loss     0.6250\n"
            "  r2       0.5000\n"
            "Result (on 30 validation rows, which also chose the weights)\n"
            "  loss              0.5000\n"
            "  r2                0.7500\n"
            "  epochs                60\n"
            "  model          weights of epoch 41, the best by r2\n"
            "  training time      1.0 s\n");
}

TEST(ResultText, ShowsTheTestOfACrossValidationsModel) {
  const Json fold{{"weights", {{"epoch", 4}, {"chosen", "best"}, {"on", "validation"}}}};
  const Json result{{"fold_results", {fold, fold}},
                    {"mean_loss", 0.5},
                    {"mean_metrics", Json::object()},
                    {"total_time_seconds", 2.0},
                    {"total_epochs", 4},
                    {"test", {{"loss", 0.625}, {"metrics", Json::object()}, {"sample_count", 20}}}};

  EXPECT_EQ(table_of(result),
            "Test (on 20 rows that neither trained nor chose)\n"
            "  loss     0.6250\n"
            "Result (mean ± deviation over 2 folds, whose rows also chose the weights)\n"
            "  loss                  0.5000\n"
            "  epochs                     4\n"
            "  model              weights of the last epoch\n"
            "  time of all folds      2.0 s, added up\n");
}

TEST(ResultText, OrdersMetricsAsTheDocumentDoesAndLabelsTheLossOfATransformedTarget) {
  const Json result{{"validation",
                     {{"metrics", {{"mae", 1.0}, {"r2", 0.5}, {"rmse", 2.0}}},
                      {"metric_list", {{{"name", "rmse"}}, {{"name", "mae"}}, {{"name", "r2"}}}}}},
                    {"transformed_target", true}};

  const std::string text = table_of(result);

  EXPECT_LT(text.find("rmse"), text.find("mae"));
  EXPECT_LT(text.find("mae"), text.find("r2"));
  EXPECT_THAT(text, HasSubstr("loss (transformed target)"));
}

/// Of a search with trials in these states, the second of which is the best.
std::string search_with(const Json& ensemble, const std::vector<std::string>& states,
                        const std::string& ended = "trials") {
  Json trials = Json::array();
  for (const std::string& state : states)
    trials.push_back({{"number", trials.size()}, {"state", state}, {"params", Json::object()}});
  return table_of({{"search",
                    {{"best_trial", states.size() - 1},
                     {"trials", std::move(trials)},
                     {"ended", {{"reason", ended}}},
                     {"ensemble", ensemble}}}});
}

TEST(ResultText, SaysThatAnEnsemblePredicts) {
  const Json ensemble{
      {"members", {{{"trial", 1}}, {{"trial", 2}}}}, {"objective", "rmse"}, {"validation", 0.25}};

  EXPECT_THAT(
      search_with(ensemble, {"complete", "complete"}),
      HasSubstr("Ensemble of 2 trials, which predicts in place of the best one: rmse 0.2500 "
                "of the validation rows\n"));
}

TEST(ResultText, BeginsWithWhatNoChoiceHasMadeBetter) {
  const Json metrics = Json::array({{{"name", "rmse"}, {"better", "lower"}}});
  const std::string text =
      table_of({{"validation",
                 {{"loss", 0.2},
                  {"sample_count", 8},
                  {"metrics", {{"rmse", 0.1}}},
                  {"metric_list", metrics}}},
                {"test",
                 {{"loss", nullptr},
                  {"sample_count", 5},
                  {"metrics", {{"rmse", 0.3}}},
                  {"metric_list", metrics}}},
                {"search",
                 {{"best_trial", 0},
                  {"trials", {{{"number", 0}, {"state", "complete"}, {"params", Json::object()}}}},
                  {"ended", {{"reason", "trials"}}},
                  {"ensemble",
                   {{"members", {{{"trial", 1}}, {{"trial", 2}}}},
                    {"objective", "rmse"},
                    {"validation", 0.1},
                    {"best_trial_test", {{"rmse", 0.4}}}}}}}});

  EXPECT_THAT(
      text, ::testing::StartsWith("Test (the ensemble, on 5 rows that neither trained nor chose)\n"
                                  "  rmse     0.3000  (best trial alone 0.4000)\n"
                                  "Result"));
}

TEST(ResultText, SaysWhyThereIsNoEnsemble) {
  EXPECT_THAT(search_with(nullptr, {"paused", "failed", "complete"}),
              HasSubstr("No ensemble: of 3 trials, only one was trained to its end\n"));
  EXPECT_THAT(search_with(nullptr, {"paused", "paused"}, "time"),
              HasSubstr("No ensemble: of 2 trials, none was trained to its end\n"));
  EXPECT_THAT(search_with(nullptr, {"complete"}), HasSubstr("No ensemble: only one trial\n"));
  EXPECT_THAT(search_with(nullptr, {"complete", "complete"}, "time"),
              HasSubstr("No ensemble: no other trial makes the best one better, or there was no "
                        "time to train one\n"));
  EXPECT_THAT(search_with(nullptr, {"complete", "complete"}),
              HasSubstr("No ensemble: no other trial makes the best one better\n"));
}

TEST(ResultText, ShowsTheValuesOfTheBestTrial) {
  Json result = {{"validation", {{"loss", 0.25}, {"sample_count", 8}}}, {"total_epochs", 2}};
  result["search"] = {
      {"objectives", Json::array({{{"name", "val_loss"}, {"direction", "minimize"}}})},
      {"best_trial", 1},
      {"trials",
       {{{"number", 0}, {"state", "failed"}, {"params", {{"optimizer.learning_rate", 9}}}},
        {{"number", 1},
         {"state", "complete"},
         {"values", Json::array({0.5})},
         {"params", {{"model.hidden", {8, 8}}, {"optimizer.learning_rate", 0.1}}}}}}};

  const std::string text = table_of(result);

  EXPECT_THAT(text,
              HasSubstr("Search (trial 1, the best of 2, of which 1 failed: val_loss 0.5000)\n"));
  EXPECT_THAT(text, HasSubstr("model.hidden"));
  EXPECT_THAT(text, HasSubstr("[8,8]\n"));
}

TEST(ResultText, HintsAtShardsWhereWorkersWereIdle) {
  Json time = kTime;
  time["seconds"] = 20.0;
  time["shards"] = 1;
  time["phases"]["idle"] = 40.0;
  EXPECT_THAT(time_of({{"time", time}}), HasSubstr("\"resources\": {\"shards\""));

  time["shards"] = 2;
  EXPECT_THAT(time_of({{"time", time}}), Not(HasSubstr("shards")));
}

TEST(ResultText, ShowsASmallConfusionMatrix) {
  EvaluationResult result;
  result.loss = 0.5;
  result.metrics = {{"accuracy", 0.75, Direction::kHigherIsBetter}};
  result.sample_count = 4;
  result.tables.push_back(
      {"confusion_matrix", {"no", "yes"}, {"no", "yes"}, {{1, 1}, {0, 2}}, {}, {}, 0});

  EXPECT_EQ(evaluation_table(result, kPiped),
            "Result (on 4 rows)\n"
            "  loss         0.5000\n"
            "  accuracy     0.7500\n"
            "\n"
            "  actual  predicted\n"
            "             no    yes\n"
            "  no          1      1\n"
            "  yes         0      2\n");
}

TEST(ResultText, WritesFactsAsIndentedLines) {
  const Json facts{{"rows", 150},
                   {"class_names", {"a", "b"}},
                   {"inputs", {{{"name", "features"}, {"shape", {4}}}}},
                   {"choices", Json::array()}};

  EXPECT_EQ(facts_text(facts),
            "choices: none\n"
            "class names: a, b\n"
            "inputs:\n"
            "  - name: features\n"
            "    shape: 4\n"
            "rows: 150\n");
}

}  // namespace
}  // namespace treadle::cli
