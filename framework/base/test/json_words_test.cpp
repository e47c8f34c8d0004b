#include <treadle/base/json_words.h>

#include <gtest/gtest.h>

namespace treadle {
namespace {

using nlohmann::json;

TEST(DescribeValue, NamesEveryKind) {
  EXPECT_EQ(describe_value("fast"), "\"fast\" (text)");
  EXPECT_EQ(describe_value(5.0), "5.0");
  EXPECT_EQ(describe_value(-1), "-1");
  EXPECT_EQ(describe_value(true), "true");
  EXPECT_EQ(describe_value(nullptr), "null");
  EXPECT_EQ(describe_value(json::array({1})), "an array");
  EXPECT_EQ(describe_value(json::object()), "an object");
}

TEST(DescribeValue, CutsLongTextBetweenCharacters) {
  std::string euros;
  for (int i = 0; i < 40; ++i)
    euros += "€";

  const std::string described = describe_value(euros);

  EXPECT_EQ(described, "\"" + euros.substr(0, 26 * 3) + "…\" (text)");
}

TEST(QuoteText, SurvivesBytesThatAreNotUtf8) {
  EXPECT_EQ(quote_text("a\"b\n\x01"), "\"a\\\"b\\n\\u0001\"");
  EXPECT_EQ(quote_text("a\xE4"), "\"a\xEF\xBF\xBD\"");
}

TEST(QuoteText, EscapesWhateverATerminalObeys) {
  EXPECT_EQ(quote_text("\x1b[2J\x7f\xc2\x9b"), "\"\\u001b[2J\\u007f\\u009b\"");
  EXPECT_EQ(quote_text("\xc2\xa0µ"), "\"\xc2\xa0µ\"");
}

TEST(QuotedList, IsCutAfterTen) {
  EXPECT_EQ(quoted_list({}), "");
  EXPECT_EQ(quoted_list({"red", "gr\ten"}), R"("red", "gr\ten")");
  const std::vector<std::string> ten(10, "a");
  EXPECT_EQ(quoted_list(ten), R"("a", "a", "a", "a", "a", "a", "a", "a", "a", "a")");
  EXPECT_EQ(quoted_list({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}),
            R"("a", "b", "c", "d", "e", "f", "g", "h", "i", "j" and 2 more)");
}

TEST(PlainText, IsReadableAsItIsButForControlCharacters) {
  EXPECT_EQ(plain_text(R"(a "quoted" \d+ /key~1)"), R"(a "quoted" \d+ /key~1)");
  EXPECT_EQ(plain_text("a\nb\x1b[2J\x7f\xc2\x9b\xff"), "a\\nb\\u001b[2J\\u007f\\u009b\xEF\xBF\xBD");
  EXPECT_EQ(plain_text(""), "");
}

TEST(JsonPointer, EscapesKeys) {
  EXPECT_EQ(child_pointer("/a", "b/c~d"), "/a/b~1c~0d");
  EXPECT_EQ(child_pointer("/a", std::size_t{3}), "/a/3");
  EXPECT_EQ(last_key("/a/b~1c~0d"), "b/c~d");
  EXPECT_EQ(last_key("/~01"), "~1");
  EXPECT_EQ(last_key(""), "");
  EXPECT_EQ(parent_pointer("/a/b"), "/a");
  EXPECT_EQ(parent_pointer("/a"), "");
  EXPECT_EQ(parent_pointer(""), "");
}

}  // namespace
}  // namespace treadle
