#include "terminal/table_text.h"

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

}  // namespace
}  // namespace treadle::cli
