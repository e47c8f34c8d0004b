#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csv_fixture.h"
#include "csv_source.h"

namespace treadle::csv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvFiles : public CsvFixture {
 protected:
  /// The parameter for these files.
  Json paths(const std::vector<std::string>& names) const {
    Json list = Json::array();
    for (const std::string& name : names)
      list.push_back(file(name).string());
    return {{"path", list}};
  }
};

/// Keeps texts with their places.
class TextSink final : public table::RowSink {
 public:
  explicit TextSink(std::size_t columns) : RowSink(columns) {
    wants_.assign(columns, Wants::kText);
  }

  std::string text;

 private:
  void do_begin_row() override { row_ = std::to_string(position() % 1000) + ":"; }
  void do_text(std::size_t, std::string_view value) override { row_ += std::string(value) + ","; }
  void do_missing(std::size_t) override {}
  void do_end_row() override { text += row_ + "\n"; }
  void do_bad_row(const std::string& sentence) override { text += sentence + "\n"; }

  std::string row_;
};

TEST_F(CsvFiles, AreReadOneAfterTheOther) {
  write("a,y\n1,10\n2,20\n", "part-1.csv");
  write("a,y\n3,30", "part-2.csv");
  write("a,y\n", "part-3.csv");
  write("a,y\n4,40\n", "part-4.csv");

  const auto listed = open(paths({"part-2.csv", "part-1.csv"}));
  const auto matched = open({{"path", file("part-*.csv").string()}});

  EXPECT_THAT(features(*listed), ElementsAre(3, 1, 2));
  EXPECT_THAT(features(*matched), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(targets(*matched), ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(rows(*matched).describe_row(2), HasSubstr("part-2.csv:2"));
  EXPECT_THAT(rows(*matched).describe_row(3), HasSubstr("part-4.csv:2"));
  const auto* const texts = matched->ask<SourceColumns>();
  EXPECT_THAT(texts->texts({"y"})[0], ElementsAre("10", "20", "30", "40"));
  EXPECT_EQ(matched->ask<TableProfiler>()->profile().rows, 4);
  // The hash is one of all files in their order.
  EXPECT_NE(matched->ask<SourceHash>()->source_hash(), listed->ask<SourceHash>()->source_hash());
}

TEST_F(CsvFiles, NameTheirFirstDifference) {
  write("a,town,y\n1,2,3\n", "1.csv");
  const auto with = [&](std::string_view text) {
    write(text, "2.csv");
    return message_of([&] { open(paths({"1.csv", "2.csv"})); });
  };
  const std::string remedy = "; all files of \"path\" need the same columns in the same order";

  EXPECT_EQ(with("a,towm,y\n1,2,3\n"),
            "2.csv:1: column 2 is \"towm\", but \"town\" in 1.csv" + remedy);
  EXPECT_EQ(with("a,y\n1,2\n"), "2.csv:1: expected 3 columns as in 1.csv, got 2" + remedy);
  EXPECT_EQ(with("a;town;y\n1;2;3\n"),
            "2.csv:1: the line has one field, \"a;town;y\"; the separator seems to be \";\". Set "
            "\"separator\": \";\"");
  EXPECT_EQ(with(""), "2.csv: the file is empty; it must begin with the header line of 1.csv");
  EXPECT_EQ(with("a,town,y\n1,2,3\n1,2\n"), "2.csv:3: expected 3 fields, got 2");
  EXPECT_EQ(with("a,town,y\n1,2,3\n1,x,3\n"),
            "2.csv:3: column \"town\": expected a number, got \"x\"; list the column in "
            "\"categorical\" or the text in \"missing_values\"");
  EXPECT_THAT(message_of([&] {
                open({{"path", file("*.tsv").string()}});
              }),
              HasSubstr("*.tsv: no file matches; "));
}

TEST_F(CsvFiles, CanBeReadAgainFromAnyRow) {
  write(
      "\xEF\xBB\xBF"
      "a,y\n1,10\n\n\"2\n\",20\n",
      "1.csv");
  write("a,y\n3,30\n4,40", "2.csv");
  CsvOptions options;
  options.paths = {file("?.csv").string()};
  CsvSource source(options, table::SourceUse::kTraining);
  ASSERT_EQ(source.columns().names.size(), 2U);
  const std::vector<std::string> all{"2:1,10,\n", "4:2\n,20,\n", "778:3,30,\n", "779:4,40,\n"};
  std::vector<table::TableSource::Bookmark> places;
  TextSink sink(2);
  do {
    places.push_back(source.bookmark());
  } while (source.read(sink, 1));

  EXPECT_EQ(sink.text, all[0] + all[1] + all[2] + all[3]);
  for (std::size_t first = places.size(); first-- > 0;) {
    source.go_to(places[first]);
    TextSink rest(2);
    source.read(rest);
    std::string expected;
    for (std::size_t row = first; row < all.size(); ++row)
      expected += all[row];
    EXPECT_EQ(rest.text, expected) << first;
  }
  EXPECT_THAT(source.place_of(places[2].position), HasSubstr("2.csv:2"));
  write("a,y\n3,30\n4,41,", "2.csv");
  EXPECT_THAT(message_of([&] { source.go_to(places[2]); }), HasSubstr("2.csv: was changed"));
}

// printf 'a,y\n3,30\n4,40' | gzip -n
TEST_F(CsvFiles, CanBeReadAgainWherePacked) {
  write(std::string(
            "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\xd4\xa9\xe4\x32\xd6\x31\x36\xe0\x32\xd1"
            "\x31\x31\x00\x00\x7b\x17\xae\xee\x0d\x00\x00\x00",
            33),
        "2.csv");
  CsvOptions options;
  options.paths = {file("2.csv").string()};
  CsvSource source(options, table::SourceUse::kTraining);
  if (message_of([&] { source.columns(); }).find("cannot unpack") != std::string::npos)
    GTEST_SKIP() << "needs a build with zlib";

  TextSink first(2);
  EXPECT_TRUE(source.read(first, 1));
  const table::TableSource::Bookmark second_row = source.bookmark();
  TextSink second(2);
  source.read(second);
  source.go_to(second_row);
  TextSink again(2);
  source.read(again);
  source.restart();
  TextSink all(2);
  source.read(all);

  EXPECT_EQ(first.text + second.text, "2:3,30,\n3:4,40,\n");
  EXPECT_EQ(again.text, second.text);
  EXPECT_EQ(all.text, first.text + second.text);
}

TEST_F(CsvFiles, MayHaveDecimalCommas) {
  const Json german{{"separator", ";"}, {"decimal", ","}, {"thousands", "."}};
  write("a;b;y\n1.234,5;-0,25;7\n12;1e-1;0,5\n");
  EXPECT_THAT(features(*open(german)), ElementsAre(1234.5, -0.25, 12, 0.1));
  EXPECT_THAT(targets(*open(german)), ElementsAre(7, 0.5));

  EXPECT_EQ(error("a;y\n1.5;2\n1,5;3\n", german),
            "x.csv:2: column \"a\": got \"1.5\", which is no number with the \"decimal\" \",\" and "
            "the \"thousands\" \".\"");
  EXPECT_EQ(error("a;y\n1,5;2\n;3\n", german),
            "x.csv:3: column \"a\": the value is missing; \"missing\": \"drop_row\" leaves such "
            "rows out, \"nan\" hands them to the transform \"impute\"");
  EXPECT_THAT(error("a,y\n1,2\n", {{"decimal", ","}}),
              HasSubstr("must be another character than \"separator\""));
  EXPECT_THAT(error("a;y\n1;2\n", {{"separator", ";"}, {"decimal", ","}, {"thousands", ","}}),
              HasSubstr("must be another character than \"decimal\""));
  EXPECT_THAT(error("a;y\n1;2\n", {{"separator", ";"}, {"decimal", "5"}}),
              HasSubstr("must be a sign that numbers have no other use for"));
}

// Sums over several pieces of a file: the notation costs no exactness.
TEST_F(CsvFiles, HaveTheSameNumbersInEveryNotation) {
  std::string plain = "a;y\n";
  std::string german = "a;y\n";
  for (int row = 1; row <= 100'000; ++row) {
    const std::string whole = std::to_string(row);
    const std::string fraction = std::to_string(row * 7919 % 1000);
    plain += whole + "." + fraction + ";1\n";
    german +=
        (row < 1000 ? whole
                    : whole.substr(0, whole.size() - 3) + "." + whole.substr(whole.size() - 3)) +
        "," + fraction + ";1\n";
  }
  write(plain, "plain.csv");
  write(german, "german.csv");

  Json parameters = paths({"plain.csv"});
  parameters["separator"] = ";";
  const std::string hash = open(parameters)->content_hash();
  parameters["path"] = file("german.csv").string();
  parameters["decimal"] = ",";
  parameters["thousands"] = ".";
  EXPECT_EQ(open(parameters)->content_hash(), hash);
}

TEST_F(CsvFiles, MayBeInOtherEncodings) {
  write(
      "gr\xF6\xDF"
      "e,y\n1,stra\xDF"
      "e\n2,b\n");
  const auto data = open({{"encoding", "latin1"}});
  EXPECT_EQ(data->spec().inputs[0].columns[0].name,
            "gr\xC3\xB6\xC3\x9F"
            "e");
  EXPECT_THAT(data->spec().targets[0].class_names, ElementsAre("b",
                                                               "stra\xC3\x9F"
                                                               "e"));

  EXPECT_EQ(error("a,y\n1,2\n3,\x81\n", {{"encoding", "windows-1252"}}),
            "x.csv:3: is not text in windows-1252 (byte 0x81); set \"encoding\" to the one that "
            "the file was written in");
  EXPECT_THAT(error("a,y\n1,2\n", {{"encoding", "utf-9"}}),
              HasSubstr("is \"utf-9\", which is unknown to iconv"));
  write(
      std::string("\xFF\xFE"
                  "a\0,\0y\0\n\0"
                  "1\0,\0"
                  "2\0\n\0",
                  18));
  EXPECT_THAT(features(*open()), ElementsAre(1));
}

// A table as spreadsheets in Germany export it is understood without a parameter.
TEST_F(CsvFiles, AreProfiledAsTheyAreWritten) {
  write(
      "Stra\xDF"
      "e;Preis;Tag\nUlmer;1.234,50;31.12.2023\nM\xFC"
      "hl;17,25;1.2.2024\n");
  const TableProfile table = make()->ask<TableProfiler>()->profile();

  EXPECT_EQ(table.parameters, Json({{"encoding", "windows-1252"},
                                    {"separator", ";"},
                                    {"decimal", ","},
                                    {"thousands", "."},
                                    {"date_format", "%d.%m.%Y"}}));
  EXPECT_EQ(table.columns[2].dates, 2);
  EXPECT_EQ(table.columns[0].name,
            "Stra\xC3\x9F"
            "e");
  EXPECT_EQ(table.columns[1].numbers, 2);
  EXPECT_EQ(table.columns[1].greatest, 1234.5);
  write("a,b\n1/2/2023,1\n2/3/2023,2\n");  // the day first, or the month
  EXPECT_EQ(make()->ask<TableProfiler>()->profile().parameters, Json::object());
}

TEST_F(CsvFiles, MayHaveDatesInOtherFormats) {
  write("day,at,y\n31.12.2023,1704067200000,1\n01.01.2024,1704153600500,2\n");
  const auto data = open({{"dates", {"day"}},
                          {"calendar", {"weekend"}},
                          {"time", "at"},
                          {"date_format", {{"day", "%d.%m.%Y"}, {"at", "unix_ms"}}},
                          {"target", "y"}});
  EXPECT_THAT(features(*data), ElementsAre(19722, 1, 19723, 0));  // a Sunday, a Monday
  EXPECT_THAT(values(rows(*data).timestamps()), ElementsAre(1704067200, 1704153600.5));
  EXPECT_TRUE(data->spec().has_dates);

  EXPECT_EQ(
      error("day,y\n2023-12-31,1\n", {{"dates", {"day"}}, {"date_format", "%d.%m.%Y"}}),
      "x.csv:2: column \"day\": expected a date as \"%d.%m.%Y\", got \"2023-12-31\"; list the "
      "column in \"categorical\" instead");
  EXPECT_EQ(error("day,a,y\n31.12.2023,1,1\n", {{"time", "day"}, {"target", "y"}}),
            "x.csv:2: column \"day\": expected a number or an ISO 8601 date or date and time, got "
            "\"31.12.2023\"; set \"date_format\", to \"%d.%m.%Y\" perhaps");
  EXPECT_THAT(error("a,y\n1,2\n", {{"date_format", "%Y"}}), HasSubstr("has no effect without"));
  EXPECT_THAT(error("a,y\n1,2\n", {{"dates", {"a"}}, {"date_format", {{"b", "%Y"}}}}),
              HasSubstr("names \"b\", which is none of the columns of"));
  EXPECT_THAT(error("a,y\n1,2\n", {{"dates", {"a"}}, {"date_format", "%d"}}),
              HasSubstr("gives no year"));
}

TEST_F(CsvFiles, MayHaveTimesOfAZone) {
  if (std::getenv("TZDIR") == nullptr &&
      !std::filesystem::exists("/usr/share/zoneinfo/Europe/Berlin")) {
    GTEST_SKIP() << "needs the package tzdata";
  }
  Json parameters{
      {"time", "at"}, {"target", "y"}, {"timezone", "Europe/Berlin"}, {"columns", {"a"}}};
  write("at,a,y\n2024-03-31 01:00,1,1\n2024-03-31 03:00,2,2\n2024-06-01T00:00Z,3,3\n");
  const auto data = open(parameters);
  EXPECT_THAT(values(rows(*data).timestamps()),
              ElementsAre(1711843200, 1711846800, 1717200000));  // one hour between the first two
  EXPECT_THAT(values(data->ask<LocalTimes>()->utc_offsets()), ElementsAre(3600, 7200, 0));

  const std::string twice = "at,a,y\n2024-10-27 02:30,1,1\n2024-10-27 03:30,1,2\n";
  EXPECT_EQ(error(twice, parameters),
            "x.csv:2: column \"at\": 2024-10-27 02:30 exists twice in Europe/Berlin, where clocks "
            "were set back; set \"ambiguous\" to \"earliest\" or \"latest\"");
  parameters["ambiguous"] = "latest";
  write(twice);
  EXPECT_EQ(values(rows(*open(parameters)).timestamps())[0], 1729992600);
  EXPECT_THAT(error("at,a,y\n2024-03-31 02:30,1,1\n", parameters),
              HasSubstr("does not exist in Europe/Berlin"));
}

}  // namespace
}  // namespace treadle::csv
