#include <treadle/table/table_data.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/local_times.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/source_hash.h>

#include "listed_table.h"

namespace treadle::table {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::vector<Cell>> numbers(std::size_t rows) {
  std::vector<std::vector<Cell>> list;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto value = static_cast<double>(row);
    list.push_back({value / 3, value * 1e9, -value, value + 0.5});
  }
  return list;
}

TEST(TableData, HasTheSameBitsByRowAndByColumn) {
  ListedData by_row({{"a", "b", "c", "y"}, numbers(2000)});
  ListedData by_column({{"a", "b", "c", "y"}, numbers(2000), true});
  by_row.open({});
  by_column.open({});

  EXPECT_EQ(by_column.content_hash(), by_row.content_hash());
  EXPECT_EQ(by_column.ask<SourceHash>()->source_hash(), by_row.ask<SourceHash>()->source_hash());
}

TEST(TableData, AppliesItsRulesToChunksAsToRows) {
  std::vector<std::vector<Cell>> rows = numbers(9);
  rows[4][1] = {};
  rows[7][2] = kNan;
  ListedData data({{"a", "b", "c", "y"}, rows, true}, {{"missing", "drop_row"}});
  data.open({});

  EXPECT_EQ(data.ask<RowReader>()->rows(), 7);
  EXPECT_EQ(data.ask<RowReader>()->describe_row(4), "the list, row 6");

  rows[4][1] = kInfinity;
  ListedData infinite({{"a", "b", "c", "y"}, rows, true}, {{"missing", "drop_row"}});
  EXPECT_EQ(message_of([&] { infinite.open({}); }),
            "the list, row 5: column \"b\": got \"inf\": infinity cannot be trained on");
}

TEST(TableData, TakesNumbersThatStandForMissingValues) {
  ListedData data({{"a", "y"}, {{1.5, 0.5}, {-999.0, 1.5}, {std::int64_t{-999}, 2.5}, {2.5, 3.5}}},
                  {{"missing", "nan"}, {"missing_values", {"-999"}}});
  data.open({});

  const std::vector<double> values = values_of(all_rows(data).inputs[0]);
  EXPECT_EQ(values[0], 1.5);
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_EQ(values[3], 2.5);
}

TEST(TableData, TakesNumbersAsTheTextsOfCategoriesAndClasses) {
  ListedData data({{"kind", "y"},
                   {{3.0, std::int64_t{9007199254740993}},
                    {std::int64_t{3}, std::int64_t{9007199254740992}},
                    {std::string("3.0"), std::int64_t{9007199254740992}},
                    {std::int64_t{-1}, std::int64_t{9007199254740993}}}},
                  {{"categorical", {"kind"}}});
  OpenRequest request;
  request.task = Task::kClassification;
  data.open(request);

  EXPECT_THAT(data.spec().inputs[0].columns[0].categories, ElementsAre("-1", "3"));
  EXPECT_THAT(values_of(all_rows(data).inputs[0]), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(data.spec().targets[0].class_names,
              ElementsAre("9007199254740992", "9007199254740993"));
}

TEST(TableData, TakesTimestampsAsTheDatesThatTheyAre) {
  const Json parameters = {{"dates", {"d"}}, {"time", "t"}, {"target", "y"}};
  // 2016-07-01T00:15:30Z; 2016-06-30T22:15:30Z on a clock two hours ahead.
  constexpr std::int64_t kFirst = 1467332130;
  ListedData typed({{"d", "t", "y"},
                    {{Timestamp{kFirst}, Timestamp{kFirst - 7200, 0, 7200}, 1.5},
                     {Timestamp{-86400}, Timestamp{kFirst, 500'000'000}, 2.5}}},
                   parameters);
  ListedData written(
      {{"d", "t", "y"},
       {{std::string("2016-07-01T00:15:30"), std::string("2016-07-01T00:15:30+02:00"), 1.5},
        {std::string("1969-12-31"), std::string("2016-07-01 00:15:30.5"), 2.5}}},
      parameters);
  typed.open({});
  written.open({});

  EXPECT_EQ(typed.content_hash(), written.content_hash());
  EXPECT_THAT(values_of(typed.ask<LocalTimes>()->utc_offsets()), ElementsAre(7200, 0));
  EXPECT_THAT(typed.ask<SourceColumns>()->texts({"t"})[0],
              ElementsAre("2016-07-01T00:15:30+02:00", "2016-07-01T00:15:30.500000000"));
}

TEST(TableData, ListsTheFirstFiveBadRowsWithTheirPlaces) {
  std::vector<std::vector<Cell>> rows(7, {std::string("x"), 1.5});
  rows.push_back({1.5, 2.5});
  ListedData data({{"a", "y"}, rows});

  const std::string message = message_of([&] { data.open({}); });
  EXPECT_THAT(message, ::testing::StartsWith("the list, row 1: column \"a\": expected a number, "
                                             "got \"x\""));
  EXPECT_THAT(message, ::testing::HasSubstr("the list, row 5: "));
  EXPECT_THAT(message, ::testing::EndsWith("\nand 2 more"));
}

TEST(TableData, IgnoresMissingValuesOfColumnsWithoutAUse) {
  ListedData data({{"a", "b", "y"}, {{1.0, "NA", 2.0}, {3.0, {}, 4.5}, {5.0, "text", 6.0}}},
                  {{"columns", {"a"}}, {"target", "y"}});
  data.open({});

  EXPECT_THAT(values_of(all_rows(data).inputs[0]), ElementsAre(1, 3, 5));
}

TEST(TableData, KeepsTextsOfTheRowsThatStayed) {
  ListedData data(
      {{"id", "a", "y"},
       {{std::string("p"), 1.0, 0.5}, {std::string("q"), {}, 0.5}, {std::int64_t{7}, 2.5, 0.5}}},
      {{"columns", {"a"}}, {"missing", "drop_row"}});
  data.open({});

  EXPECT_THAT(data.ask<SourceColumns>()->texts({"id", "a"}),
              ElementsAre(ElementsAre("p", "7"), ElementsAre("1", "2.5")));
  data.table().rows.pop_back();
  EXPECT_EQ(message_of([&] { data.ask<SourceColumns>()->texts({"id"}); }),
            "the list: was changed while it was read, or can only be read once");
}

}  // namespace
}  // namespace treadle::table
