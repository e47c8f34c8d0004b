#include <treadle/host/automl/table_reading.h>

#include <functional>
#include <string>
#include <utility>
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
  ColumnProfile shuffled = nameless;
  shuffled.is_rising = false;

  EXPECT_EQ(first(empty).reason, "no row has a value");
  ColumnProfile sparse = number_column("a");
  sparse.missing = kRows - 1;
  sparse.numbers = 1;
  sparse.distinct = 1;
  EXPECT_EQ(first(sparse).reason, "only 1 row has a value");
  EXPECT_EQ(first(constant).reason, "\"7\" in every row");
  EXPECT_EQ(first(counts).reason, "it counts the rows");
  EXPECT_EQ(first(nameless).reason, "it has no name and numbers the rows");
  EXPECT_EQ(first(shuffled).reason, "it has no name and numbers the rows");
  EXPECT_EQ(first(text_column("a", 90)).reason,
            "90 different texts in 100 rows: names or free text");
  for (const ColumnProfile& column :
       {empty, constant, counts, nameless, shuffled, text_column("a", 90)}) {
    EXPECT_EQ(first(column).use, ColumnUse::kLeftOut);
  }
  nameless.is_rising = false;
  nameless.distinct = 40;
  EXPECT_EQ(first(nameless).use, ColumnUse::kNumber) << "numbers that are there twice";
}

/// Numbers of a column from `least` to `greatest`.
ColumnProfile range(double least, double greatest, bool are_whole) {
  ColumnProfile column = number_column("a");
  column.least = least;
  column.greatest = greatest;
  column.integers = are_whole ? kRows : 0;
  return column;
}

// The steps of float32: 2^17 at 1.7e12, 2^-14 at 1000; of float64: 2 at 1e16.
TEST(TableReading, NumbersThatFloat32CannotTellApartNeedFloat64) {
  const auto reading = [](const ColumnProfile& column, ReadingOptions options = {"y"}) {
    return read({column, number_column("z"), number_column("y")}, std::move(options));
  };
  const TableReading fractions = reading(range(1000, 1000.01, false));

  EXPECT_EQ(fractions.columns[0].use, ColumnUse::kNumber);
  EXPECT_EQ(fractions.columns[0].reason,
            "numbers, 1000 to 1000.01; float32 is not enough for them, so all is computed in "
            "float64");
  EXPECT_TRUE(fractions.needs_float64);
  EXPECT_FALSE(reading(range(1000, 1001, false)).needs_float64);
  EXPECT_FALSE(reading(range(1.7e12, 1.71e12, true)).needs_float64);
  EXPECT_FALSE(reading(range(16777000, 16777010, true)).needs_float64) << "each is a float32";
  EXPECT_FALSE(reading(range(-1e36, 1e36, false)).needs_float64);
  EXPECT_TRUE(reading(range(-1e38, 1e38, false)).needs_float64);
  EXPECT_FALSE(reading(range(0, 1e-30, false)).needs_float64);
  EXPECT_TRUE(reading(range(0, 1e-40, false)).needs_float64);

  const TableReading names = reading(range(1700000000123, 1700000060000, true));
  EXPECT_EQ(names.columns[0].use, ColumnUse::kLeftOut);
  EXPECT_EQ(names.columns[0].reason,
            "whole numbers, 1700000000123 to 1700000060000, for which float32 is not enough: "
            "identifiers? To use them, in float64: --types a=number");
  EXPECT_FALSE(names.needs_float64);
  ColumnProfile repeated = range(1700000000123, 1700000060000, true);
  repeated.distinct = 30;
  EXPECT_TRUE(reading(repeated).needs_float64);
  const TableReading used =
      reading(range(1700000000123, 1700000060000, true), {"y", "auto", {}, {{"a", "number"}}});
  EXPECT_EQ(used.columns[0].use, ColumnUse::kNumber);
  EXPECT_TRUE(used.needs_float64);
}

TEST(TableReading, NumbersBeyondFloat64AreLeftOutAndNoTarget) {
  const ColumnReading large = first(range(-1e300, 1e300, true));
  ColumnProfile target = range(-1e300, 1e300, true);
  target.name = "y";

  EXPECT_EQ(large.use, ColumnUse::kLeftOut);
  EXPECT_EQ(large.reason,
            "whole numbers, -1e+300 to 1e+300, too large to compute with; divide them");
  EXPECT_EQ(first(range(0, 1e-300, false)).reason,
            "numbers, 0 to 1e-300, too small to compute with; multiply them");
  EXPECT_EQ(first(range(1e16, 1e16 + 200, true)).reason,
            "whole numbers, 10000000000000000 to 10000000000000200, too close together for "
            "float64; subtract "
            "what they have in common");
  EXPECT_EQ(complaint([&] {
              read({number_column("a"), target});
            }),
            "x.csv: the target \"y\" has numbers too large to compute with; divide them");
  target.greatest = 1e38;
  target.least = -1e38;
  const TableReading table = read({number_column("a"), target});
  EXPECT_TRUE(table.needs_float64);
  EXPECT_EQ(table.columns[1].reason,
            "float32 is not enough for them, so all is computed in float64");
}

