#include "written_form.h"

#include <gmock/gmock.h>

#include "csv_fixture.h"

namespace treadle::csv {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

class WrittenFormTest : public CsvFixture {
 protected:
  TableProfile profile(std::string_view text, const Json& parameters = Json::object()) const {
    write(text);
    return make(parameters)->ask<TableProfiler>()->profile();
  }
  std::string complaint(std::string_view text) const {
    return message_of([&] { profile(text); });
  }
  static std::vector<std::string> names(const TableProfile& profile) {
    std::vector<std::string> names;
    for (const ColumnProfile& column : profile.columns)
      names.push_back(column.name);
    return names;
  }
};

TEST_F(WrittenFormTest, CountsWhatIsInEachColumn) {
  const TableProfile table =
      profile("n,size,when,town\n1,2.5,2020-01-01,Ulm\n2,,2020-01-02T10:00,Bonn\n4,2.5,NA,Ulm\n");

  EXPECT_EQ(table.rows, 3);
  EXPECT_THAT(names(table), ElementsAre("n", "size", "when", "town"));
  const ColumnProfile& n = table.columns[0];
  EXPECT_EQ(n.numbers, 3);
  EXPECT_EQ(n.integers, 3);
  EXPECT_TRUE(n.is_rising);
  EXPECT_EQ(n.least, 1);
  EXPECT_EQ(n.greatest, 4);
  EXPECT_EQ(n.distinct, 3);
  const ColumnProfile& size = table.columns[1];
  EXPECT_EQ(size.missing, 1);
  EXPECT_EQ(size.integers, 0);
  EXPECT_FALSE(size.is_rising);
  EXPECT_EQ(size.distinct, 1);
  EXPECT_EQ(table.columns[2].dates, 2);
  EXPECT_EQ(table.columns[2].times, 1);
  EXPECT_THAT(table.columns[2].odd_texts, IsEmpty());
  EXPECT_THAT(table.columns[3].frequent,
              ElementsAre(Field(&CountedValue::text, "Ulm"), Field(&CountedValue::text, "Bonn")));
  EXPECT_EQ(table.columns[3].frequent[0].rows, 2);
  EXPECT_EQ(table.columns[3].rarest, 1);
  EXPECT_EQ(table.parameters, Json::object());
}

TEST_F(WrittenFormTest, FindsAnotherSeparatorAndAFileWithoutHeader) {
  EXPECT_EQ(profile("a;b\n1,5;2\n2,5;3\n").parameters,
            Json({{"separator", ";"}, {"decimal", ","}}));
  EXPECT_EQ(profile("a;b\n1.5;2\n2.5;3\n").parameters, Json({{"separator", ";"}}));
  EXPECT_EQ(profile("a\tb\n1\t2\n").parameters, Json({{"separator", "\t"}}));
  for (const char* separator : {";", ",", "\t", "^"}) {
    const std::string mark = separator;
    const TableProfile table = profile("sep=" + mark + "\r\na" + mark + "b\r\n1" + mark + "2\r\n");
    EXPECT_EQ(table.parameters, Json({{"separator", mark}, {"skip_rows", 1}}));
    EXPECT_THAT(names(table), ElementsAre("a", "b"));
  }
  const TableProfile numbers = profile("5.1,3,0\n4.9,3,1\n");
  EXPECT_EQ(numbers.parameters, Json({{"header", false}}));
  EXPECT_THAT(names(numbers), ElementsAre("column_0", "column_1", "column_2"));
  EXPECT_EQ(numbers.rows, 2);
  EXPECT_EQ(profile("0,0,5\n0,1,7\n").rows, 2) << "names are there twice";
  EXPECT_EQ(profile("2019,2020\n0,1\n").rows, 1) << "years are names";
  EXPECT_EQ(profile("a\n1\n2\n").rows, 2) << "one column";
}

TEST_F(WrittenFormTest, AFirstRowOfNumbersAndTextsIsDataWhereItsTextsAreValues) {
  const auto has_header = [&](std::string_view text) { return profile(text).parameters.empty(); };

  EXPECT_FALSE(has_header("5.1,3,setosa\n4.9,3,setosa\n4.7,2,virginica\n"));
  EXPECT_FALSE(has_header("39,gov,0\n40,gov,\n"));
  EXPECT_TRUE(has_header("0.25,0.5,label\n4.9,3,setosa\n4.7,2,virginica\n")) << "quantiles";
  EXPECT_TRUE(has_header("0,1,y\n4.9,3,y\n4.7,2,n\n")) << "numbered columns";
  EXPECT_TRUE(has_header("2019,y\nlow,y\nhigh,n\n")) << "a year above texts";
  EXPECT_TRUE(has_header("a,b\na,b\nb,a\n")) << "letters";
}

TEST_F(WrittenFormTest, CountsNumbersWithLeadingZeros) {
  const TableProfile table = profile("zip,size\n01067,0\n10115,0.5\n00012,-01\n");

  EXPECT_EQ(table.columns[0].padded, 2);
  EXPECT_EQ(table.columns[0].integers, 3);
  EXPECT_EQ(table.columns[1].padded, 0);
  std::string many = "zip\n";
  for (int i = 0; i < 2000; ++i)
    many += "0" + std::to_string(i) + "\n";
  EXPECT_EQ(profile(many).columns[0].distinct, 2000);
}

TEST_F(WrittenFormTest, ManyNumbersAndTextsAreNoLongerCounted) {
  std::string text = "number,text\n";
  for (int i = 0; i < 1025; ++i)
    text += std::to_string(i) + ",t" + std::to_string(i % 1025) + "\n";

  const TableProfile table = profile(text);

  EXPECT_EQ(table.columns[0].distinct, std::nullopt);
  EXPECT_TRUE(table.columns[0].is_rising);
  EXPECT_EQ(table.columns[1].distinct, 1025);
  EXPECT_EQ(table.columns[1].frequent.size(), ColumnProfile::kMostListed);
}

TEST_F(WrittenFormTest, OfTooManyTextsSomeAreExamples) {
  std::string text = "text\n";
  for (int i = 0; i < 70'000; ++i)
    text += "t" + std::to_string(i) + ",\n";

  const TableProfile table = profile(text, {{"separator", ";"}});

  EXPECT_EQ(table.columns[0].distinct, std::nullopt);
  EXPECT_EQ(table.columns[0].odd_texts.size(), ColumnProfile::kMostListed);
  EXPECT_EQ(table.columns[0].odd_texts[1].text, "t1,");
}

TEST_F(WrittenFormTest, AColumnWithoutNameIsOne) {
  const TableProfile table = profile(",a\n0,5\n1,6\n");

  EXPECT_FALSE(table.columns[0].has_name);
  EXPECT_EQ(table.columns[0].name, "column_0");
  EXPECT_TRUE(table.columns[1].has_name);
}

TEST_F(WrittenFormTest, WhatIsNoTableIsAnErrorWithItsLine) {
  EXPECT_EQ(complaint(""), "x.csv:1: the file is empty");
  EXPECT_EQ(complaint("a,b\n1,2\n3\n"),
            "x.csv:3: expected 2 fields, got 1; complete the line, or take it out");
  EXPECT_EQ(
      complaint("a,b\n1,2,\n"),
      "x.csv:2: expected 2 fields, got 3; put quotes around a field with \",\" in it, and where "
      "rows end with one, end the header line with one, too");
  EXPECT_EQ(complaint("made in May\na,b\n1,2\n"),
            "x.csv:2: expected 1 field, got 2; if the table begins below other lines, set "
            "\"skip_rows\" to how many these are");
  EXPECT_EQ(profile("a,b\n").rows, 0);
}

}  // namespace
}  // namespace treadle::csv
