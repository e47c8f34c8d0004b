#include <treadle/core/data/row_problems.h>

#include <gtest/gtest.h>

namespace treadle {
namespace {

std::string told(const RowProblems& problems) {
  try {
    problems.throw_if_any();
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(RowProblems, AreToldOnALineEach) {
  RowProblems problems;
  EXPECT_EQ(told(problems), "");
  problems.add([] { return "row 1: no number"; });
  problems.add([] { return "row 7: no number"; });

  EXPECT_EQ(told(problems), "row 1: no number\nrow 7: no number");
}

TEST(RowProblems, AreANumberAfterTheFirstFew) {
  RowProblems problems;
  int made = 0;
  for (int row = 0; row < 8; ++row) {
    problems.add([&] {
      ++made;
      return "row " + std::to_string(row);
    });
  }
  EXPECT_TRUE(problems.is_full());
  problems.add_unlisted(100);

  EXPECT_EQ(told(problems), "row 0\nrow 1\nrow 2\nrow 3\nrow 4\nand 103 more");
  EXPECT_EQ(made, 5) << "words for nobody";
}

}  // namespace
}  // namespace treadle