TEST(TableReading, NumbersWithLeadingZerosAreCodes) {
  ColumnProfile zip = number_column("a");
  zip.integers = kRows;
  zip.padded = 1;
  zip.distinct = 12;

  EXPECT_EQ(first(zip).use, ColumnUse::kCategory);
  EXPECT_EQ(first(zip).reason,
            "12 different codes: they have leading zeros; for numbers, use --types a=number");
  EXPECT_EQ(first(zip, {"y", "auto", {}, {{"a", "number"}}}).use, ColumnUse::kNumber);
  ColumnProfile quoted = zip;
  quoted.name = "it's \"a, b\"";
  EXPECT_THAT(first(quoted).reason, HasSubstr(R"(--types '"it'\''s ""a, b""=number"')"))
      << "as a shell and CSV quote";
  zip.integers = kRows - 1;
  EXPECT_EQ(first(zip).use, ColumnUse::kNumber) << "some have fractions";
  zip.integers = kRows;
  zip.distinct = kRows;
  EXPECT_EQ(first(zip).use, ColumnUse::kLeftOut);
}

/// What is said of a column of a few texts.
std::string said_of(const std::vector<std::string>& texts) {
  ColumnProfile column = text_column("a", 3);
  column.odd_texts.clear();
  for (const std::string& text : texts)
    column.odd_texts.push_back({text, kRows / static_cast<std::int64_t>(texts.size())});
  return first(column).reason;
}

TEST(TableReading, SaysHowToWriteNumbersOfAnotherForm) {
  EXPECT_EQ(said_of({"1,5", "0,25", "1.000,75"}),
            "3 different texts: numbers with a decimal comma, such as \"1,5\"; write 1.5");
  EXPECT_EQ(said_of({"1,234", "2,500,000"}),
            "3 different texts: numbers with commas between thousands, such as \"1,234\"; write "
            "1234");
  EXPECT_EQ(said_of({"1,234", "6,998"}),
            "3 different texts: numbers with a comma, such as \"1,234\"; write 1.234 if it is a "
            "decimal comma, or 1234 if it is between thousands");
  EXPECT_EQ(said_of({"0,234", "6,998"}),
            "3 different texts: numbers with a decimal comma, such as \"0,234\"; write 0.234");
  EXPECT_EQ(said_of({"14%", "2.5 %"}), "3 different texts: percentages, such as \"14%\"; write 14");
  EXPECT_EQ(said_of({"$1,200", "$7.50"}),
            "3 different texts: amounts of money, such as \"$1,200\"; write 1200");
  EXPECT_EQ(said_of({"1.234,50 €", "-3 €"}),
            "3 different texts: amounts of money, such as \"1.234,50 €\"; write 1234.50");
  EXPECT_EQ(said_of({"12 kg", "7.5 kg"}),
            "3 different texts: numbers with the unit \"kg\", such as \"12 kg\"; write 12");
  EXPECT_EQ(said_of({"1 234 567", "12 000"}),
            "3 different texts: numbers with gaps between thousands, such as \"1 234 567\"; write "
            "1234567");
  EXPECT_EQ(said_of({"1,5", "-", "n/a"}),
            "3 different texts: numbers with a decimal comma, such as \"1,5\"; write 1.5");
  for (const std::vector<std::string>& texts : {std::vector<std::string>{"1,5", "red"},
                                                {"1st", "2nd"},
                                                {"12 kg", "12 g"},
                                                {"1-2-3", "4-5-6-7"},
                                                {"%", "$"}}) {
    EXPECT_EQ(said_of(texts), "3 different texts");
  }
}

