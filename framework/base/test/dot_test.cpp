#include <treadle/base/dot.h>

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(DotQuoted, EscapesWhatWouldEndTheStringOrTheLine) {
  EXPECT_EQ(dot_quoted("plain"), R"("plain")");
  EXPECT_EQ(dot_quoted("a \"b\" \\ c"), R"("a \"b\" \\ c")");
  EXPECT_EQ(dot_quoted("two\nlines"), R"("two\nlines")");
  EXPECT_EQ(dot_quoted(""), R"("")");
}

}  // namespace
}  // namespace treadle
