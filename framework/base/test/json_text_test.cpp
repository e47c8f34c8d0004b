#include <treadle/base/json_text.h>

#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace treadle {
namespace {

using nlohmann::json;

std::string nested(int levels) {
  const auto count = static_cast<std::size_t>(levels);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(JsonText, IsReadAsItIs) {
  EXPECT_EQ(parse_json(R"({"a": [1, "b"]})"), (json{{"a", {1, "b"}}}));
}

TEST(JsonText, OtherTextIsDiscarded) {
  for (const char* text : {"", "{", "[1]]", "\"a", "\"\xff\"", "1e999", "]]]"})
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
}

TEST(JsonText, IsDiscardedWhereItIsNestedTooDeeply) {
  EXPECT_FALSE(parse_json(nested(kMostJsonLevels)).is_discarded());
  EXPECT_TRUE(parse_json(nested(kMostJsonLevels + 1)).is_discarded());
  EXPECT_TRUE(parse_json(std::string(1'000'000, '[')).is_discarded());
}

TEST(JsonText, BracketsInTextAreNoLevels) {
  const std::string brackets(2 * kMostJsonLevels, '[');

  EXPECT_EQ(parse_json("\"" + brackets + "\""), json(brackets));
  EXPECT_EQ(parse_json("\"\\\"" + brackets + "\""), json("\"" + brackets));
}

TEST(JsonText, MayBeInAStream) {
  std::istringstream good("{\"a\": 1}");
  std::istringstream deep(nested(kMostJsonLevels + 1));

  EXPECT_EQ(parse_json(good), (json{{"a", 1}}));
  EXPECT_TRUE(parse_json(deep).is_discarded());
}

TEST(JsonText, MayHaveAnyNumberOfNeighbours) {
  std::string many = "[";
  for (int i = 0; i < 2 * kMostJsonLevels; ++i)
    many += "[],";

  EXPECT_EQ(parse_json(many + "0]").size(), 2 * kMostJsonLevels + 1);
}

}  // namespace
}  // namespace treadle
