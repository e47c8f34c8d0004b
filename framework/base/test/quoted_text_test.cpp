#include <treadle/base/quoted_text.h>

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(DotQuoted, EscapesWhatWouldEndTheStringOrTheLine) {
  EXPECT_EQ(dot_quoted("plain"), R"("plain")");
  EXPECT_EQ(dot_quoted("a \"b\" \\ c"), R"("a \"b\" \\ c")");
  EXPECT_EQ(dot_quoted("two\nlines"), R"("two\nlines")");
  EXPECT_EQ(dot_quoted(""), R"("")");
}

TEST(CsvFields, AreInQuotesOnlyWhereTheyNeedThem) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"no\""), "\"say \"\"no\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

}  // namespace
}  // namespace treadle
