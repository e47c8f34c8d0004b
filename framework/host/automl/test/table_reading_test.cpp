#include <treadle/host/automl/table_reading.h>

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "test/profiles.h"

namespace treadle::automl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TableReading read(std::vector<ColumnProfile> columns, ReadingOptions options = {"y"}) {
  return read_table(table_of(std::move(columns)), options, "x.csv");
}

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// The use of the first column, with a target of numbers behind it.
ColumnReading first(ColumnProfile column, ReadingOptions options = {"y"}) {
  const std::string name = column.name;
  return read({std::move(column), number_column("z"), number_column("y")}, std::move(options))
      .columns[0];
}

TEST(TableReading, TakesNumbersDatesAndTextsForWhatTheyAre) {
  const ColumnReading number = first(number_column("a"));
  const ColumnReading date = first(date_column("a", 30));
  const ColumnReading category = first(text_column("a", 3));

  EXPECT_EQ(number.use, ColumnUse::kNumber);
  EXPECT_EQ(number.reason, "numbers, 0.5 to 99.5");
  EXPECT_EQ(date.use, ColumnUse::kDate);
  EXPECT_EQ(date.reason, "dates with a time of day");
  EXPECT_EQ(category.use, ColumnUse::kCategory);
  EXPECT_EQ(category.reason, "3 different texts");
}

TEST(TableReading, LeavesOutWhatCannotHelpAndSaysWhy) {
  ColumnProfile empty = number_column("a");
  empty.missing = kRows;
  empty.numbers = empty.integers = 0;
  empty.distinct = 0;
  ColumnProfile constant = number_column("a");
  constant.distinct = 1;
  constant.frequent = {{"7", kRows}};
  ColumnProfile counts = number_column("a");
  counts.integers = kRows;
  counts.is_rising = true;
  counts.least = 1;
  counts.greatest = kRows;
  ColumnProfile nameless = counts;
  nameless.has_name = false;
  nameless.greatest = 5 * kRows;

  EXPECT_EQ(first(empty).reason, "no row has a value");
  EXPECT_EQ(first(constant).reason, "\"7\" in every row");
  EXPECT_EQ(first(counts).reason, "it counts the rows");
  EXPECT_EQ(first(nameless).reason, "it has no name and counts the rows");
  EXPECT_EQ(first(text_column("a", 90)).reason,
            "90 different texts in 100 rows: names or free text");
  for (const ColumnProfile& column : {empty, constant, counts, nameless, text_column("a", 90)})
    EXPECT_EQ(first(column).use, ColumnUse::kLeftOut);
}

TEST(TableReading, MarksOfMissingValuesDoNotMakeACategory) {
  ColumnProfile column = number_column("a");
  column.numbers = kRows - 3;
  column.odd_texts = {{"n/a", 2}, {"-", 1}};
  const TableReading table = read({column, number_column("y")});

  EXPECT_EQ(table.columns[0].use, ColumnUse::kNumber);
  EXPECT_EQ(table.columns[0].profile.missing, 3);
  EXPECT_THAT(table.columns[0].reason, HasSubstr("\"n/a\", \"-\" are taken for missing"));
  EXPECT_THAT(table.missing_values, ElementsAre("", "NA", "n/a", "-"));
  column.odd_texts = {{"n/a", 2}, {"red", 1}};
  column.distinct = 20;
  EXPECT_EQ(read({column, number_column("y")}).columns[0].use, ColumnUse::kCategory);
}

