#include "table_text.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

automl::TableReading towns() {
  automl::TableReading table;
  table.place = "towns.csv";
  table.rows = 9;
  table.task = automl::TableTask::kRegression;
  table.task_reason = "numbers with fractions";
  table.target = 1;
  ColumnProfile town;
  town.name = "town\x1b[1m";
  town.missing = 2;
  ColumnProfile price;
  price.name = "price";
  price.distinct = 9;
  table.columns = {{town, 0, automl::ColumnUse::kLeftOut, "very many different texts"},
                   {price, 1, automl::ColumnUse::kTarget, ""}};
  return table;
}

TEST(TableText, ListsColumnsWithTypeMissingValuesLevelsAndReason) {
  EXPECT_EQ(table_text(towns(), Terminal(-1, false, false)),
            "towns.csv: 9 rows, 2 columns\n"
            "  column         type      missing  levels  why\n"
            "  town\\u001b[1m  left out        2    many  very many different texts\n"
            "  price          target          -       9\n"
            "Task  regression of price: numbers with fractions\n");
}

TEST(TableText, IsAnObjectForPrograms) {
  const Json table = table_json(towns());

  EXPECT_EQ(table.at("columns").at(0).at("type"), "left out");
  EXPECT_FALSE(table.at("columns").at(0).contains("levels"));
  EXPECT_EQ(table.at("columns").at(1).at("levels"), 9);
  EXPECT_EQ(table.at("task"), "regression");
}

TEST(TableText, CountsOneRowAsOne) {
  automl::TableReading table = towns();
  table.rows = 1;

  EXPECT_THAT(table_text(table, Terminal(-1, false, false)),
              ::testing::StartsWith("towns.csv: 1 row, 2 columns\n"));
  table.parameters["header"] = false;
  EXPECT_THAT(table_text(table, Terminal(-1, false, false)),
              ::testing::StartsWith("towns.csv: 1 row, 2 columns, no header line\n"));
}

TEST(TableText, AnEnsembleIsALine) {
  const Json ensemble{{"members", {1, 2}}, {"objective", "rmse"}, {"validation", 0.25}};

  EXPECT_EQ(model_text({{"search", {{"ensemble", ensemble}}}}, {{"ensemble", {{"size", 16}}}}),
            "Ensemble  2 models, rmse 0.2500 on rows they were not trained on\n");
}

TEST(TableText, AModelAloneSaysWhyThereIsNoEnsemble) {
  const auto said = [](const std::vector<std::string>& states, const Json& more) {
    Json trials = Json::array();
    for (const std::string& state : states)
      trials.push_back({{"state", state}});
    Json search{{"ensemble", {{"size", 16}}}};
    search.update(more);
    return model_text({{"search", {{"best_trial", 1}, {"trials", std::move(trials)}}}}, search);
  };
  const Json time{{"budget", {{"time", "1min"}}}};

  EXPECT_EQ(said({"paused", "complete", "failed"}, Json::object()),
            "Model   trial 1 alone: of 3 trials, only this one was trained to its end, and an "
            "ensemble is of several; give more --trials\n");
  EXPECT_EQ(said({"paused", "paused"}, time),
            "Model   trial 1 alone: of 2 trials, none was trained to its end, and an ensemble is "
            "of several; give more --time\n");
  EXPECT_EQ(said({"complete"}, Json::object()),
            "Model   trial 1 alone: there was no other; an ensemble is of several\n");
  EXPECT_EQ(said({"complete", "complete"}, time),
            "Model   trial 1 alone: the time was not enough to train several models; give more "
            "--time\n");
  EXPECT_EQ(said({"complete", "complete"}, Json::object()),
            "Model   trial 1 alone: no other trial makes it better\n");
  EXPECT_EQ(
      model_text({{"search", {{"best_trial", 0}, {"trials", Json::array()}}}}, Json::object()),
      "Model   trial 0 alone: the document asks for no \"ensemble\"\n");
}

}  // namespace
}  // namespace treadle::cli
