#include <treadle/base/files/csv_records.h>

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/quoted_text.h>

namespace treadle {
namespace {

using Fields = std::vector<std::string>;
using Record = std::pair<std::int64_t, Fields>;

/// With the line at which each begins.
std::vector<Record> records_in(std::string_view text) {
  const std::string shown = "x.csv";
  CsvRecords records(text, shown);
  std::vector<Record> all;
  for (Fields fields; records.next(fields);)
    all.emplace_back(records.line(), fields);
  return all;
}

std::string error_of(std::string_view text) {
  try {
    records_in(text);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CsvRecords, AreFieldsBetweenCommas) {
  EXPECT_EQ(records_in("a,b\n1,\n,2"),
            (std::vector<Record>{{1, {"a", "b"}}, {2, {"1", ""}}, {3, {"", "2"}}}));
  EXPECT_EQ(records_in("").size(), 0U);
}

TEST(CsvRecords, EndAtAnyKindOfLineEnd) {
  EXPECT_EQ(records_in("a\r\nb\rc\n\n\nd\n"),
            (std::vector<Record>{{1, {"a"}}, {2, {"b"}}, {3, {"c"}}, {6, {"d"}}}));
}

TEST(CsvRecords, CountTheLinesWithinQuotes) {
  EXPECT_EQ(records_in("\xEF\xBB\xBF\"a\nb\",c\nd,e\n"),
            (std::vector<Record>{{1, {"a\nb", "c"}}, {3, {"d", "e"}}}));
}

TEST(CsvRecords, ReadWhatCsvFieldWrites) {
  const Fields fields{"plain", "a,b", "say \"no\"", "two\nlines", "", "\"", "\"\"", "\r\n"};
  std::string text;
  for (const std::string& field : fields)
    text += (text.empty() ? "" : ",") + csv_field(field);

  EXPECT_EQ(records_in(text), (std::vector<Record>{{1, fields}}));
}

TEST(CsvRecords, NameTheLineOfAQuoteThatIsWrong) {
  EXPECT_EQ(error_of("a\n1\n\"x\n\n"), "x.csv:3: a quoted field has no end");
  EXPECT_EQ(error_of("a\n\"x\ny\"z\n"),
            "x.csv:3: after a quoted field, expected a comma or the end of the line");
}

}  // namespace
}  // namespace treadle
