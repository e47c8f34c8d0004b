#include <treadle/base/problem.h>

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(Place, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ((Place{"my.json", 14, 3}).text(), "my.json:14");
  EXPECT_EQ((Place{"my.json", 0, 0}).text(), "my.json");
  EXPECT_EQ((Place{}).text(), "");
}

TEST(Problem, SaysPlacePointerAndMessage) {
  EXPECT_EQ((Problem{{"my.json", 14, 3}, "/optimizer/learning_rate", "must be > 0, got -1"}).text(),
            "my.json:14: /optimizer/learning_rate: must be > 0, got -1");
  EXPECT_EQ((Problem{{"my.json", 0, 0}, "", "no such file"}).text(), "my.json: no such file");
  EXPECT_EQ((Problem{{}, "/seed", "must be >= 0, got -1"}).text(), "/seed: must be >= 0, got -1");
}

TEST(Problem, IsOneLineWithoutOrdersToATerminal) {
  EXPECT_EQ((Problem{{"my.json", 2, 1}, "/a\x1b[2J\nb", "must be left out"}).text(),
            "my.json:2: /a\\u001b[2J\\nb: must be left out");
}

TEST(DocumentError, HasOneLineForEachProblem) {
  const DocumentError error({Problem{{"a.json", 1, 1}, "/x", "first"}, Problem{{}, "", "second"}});

  EXPECT_STREQ(error.what(), "a.json:1: /x: first\nsecond");
  EXPECT_EQ(error.problems().size(), 2U);
  EXPECT_EQ(error.exit_code(), 3);
}

}  // namespace
}  // namespace treadle