TEST(TableReading, GuessesTheTaskAndTakesAnother) {
  ColumnProfile few = number_column("y");
  few.integers = kRows;
  few.distinct = 3;
  ColumnProfile many = few;
  many.distinct = 21;

  EXPECT_EQ(read({number_column("a"), number_column("y")}).task, TableTask::kRegression);
  EXPECT_EQ(read({number_column("a"), few}).task, TableTask::kClassification);
  EXPECT_EQ(read({number_column("a"), many}).task, TableTask::kRegression);
  EXPECT_EQ(read({number_column("a"), text_column("y", 2)}).task, TableTask::kClassification);
  EXPECT_EQ(read({number_column("a"), few}, {"y", "regression"}).task, TableTask::kRegression);
  few.distinct = 15;
  few.missing = kRows - 29;
  few.numbers = few.integers = 29;
  EXPECT_EQ(read({number_column("a"), few}).task, TableTask::kRegression) << "two rows of each";
  ColumnProfile marked = number_column("y");
  marked.numbers = kRows - 2;
  marked.odd_texts = {{"n/a", 2}};
  const TableReading regression = read({number_column("a"), marked});
  EXPECT_EQ(regression.task, TableTask::kRegression);
  EXPECT_EQ(regression.rows, kRows - 2);
  EXPECT_EQ(regression.columns[1].reason,
            "2 rows without it are left out; \"n/a\" is taken for missing");
  EXPECT_EQ(read({number_column("a"), many}, {"-1", "classification"}).task,
            TableTask::kClassification);
}

TEST(TableReading, OptionsDecideAboutColumns) {
  EXPECT_EQ(first(number_column("a"), {"y", "auto", {"a"}}).reason, "as --drop says");
  EXPECT_EQ(first(number_column("a"), {"y", "auto", {}, {{"a", "category"}}}).use,
            ColumnUse::kCategory);
  EXPECT_EQ(complaint([] {
              first(text_column("a", 3), {"y", "auto", {}, {{"a", "date"}}});
            }),
            "x.csv: column \"a\" is to be a date, but has texts such as \"t0\"; dates are written "
            "as 2024-02-29 or 2024-02-29T12:00");
  EXPECT_EQ(complaint([] {
              first(number_column("a"), {"y", "auto", {"A"}});
            }),
            "x.csv: there is no column \"A\" for --drop; the columns are a, z, y; did you mean "
            "\"a\"?");
  EXPECT_THAT(complaint([] {
                first(number_column("a"), {"y", "auto", {"y"}});
              }),
              HasSubstr("\"y\" is the target"));
}

TEST(TableReading, TablesThatTeachNothingAreRefused) {
  ColumnProfile constant = number_column("y");
  constant.distinct = 1;
  constant.frequent = {{"7", kRows}};
  ColumnProfile sparse = number_column("y");
  sparse.missing = kRows - 9;
  sparse.numbers = 9;
  ColumnProfile absent = sparse;
  absent.missing = kRows;
  TableProfile empty = table_of({number_column("a"), number_column("y")});
  empty.rows = 0;

  EXPECT_EQ(complaint([&] { read_table(empty, {"y"}, "x.csv"); }), "x.csv: there is no row");
  EXPECT_EQ(complaint([&] {
              read({number_column("a"), absent});
            }),
            "x.csv: no row has a value of the target \"y\"");
  EXPECT_EQ(complaint([&] {
              read({number_column("a"), sparse});
            }),
            "x.csv: 9 rows have a value of the target \"y\"; at least 10 are needed, to train on "
            "some and validate with the others");
  EXPECT_EQ(complaint([&] {
              read({number_column("a"), constant});
            }),
            "x.csv: the target \"y\" is \"7\" in every row; there is nothing to learn from one "
            "value");
  EXPECT_EQ(complaint([&] {
              read({number_column("a"), text_column("y", 80)});
            }),
            "x.csv: the target \"y\" has 80 different values in 100 rows; a class needs several "
            "rows to learn from. Is it the right column? For numbers, use --task regression");
  EXPECT_EQ(complaint([&] {
              read({text_column("a", 90), number_column("y")});
            }),
            "x.csv: no column is left to predict \"y\" from; \"a\": 90 different texts in 100 "
            "rows: names or free text. To use one, say what it is: --types COLUMN=category");
  EXPECT_THAT(complaint([&] {
                read({number_column("y"), number_column("y")});
              }),
              HasSubstr("two columns are named \"y\""));
}

}  // namespace
}  // namespace treadle::automl