TEST(TableReading, SaysHowToWriteDatesOfAnotherForm) {
  EXPECT_EQ(said_of({"1.3.2020", "13.7.2020"}),
            "3 different texts: dates with the day first, such as \"13.7.2020\"; write 2020-07-13");
  EXPECT_EQ(said_of({"1/3/20", "07/13/20 10:00"}),
            "3 different texts: dates with the month first, such as \"07/13/20 10:00\"; write "
            "2020-07-13T10:00");
  EXPECT_EQ(
      said_of({"7/13/2020 10:00:00 PM"}),
      "3 different texts: dates with the month first, such as \"7/13/2020 10:00:00 PM\"; write "
      "2020-07-13");
  EXPECT_EQ(said_of({"12/03/2020", "1/2/2020"}),
            "3 different texts: dates, such as \"12/03/2020\"; write 2020-03-12 if the day is "
            "first, or 2020-12-03 if the month is");
  EXPECT_EQ(said_of({"13/7/2020", "7/14/2020"}),
            "3 different texts: dates, some with the day first, such as \"13/7/2020\", some with "
            "the month first, such as \"7/14/2020\"; write 2020-07-13 and 2020-07-14");
  EXPECT_EQ(said_of({"2020/3/12"}),
            "3 different texts: dates, such as \"2020/3/12\"; write 2020-03-12");
  EXPECT_EQ(said_of({"2020-01-17 10:00:00 UTC"}),
            "3 different texts: dates, such as \"2020-01-17 10:00:00 UTC\"; write "
            "2020-01-17T10:00:00");
  EXPECT_EQ(said_of({"2020-03"}),
            "3 different texts: months, such as \"2020-03\"; write a day of it, 2020-03-01");
  EXPECT_EQ(said_of({"12 Mar 2020", "March 3, 2021"}),
            "3 different texts: dates, such as \"12 Mar 2020\"; write them as 2024-02-29");
  EXPECT_EQ(said_of({"12:30", "7:05 pm"}),
            "3 different texts: times, such as \"12:30\"; write numbers, such as minutes");
}

TEST(TableReading, SaysWhichCategoriesDifferInCaseOnly) {
  EXPECT_EQ(said_of({"Yes", "no", "yes", "No"}),
            "3 different texts; \"Yes\" and \"yes\" differ in case only");
  ColumnProfile target = text_column("y", 3);
  target.odd_texts = {{"Yes", 40}, {"no", 40}, {"YES", 20}};
  EXPECT_EQ(read({number_column("a"), target}).task_reason,
            "3 different texts; \"Yes\" and \"YES\" differ in case only");
}

TEST(TableReading, AFewTextsAmongNumbersAreNamed) {
  ColumnProfile column = number_column("a");
  column.numbers = kRows - 2;
  column.odd_texts = {{"Total", 2}};
  ColumnProfile target = column;
  target.name = "y";
  const std::string hint =
      "numbers but for 2 rows, which have \"Total\"; remove such rows, or take the text for "
      "missing "
      "with --set data.missing_values='[\"\",\"NA\",\"Total\"]'";

  EXPECT_EQ(first(column).reason, "100 different texts in 100 rows: " + hint);
  EXPECT_EQ(complaint([&] {
              read({number_column("a"), target});
            }),
            "x.csv: the target \"y\" has 100 different values in 100 rows; a class needs several "
            "rows to learn from. They are " +
                hint);
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

TEST(TableReading, ASingleTextIsCountedAsOne) {
  ColumnProfile column = text_column("a", 1);
  column.missing = 50;

  EXPECT_EQ(first(column).reason, "1 text");
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
  ColumnProfile nameless = number_column("column_0");
  nameless.has_name = false;
  EXPECT_EQ(
      complaint([&] {
        ColumnProfile other = nameless;
        other.name = "column_1";
        read({nameless, other});
      }),
      "x.csv: there is no column \"y\" for --target; the first line is a row, not a header; the "
      "columns are column_0, column_1");
  EXPECT_THAT(complaint([] {
                first(number_column("a"), {"y", "auto", {"y"}});
              }),
              HasSubstr("\"y\" is the target"));
}

TEST(TableReading, WhereNoColumnIsLeftTheRemedyIsOneThatHelps) {
  ColumnProfile constant = number_column("a");
  constant.distinct = 1;
  constant.frequent = {{"7", kRows}};

  EXPECT_EQ(complaint([&] {
              read({constant, number_column("y")});
            }),
            "x.csv: no column is left to predict \"y\" from; \"a\": \"7\" in every row");
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
  EXPECT_EQ(
      complaint([&] {
        read({text_column("a", 90), number_column("y")});
      }),
      "x.csv: no column is left to predict \"y\" from; \"a\": 90 different texts in 100 "
      "rows: names or free text. To use one as it is, say what it is: --types COLUMN=category");
  EXPECT_EQ(complaint([&] {
              read({number_column("a"), date_column("y", 0)});
            }),
            "x.csv: the target \"y\" has 100 different values in 100 rows; a class needs several "
            "rows to learn from. Dates cannot be predicted; numbers can, such as days from another "
            "date");
  EXPECT_EQ(
      complaint([&] { read({number_column("a b y")}, {"y"}); }),
      "x.csv: there is one column only, \"a b y\", and nothing to predict it from; if the "
      "columns are separated by something else than a comma, a semicolon, a tab or \"|\", add "
      "--set data.separator=CHARACTER");
  EXPECT_THAT(complaint([&] {
                read({number_column("y"), number_column("y")});
              }),
              HasSubstr("two columns are named \"y\""));
}

}  // namespace
}  // namespace treadle::automl
