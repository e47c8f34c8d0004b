#include <treadle/base/text_wrap.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle {
namespace {

using testing::ElementsAre;

TEST(TextWrap, BreaksBetweenWordsOnly) {
  EXPECT_THAT(wrapped_lines("the rate of the optimizer", 10),
              ElementsAre("the rate", "of the", "optimizer"));
  EXPECT_THAT(wrapped_lines("an /unbreakably/long/path here", 8),
              ElementsAre("an", "/unbreakably/long/path", "here"));
  EXPECT_THAT(wrapped_lines("ätherisch größer", 9), ElementsAre("ätherisch", "größer"));
  EXPECT_THAT(wrapped_lines("one line", static_cast<std::size_t>(-1)), ElementsAre("one line"));
  EXPECT_THAT(wrapped_lines("", 5), ElementsAre(""));
}

TEST(TextWrap, HangsTextBesideItsTitleOrBelowIt) {
  EXPECT_EQ(hanging_text("--set", 8, "replaces one value of the document", 34),
            "--set   replaces one value of the\n"
            "        document\n");
  EXPECT_EQ(hanging_text("--set", 8, "replaces one value", 20),
            "--set\n"
            "    replaces one\n"
            "    value\n");
}

}  // namespace
}  // namespace treadle
